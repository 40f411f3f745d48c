/** The card of a worktree that asks to be merged. */

import { h } from "./dom.js";
import { counted, lineCounts } from "./format.js";
import { icon } from "./icons.js";

const SHOWN = 12;

/** @type {import("./card.js").Kind} */
export const integration = {
  icon: "integration",
  label: "integration",
  primary: "Approve and merge",
  busy: "Merging…",
  title: ({ payload }) => payload.worktree,
  origin: ({ requester }) => `asked by ${requester}`,
  summary: ({ payload }) => {
    const { added, removed } = lineCounts(payload.files);
    return [
      h("code", {}, payload.branch),
      " → ",
      h("code", {}, payload.target),
      ` · ${counted(payload.ahead, "commit")} · ${counted(payload.files.length, "file")} `,
      h("span", { class: "wb-plus" }, `+${added}`),
      " ",
      h("span", { class: "wb-minus" }, `−${removed}`),
      payload.conflicts.length ? null : " · no conflicts",
    ];
  },
  warning: ({ payload }) =>
    payload.conflicts.length
      ? `Conflicts are predicted in ${counted(payload.conflicts.length, "file")}: ${some(payload.conflicts)}. Merging would be refused.`
      : null,
  done: (_, { payload }) => `Merged into ${payload.target}.`,
  careful: ({ payload }) => payload.conflicts.length > 0,
  details: (approval) => new Changes(approval),
};

/** What would be merged, to read. */
class Changes {
  constructor({ payload }) {
    this.first = h("div", { class: "wb-label", tabindex: -1 }, counted(payload.ahead, "commit"));
    this.element = h(
      "div",
      { class: "wb-details" },
      payload.behind
        ? h("p", { class: "wb-muted" }, `${payload.target} has ${counted(payload.behind, "newer commit")}; both are merged.`)
        : null,
      this.first,
      h("ul", { class: "wb-list" }, ...payload.commits.slice(0, SHOWN).map(commit), more(payload.ahead)),
      h("div", { class: "wb-label" }, counted(payload.files.length, "file")),
      h("ul", { class: "wb-list" }, ...payload.files.slice(0, SHOWN).map((f) => file(f, payload.conflicts)), more(payload.files.length)),
    );
  }

  choices() {
    return {};
  }

  fieldOf() {
    return null;
  }
}

function commit({ id, author, subject }) {
  return h(
    "li",
    { class: "wb-commit" },
    h("code", {}, id.slice(0, 7)),
    h("span", { class: "wb-grow", title: subject }, subject),
    h("span", { class: "wb-muted" }, author),
  );
}

function file({ path, added, removed }, conflicts) {
  const clash = conflicts.includes(path);
  const counts =
    added === null
      ? [h("span", { class: "wb-muted" }, "binary")]
      : [h("span", { class: "wb-plus" }, `+${added}`), h("span", { class: "wb-minus" }, `−${removed}`)];
  return h(
    "li",
    { class: "wb-file" },
    h("code", { class: "wb-grow", title: path }, path),
    clash ? h("span", { class: "wb-clash" }, icon("warning"), "conflict") : null,
    ...counts,
  );
}

function more(total) {
  return total > SHOWN ? h("li", { class: "wb-muted" }, `and ${(total - SHOWN).toLocaleString("en")} more`) : null;
}

function some(names) {
  return names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
}
