/** The card of a worktree that asks to be integrated. */

import { h } from "../lib/dom.js";
import { counted, lineCounts, nth, some } from "../lib/format.js";
import { Gates } from "./gates.js";
import { icon } from "../lib/icons.js";
import { hasMoved, verdict } from "./state.js";

const SHOWN = 12;

/** @type {import("../inbox/card.js").Kind} */
export const integration = {
  icon: "integration",
  label: "integration",
  primary: (approval) => (failing(approval) ? "Approve despite failed gates…" : "Approve and integrate"),
  busy: "Integrating…",
  title: ({ payload }) => payload.worktree,
  origin: ({ requester }) => `asked by ${requester}`,
  summary: ({ payload }) => {
    const { added, removed } = lineCounts(payload.files);
    return [
      h("code", {}, payload.branch),
      " at ",
      h("code", { title: payload.source_commit }, payload.source_commit.slice(0, 7)),
      " → ",
      h("code", {}, payload.target),
      ` · ${counted(payload.ahead, "commit")} · ${counted(payload.files.length, "file")} `,
      h("span", { class: "wb-plus" }, `+${added}`),
      " ",
      h("span", { class: "wb-minus" }, `−${removed}`),
      payload.conflicts.length ? null : " · no conflicts",
    ];
  },
  warning: ({ payload }, tables) => [
    hasMoved(tables.worktrees.get(payload.worktree), { payload })
      ? `${payload.branch} is at ${tables.worktrees.get(payload.worktree).commit.slice(0, 7)} now, not at ${payload.source_commit.slice(0, 7)}: approving would be refused. Ask again under Worktrees.`
      : null,
    payload.refused ? `It was approved and sent back: ${payload.refused.message}` : null,
    payload.conflicts.length
      ? `Conflicts are predicted in ${counted(payload.conflicts.length, "file")}: ${some(payload.conflicts)}. Integrating would be refused.`
      : null,
    payload.changed?.length
      ? `Protected parts of the repository have changed since the worktree was made: ${some(payload.changed)}. Look at them before you approve.`
      : null,
  ],
  live: () => {
    const gates = new Gates();
    return { element: gates.element, update: ({ payload }) => gates.update(payload.gates) };
  },
  doubt: (approval) =>
    failing(approval)
      ? {
          label: "Integrate despite failed gates",
          why: `${counted(failed(approval).length, "gate")} did not pass: ${some(failed(approval))}. What is integrated stays in ${approval.payload.target}.`,
          choices: { despite_gates: true },
        }
      : null,
  done: (outcome, approval, tables) => settledWords(outcome, approval, tables.worktrees.get(approval.payload.worktree)),
  careful: (approval, tables) =>
    hasMoved(tables.worktrees.get(approval.payload.worktree), approval) ||
    approval.payload.conflicts.length > 0 ||
    approval.payload.changed?.length > 0 ||
    failing(approval),
  details: (approval) => new Changes(approval),
};

/** What became of an approved integration. */
function settledWords({ state }, { payload }, worktree) {
  if (state === "integrated") return `Integrated into ${payload.target}.`;
  if (verdict(payload.gates ?? []) === "checking")
    return `Approved. It is integrated into ${payload.target} when the gates have passed.`;
  return `Approved. It is ${worktree?.queue_place ? nth(worktree.queue_place) : "next"} in the queue for ${payload.target}.`;
}

function failing({ payload }) {
  return verdict(payload.gates ?? []) === "failing";
}

function failed({ payload }) {
  return payload.gates.filter(({ state }) => state !== "passed").map(({ command }) => command);
}

/** What would be integrated, to read. */
class Changes {
  constructor({ payload }) {
    this.first = h("div", { class: "wb-label", tabindex: -1 }, counted(payload.ahead, "commit"));
    this.element = h("div", { class: "wb-details" }, ...how(payload), this.first);
    this.element.append(
      h("ul", { class: "wb-list" }, ...payload.commits.slice(0, SHOWN).map(commit), more(payload.ahead)),
      h("div", { class: "wb-label" }, counted(payload.files.length, "file")),
      h(
        "ul",
        { class: "wb-list" },
        ...payload.files.slice(0, SHOWN).map((f) => file(f, payload.conflicts)),
        more(payload.files.length),
      ),
    );
  }

  choices() {
    return {};
  }

  fieldOf() {
    return null;
  }
}

function how({ target, behind, fast_forward: forward, source_commit: source, merged_commit: merged, changed = [] }) {
  const exact = (label, id) =>
    h("li", {}, h("span", { class: "wb-muted wb-fact" }, label), h("code", { class: "wb-said" }, id));
  return [
    behind ? h("p", { class: "wb-muted" }, `${target} has ${counted(behind, "newer commit")}; both are merged.`) : null,
    forward ? h("p", { class: "wb-muted" }, `${target} moves forward; no merge commit is made.`) : null,
    h(
      "ul",
      { class: "wb-list wb-exact" },
      exact("Commit", source),
      merged && merged !== source ? exact("Merge commit", merged) : "",
    ),
    ...(changed.length
      ? [
          h("div", { class: "wb-label" }, "Protected parts that have changed"),
          h(
            "ul",
            { class: "wb-list" },
            ...changed.map((path) => h("li", {}, icon("warning"), h("code", { class: "wb-said" }, path))),
          ),
        ]
      : []),
  ].filter(Boolean);
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
