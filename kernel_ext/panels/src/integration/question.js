/** The card of a worktree that asks to be integrated. */

import { labelled } from "../lib/blocks.js";
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
      h("span", { class: "wb-added" }, `+${added}`),
      " ",
      h("span", { class: "wb-removed" }, `−${removed}`),
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
    const { commits, files, ahead, conflicts } = payload;
    this.first = labelled(counted(ahead, "commit"), list(commits.map(commit), ahead));
    this.first.tabIndex = -1;
    const changed = files.map((one) => file(one, conflicts));
    this.element = h(
      "div",
      { class: "wb-box wb-stack wb-roomy" },
      ...how(payload),
      this.first,
      labelled(counted(files.length, "file"), list(changed, files.length)),
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
    h("li", {}, h("span", { class: "wb-muted wb-term" }, label), h("code", { class: "wb-wrap" }, id));
  const guarded = changed.map((path) => h("li", {}, icon("warning"), h("code", { class: "wb-wrap" }, path)));
  return [
    behind ? h("p", { class: "wb-muted" }, `${target} has ${counted(behind, "newer commit")}; both are merged.`) : null,
    forward ? h("p", { class: "wb-muted" }, `${target} moves forward; no merge commit is made.`) : null,
    list([exact("Commit", source), merged && merged !== source && exact("Merge commit", merged)]),
    guarded.length ? labelled("Protected parts that have changed", list(guarded)) : null,
  ].filter(Boolean);
}

/** The first lines, and how many more there are. */
function list(lines, total = 0) {
  return h("ul", { class: "wb-list" }, ...lines.slice(0, SHOWN), more(total));
}

function commit({ id, author, subject }) {
  return h(
    "li",
    {},
    h("code", {}, id.slice(0, 7)),
    h("span", { class: "wb-grow wb-cut", title: subject }, subject),
    h("span", { class: "wb-muted" }, author),
  );
}

function file({ path, added, removed }, conflicts) {
  const clash = conflicts.includes(path);
  const counts =
    added === null
      ? [h("span", { class: "wb-muted" }, "binary")]
      : [h("span", { class: "wb-added" }, `+${added}`), h("span", { class: "wb-removed" }, `−${removed}`)];
  return h(
    "li",
    {},
    h("code", { class: "wb-grow wb-cut", title: path }, path),
    clash ? h("span", { class: "wb-state" }, icon("warning"), "conflict") : null,
    ...counts,
  );
}

function more(total) {
  return total > SHOWN ? h("li", { class: "wb-muted" }, `and ${(total - SHOWN).toLocaleString("en")} more`) : null;
}
