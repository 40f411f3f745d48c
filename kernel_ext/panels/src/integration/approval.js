/** How the approval of an integration looks on its card. */

import { labelled } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { lineCounts, plural, shortList } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { requestedText } from "../review/requested.js";
import { Gates } from "./gates.js";
import { branchMoved, gatesState, integrationProgress, pendingApproval } from "./state.js";

const MOST = 12;

/** @type {import("../inbox/kinds.js").Kind} */
export const integration = {
  icon: "integration",
  label: "integration",
  approve: (approval) => {
    if (isFailing(approval)) return "Approve despite failed gates…";
    return despite(approval.payload).length ? "Approve and integrate…" : "Approve and integrate";
  },
  approving: "Approving…",
  title: ({ payload }) => payload.worktree,
  origin: ({ asker, requester }) => `requested by ${asker ?? requester}`,
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
    ];
  },
  lines: ({ payload }) => payload.decides ?? [],
  warnings: (approval, tables, notebook) =>
    [
      requestedText(approval, tables),
      movedWarning(approval, tables),
      notebookWarning(approval.payload, notebook),
      ...payloadWarnings(approval.payload),
    ].filter(Boolean),
  live: () => new LiveGates(),
  confirmation: (approval) => {
    const { payload } = approval;
    const failing = isFailing(approval);
    const reasons = [...(failing ? ["failed gates"] : []), ...despite(payload)];
    if (!reasons.length) return null;
    const failed = failing ? failedGates(approval) : [];
    const gates = `${plural(failed.length, "gate")} did not pass: ${shortList(failed)}. What is integrated stays in ${payload.target}.`;
    const consequence = [failing && gates, failedTasks(payload), unusedGates(payload), openTasks(payload)];
    return {
      label: `Integrate despite ${shortList(reasons)}`,
      consequence: consequence.filter(Boolean).join(" "),
      choices: failing ? { despite_gates: true } : {},
    };
  },
  discouraged: (approval, tables) => {
    const { conflicts, changed, makes_conflict: created } = approval.payload;
    const moved = branchMoved(tables.worktrees.get(approval.payload.worktree), approval);
    const warned =
      [conflicts, changed, created].some((names) => names?.length > 0) || despite(approval.payload).length > 0;
    return moved || warned || isFailing(approval) || Boolean(approval.changes_requested_at);
  },
  done: (outcome, approval) => integrationProgress({ ...approval, outcome }, null).text,
  progress: (approval, tables) => integrationProgress(approval, tables.worktrees.get(approval.payload.worktree)),
  subjects: ({ payload }) => [`worktree:${payload.worktree}`],
  successor: ({ payload }, tables) => pendingApproval({ id: payload.worktree }, tables),
  review: ({ payload }) => payload.worktree,
  undoable: true,
  details: (approval) => new Changes(approval),
};

function movedWarning({ payload }, tables) {
  const { worktree: name } = payload;
  if (!branchMoved(tables.worktrees.get(name), { payload })) return null;
  return `${name} has new commits since its integration was requested: approving would be refused. Request the integration again on the page of the worktree.`;
}

/** Paths are from the repository, that of the open notebook from where Jupyter was started. */
function notebookWarning({ files, target }, notebook) {
  const isOpen = ({ path }) => notebook && (`/${notebook}`.endsWith(`/${path}`) || path.endsWith(`/${notebook}`));
  const changed = files.find(isOpen);
  if (!changed) return null;
  return `It changes ${changed.path}, which is open here. Commit it before; if ${target} is checked out, reload it from the disk afterwards.`;
}

function payloadWarnings(payload) {
  const { target, refused, conflicts, changed, makes_conflict: created = [] } = payload;
  const brought = shortList(created.map(({ worktree }) => worktree));
  const files = shortList([...new Set(created.flatMap((conflict) => conflict.files))]);
  return [
    refused && `It was approved and sent back: ${refused.message}`,
    conflicts.length &&
      `Conflicts with ${target} in ${shortList(conflicts)}. Integrating would be refused; “Resolve conflicts…” is on the page of the worktree.`,
    created.length && `Approving this will make ${brought} conflict with ${target} in ${files}.`,
    openTasks(payload),
    changed?.length &&
      `Protected parts of the repository have changed since the worktree was created: ${shortList(changed)}. Check them before you approve.`,
  ];
}

/** What is not as it should be, and does not keep it from being merged. @returns {string[]} */
function despite({ failed_tasks: failed, unused_gates: unused, open_tasks: open }) {
  return [failed && "failed tasks", unused?.length && "unused gates", open && "open tasks"].filter(Boolean);
}

function failedTasks({ worktree: name, failed_tasks: failed, failed_task_ids: ids = [] }) {
  if (!failed) return null;
  return `${plural(failed, "task")} of ${name} failed for good (${shortList(ids.map(String), 5, failed)}).`;
}

function unusedGates({ unused_gates: unused = [] }) {
  if (!unused.length) return null;
  return `${plural(unused.length, "gate")} ${unused.length === 1 ? "is" : "are"} set, but not used: ${shortList(unused)}.`;
}

/** What becomes of unfinished tasks; null if there are none. */
function openTasks({ worktree: name, open_tasks: open, open_task_ids: ids = [] }) {
  if (!open) return null;
  const tasks = shortList(ids.map(String), 5, open);
  return `${name} has ${plural(open, "open task")} (${tasks}). Integrating closes the worktree, which ends the work on its open tasks.`;
}

/** The gates. What a running one writes comes without events: it is read again while it is on screen. */
class LiveGates {
  constructor() {
    this.gates = new Gates();
    this.element = this.gates.element;
    this.read = null;
  }

  /** Whether a gate is running. */
  get isRunning() {
    return gatesState(this.shown ?? []) === "checking";
  }

  /** @param {any} approval as the table has it; what was read since is newer, unless a gate has changed its state */
  update({ payload: { gates = [] } }) {
    if (JSON.stringify(gates.map(stateOf)) !== JSON.stringify(this.read?.map(stateOf))) this.read = null;
    this.show(this.read ?? gates);
  }

  /** @param {any} approval as it was just read */
  refresh({ payload: { gates = [] } }) {
    this.read = gates;
    this.show(gates);
  }

  show(gates) {
    this.shown = gates;
    this.gates.update(gates);
  }
}

const stateOf = ({ state }) => state;

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
