/** Integrated and discarded worktrees: what became of each, who decided it, when and why. */

import { h } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Sorting } from "../lib/sorting.js";

const COLUMNS = {
  name: "Worktree",
  status: "Became",
  branch_name: "Branch",
  requester: "Requested by",
  by: "Decided by",
  closed_at: "When",
  reason: "Reason",
};

export class ClosedWorktrees {
  /** @param {import("../link/store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.empty = h("p", { class: "wb-empty" }, "No worktree has been integrated or discarded yet.");
    this.sorting = new Sorting(COLUMNS, () => this.draw());
    const heads = Object.keys(COLUMNS).map((key) => this.sorting.heading(key, "th", { scope: "col" }));
    this.body = h("tbody", {});
    this.table = h(
      "table",
      { class: "wb-table wb-closed", "aria-label": "Closed worktrees" },
      h("thead", {}, h("tr", {}, ...heads)),
      this.body,
    );
    this.element = h("div", { class: "wb-stack" }, this.empty, h("div", { class: "wb-matrix-box" }, this.table));
  }

  /** The last closed first. */
  get rows() {
    return [...this.store.tables.closed.values()].sort((a, b) => b.id - a.id);
  }

  update() {
    const { rows } = this;
    this.empty.hidden = rows.length > 0;
    this.table.hidden = !rows.length;
    const key = JSON.stringify(rows);
    if (key === this.drawn) return;
    this.drawn = key;
    this.draw();
  }

  draw() {
    const rows = this.sorting.sorted(this.rows, (row, key) => ({ ...row, ...decision(row) })[key]);
    this.body.replaceChildren(...rows.map(line));
  }
}

function line(row) {
  const { name, status, integration_target: target, integrated_commit: commit, closed_at: at } = row;
  const integrated = status === "integrated";
  const became = integrated
    ? ["merged into ", h("code", {}, target), " as ", h("code", { title: commit }, commit.slice(0, 7))]
    : ["discarded"];
  const { requester, by, reason } = decision(row);
  const branch = [h("code", {}, row.branch_name), row.branch_kept ? "" : " (deleted)"];
  const mark = icon(integrated ? "completed" : "cancelled");
  const saved = row.bundle ? `${reason ? " " : ""}Unmerged work is saved in ${row.bundle}` : "";
  const cells = [
    h("span", { class: "wb-line" }, mark, h("strong", {}, name)),
    h("span", {}, ...became),
    h("span", {}, ...branch),
    requester,
    by,
    h("span", { title: at }, dateTime(at)),
    `${reason ?? ""}${saved}`,
  ];
  return h("tr", { class: "wb-table-row" }, ...cells.map((cell) => h("td", {}, cell)));
}

/** Who requested and approved an integration, or who discarded the worktree, and why. */
function decision({ status, approval, closed_by: closedBy, reason }) {
  if (status !== "integrated" || !approval) return { requester: "", by: closedBy, reason };
  return {
    requester: approval.requester,
    by: approval.person || approval.decided_by,
    reason: approval.decision_reason,
  };
}
