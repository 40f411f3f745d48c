/** How the question whether to trust what a definition needs looks on its card: all of it is on the card itself. */

import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";

/** What is trusted, by its kind. @type {Record<string, (details: any) => [string, string, Record<string, string>?]>} */
const NEEDS = {
  program: ({ command, arguments: words, environment }) => [
    "starts a program",
    [command, ...words].map(word).join(" "),
    environment,
  ],
  server: ({ url, headers }) => ["connects to", url, headers],
  provider: ({ provider, configuration }) => ["uses the provider", provider, configuration],
  permission: ({ server, tools }) => ["runs tools without asking you", server ? `${server}: ${tools}` : tools],
  role: ({ persona, role }) => [`gives its agents the role ${role}, of the persona`, persona],
  prompt: ({ prompt }) => ["was written by an agent:", prompt],
};

/** @type {import("./kinds.js").Kind} */
export const trust = {
  icon: "shield",
  label: "trust",
  approve: () => "Trust",
  approving: "Trusting…",
  title: ({ payload }) => payload.definition,
  origin: ({ asker, requester }) => `requested by ${asker ?? requester}`,
  summary: ({ payload: { path, needs } }) => [
    h("div", {}, h("code", {}, path), ` needs ${plural(needs.length, "thing")} that you have not trusted:`),
    h("ul", { class: "wb-needs" }, ...needs.map(need)),
  ],
  discouraged: () => true,
  done: (_, { payload }) => `Trusted. ${payload.definition} can be used now.`,
};

function need({ kind, name, summary, details }) {
  const need = NEEDS[kind]?.(details);
  if (!need) return h("li", {}, summary);
  const [what, text, values = {}] = need;
  return h(
    "li",
    {},
    h("div", {}, h("code", {}, name), ` ${what}`),
    h("pre", { class: "wb-pre", tabindex: 0, "aria-label": name }, text),
    ...facts({ ...values, ...moreOf(details) }),
  );
}

function facts(values) {
  const lines = Object.entries(values).map(([key, value]) =>
    h("li", { class: "wb-wrap" }, h("code", {}, `${key}=${value}`)),
  );
  return lines.length ? [h("ul", {}, ...lines)] : [];
}

/** Where a program runs, and the files that its command names, by their hashes. */
function moreOf({ directory, files = {} }) {
  const hashes = Object.entries(files).map(([path, hash]) => [path, `sha256:${hash.slice(0, 16)}…`]);
  return { ...(directory ? { directory } : {}), ...Object.fromEntries(hashes) };
}

/** A word of a command line, in quotes where its ends would not be clear. */
function word(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : JSON.stringify(text);
}
