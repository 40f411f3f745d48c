/** How the approval of an integration looks on its card. */

import { labelled } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { lineCounts, plural, shortList } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Gates } from "./gates.js";
import { branchMoved, gatesState, integrationProgress, pendingApproval } from "./state.js";

const MOST = 12;

/** @type {import("../inbox/kinds.js").Kind} */
export const integration = {
  icon: "integration",
  label: "integration",
  approve: (approval) => (isFailing(approval) ? "Approve despite failed gates…" : "Approve and integrate"),
  approving: "Approving…",
  title: ({ payload }) => payload.worktree,
  origin: ({ requester }) => `requested by ${requester}`,
  summary: ({ payload }) => {
    const { added, removed } = lineCounts(payload.files);
    return [
      h("code", {}, payload.branch),
      " at ",
      h("code", { title: payload.source_commit }, short(payload.source_commit)),
      " → ",
      h("code", {}, payload.target),
      ` · ${plural(payload.ahead, "commit")} · ${plural(payload.files.length, "file")} `,
      h("span", { class: "wb-added" }, `+${added}`),
      " ",
      h("span", { class: "wb-removed" }, `−${removed}`),
      payload.conflicts.length ? null : " · no conflicts",
    ];
  },
  warnings: (approval, tables) =>
    [movedWarning(approval, tables), ...payloadWarnings(approval.payload)].filter(Boolean),
  live: () => {
    const gates = new Gates();
    return { element: gates.element, update: ({ payload }) => gates.update(payload.gates) };
  },
  confirmation: (approval) => {
    if (!isFailing(approval)) return null;
    const failed = failedGates(approval);
    return {
      label: "Integrate despite failed gates",
      consequence: `${plural(failed.length, "gate")} did not pass: ${shortList(failed)}. What is integrated stays in ${approval.payload.target}.`,
      choices: { despite_gates: true },
    };
  },
  discouraged: (approval, tables) => {
    const { conflicts, changed } = approval.payload;
    const moved = branchMoved(tables.worktrees.get(approval.payload.worktree), approval);
    return moved || conflicts.length > 0 || changed?.length > 0 || isFailing(approval);
  },
  done: (outcome, approval) => integrationProgress({ ...approval, outcome }, null).text,
  progress: (approval, tables) => integrationProgress(approval, tables.worktrees.get(approval.payload.worktree)),
  subjects: ({ payload }) => [`worktree:${payload.worktree}`],
  successor: ({ payload }, tables) => pendingApproval({ id: payload.worktree }, tables),
  details: (approval) => new Changes(approval),
};

function movedWarning({ payload }, tables) {
  const worktree = tables.worktrees.get(payload.worktree);
  if (!branchMoved(worktree, { payload })) return null;
  const now = `${payload.branch} is now at ${short(worktree.commit)}, not at ${short(payload.source_commit)}`;
  return `${now}: approving would be refused. Request the integration again in the Worktrees tab.`;
}

function payloadWarnings({ refused, conflicts, changed }) {
  const predicted = conflicts.length && `Conflicts are predicted in ${plural(conflicts.length, "file")}`;
  return [
    refused && `It was approved and sent back: ${refused.message}`,
    predicted && `${predicted}: ${shortList(conflicts)}. Integrating would be refused.`,
    changed?.length &&
      `Protected parts of the repository have changed since the worktree was created: ${shortList(changed)}. Check them before you approve.`,
  ];
}

function isFailing({ payload }) {
  return gatesState(payload.gates ?? []) === "failing";
}

function failedGates({ payload }) {
  return payload.gates.filter(({ state }) => state !== "passed").map(({ command }) => command);
}

function short(commit) {
  return commit.slice(0, 7);
}

/** What would be integrated. */
class Changes {
  constructor({ payload }) {
    const { commits, files, ahead, conflicts } = payload;
    this.first = labelled(plural(ahead, "commit"), list(commits.map(commitLine), ahead));
    this.first.tabIndex = -1;
    const changed = files.map((file) => fileLine(file, conflicts));
    this.element = h(
      "div",
      { class: "wb-box wb-stack wb-roomy" },
      ...facts(payload),
      this.first,
      labelled(plural(files.length, "file"), list(changed, files.length)),
    );
  }

  choices() {
    return {};
  }

  fieldOf() {
    return null;
  }
}

function facts({ target, behind, fast_forward: forward, source_commit: source, merged_commit: merged, changed = [] }) {
  const exact = (label, id) =>
    h("li", {}, h("span", { class: "wb-muted wb-term" }, label), h("code", { class: "wb-wrap" }, id));
  const guarded = changed.map((path) => h("li", {}, icon("warning"), h("code", { class: "wb-wrap" }, path)));
  const newer = `${target} has ${plural(behind, "newer commit")}; both sides are merged.`;
  return [
    behind ? h("p", { class: "wb-muted" }, newer) : null,
    forward ? h("p", { class: "wb-muted" }, `${target} is moved forward; no merge commit is made.`) : null,
    list([exact("Commit", source), merged && merged !== source && exact("Merge commit", merged)]),
    guarded.length ? labelled("Protected parts that have changed", list(guarded)) : null,
  ].filter(Boolean);
}

/** The first lines, and how many more there are. */
function list(lines, total = 0) {
  const more = (total - MOST).toLocaleString("en");
  const last = total > MOST ? h("li", { class: "wb-muted" }, `and ${more} more`) : null;
  return h("ul", { class: "wb-list" }, ...lines.slice(0, MOST), last);
}

function commitLine({ id, author, subject }) {
  return h(
    "li",
    {},
    h("code", {}, short(id)),
    h("span", { class: "wb-grow wb-cut", title: subject }, subject),
    h("span", { class: "wb-muted" }, author),
  );
}

function fileLine({ path, added, removed }, conflicts) {
  const counts =
    added === null
      ? [h("span", { class: "wb-muted" }, "binary")]
      : [h("span", { class: "wb-added" }, `+${added}`), h("span", { class: "wb-removed" }, `−${removed}`)];
  return h(
    "li",
    {},
    h("code", { class: "wb-grow wb-cut", title: path }, path),
    conflicts.includes(path) ? h("span", { class: "wb-state" }, icon("warning"), "conflict") : null,
    ...counts,
  );
}
