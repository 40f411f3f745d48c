/** Integrated and discarded worktrees: what became of each, who decided it, when and why. */

import { DataTable } from "../components/data_table.js";
import { Icon, html, render } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";

/** @type {import("../components/data_table.js").Column[]} */
const COLUMNS = [
  { key: "name", label: "Worktree", value: ({ name }) => name, cell: nameAndMark },
  { key: "status", label: "Became", value: ({ status }) => status, cell: outcome },
  { key: "branch_name", label: "Branch", value: ({ branch_name: name }) => name, cell: branch },
  { key: "requester", label: "Requested by", value: (row) => decision(row).requester },
  { key: "by", label: "Decided by", value: (row) => decision(row).by },
  {
    key: "closed_at",
    label: "When",
    value: ({ closed_at: at }) => at,
    cell: ({ closed_at: at }) => html`<span title=${at}>${dateTime(at)}</span>`,
  },
  { key: "reason", label: "Reason", value: (row) => decision(row).reason, cell: reasonAndBundle },
];

export class ClosedWorktrees {
  /** @param {import("../link/store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.element = h("div", { class: "wb-stack" });
  }

  /** The last closed first. */
  get rows() {
    return [...this.store.tables.closed.values()].sort((a, b) => b.id - a.id);
  }

  update() {
    const { rows } = this;
    const about = { class: "wb-closed", "aria-label": "Closed worktrees", columns: COLUMNS, rows };
    const table = html`<div class="wb-matrix-box"><${DataTable} ...${about} /></div>`;
    const none = html`<p class="wb-empty">No worktree has been integrated or discarded yet.</p>`;
    render(rows.length ? table : none, this.element);
  }
}

const isIntegrated = ({ status }) => status === "integrated";

function nameAndMark(row) {
  const mark = html`<${Icon} name=${isIntegrated(row) ? "completed" : "cancelled"} />`;
  return html`<span class="wb-line">${mark}<strong>${row.name}</strong></span>`;
}

function outcome(row) {
  if (!isIntegrated(row)) return "discarded";
  const { integration_target: target, integrated_commit: commit } = row;
  const short = html`<code title=${commit}>${commit.slice(0, 7)}</code>`;
  return html`<span>merged into <code>${target}</code> as ${short}</span>`;
}

function branch({ branch_name: name, branch_kept: kept }) {
  return html`<span><code>${name}</code>${kept ? "" : " (deleted)"}</span>`;
}

function reasonAndBundle(row) {
  const saved = row.bundle && `Unmerged work is saved in ${row.bundle}`;
  return [decision(row).reason, saved].filter(Boolean).join(" ");
}

/** Who requested and approved an integration, or who discarded the worktree, and why. */
function decision({ status, approval, closed_by: closedBy, reason }) {
  if (status !== "integrated" || !approval) return { requester: "", by: closedBy, reason };
  return {
    requester: approval.asker ?? approval.requester,
    by: approval.person || approval.decided_by,
    reason: approval.decision_reason,
  };
}
