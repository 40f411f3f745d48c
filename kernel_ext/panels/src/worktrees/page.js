/** The page of one worktree: its state, the approval about it, and its changes. */

import { ApprovalSlot } from "../inbox/approval_slot.js";
import { pendingApproval } from "../integration/state.js";
import { message } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { projectPath } from "../lib/format.js";
import { WorktreeActions } from "./actions.js";
import { drawCounts, factsText, stateIcon } from "./card.js";
import { Diff } from "./diff.js";
import { problemsOf, stateLabel } from "./state.js";

export class WorktreePage {
  /** @param {any} desk @param {{close: () => void, done: (text: string) => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    /**
     * Approvals with a lower id are being replaced, and cannot be decided until the new one has come; `Infinity` while
     * that is requested.
     */
    this.replacing = 0;
    const request = (replacing) => this.onRequest(replacing);
    this.actions = new WorktreeActions(desk, { open: () => {}, done: on.done, request }, true);
    this.diff = new Diff(desk);
    const id = freshId("page");
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("h3", { class: "wb-heading wb-cut", id, tabindex: -1 });
    this.state = h("span", { class: "wb-muted" });
    this.branches = h("div", { class: "wb-muted wb-wrap" });
    this.counts = h("div", { class: "wb-digits" });
    this.facts = h("div", { class: "wb-muted wb-wrap" });
    this.problems = h("div", {});
    this.approval = new ApprovalSlot(desk, () => this.title.focus());
    const back = button("‹ Worktrees", "wb-button", on.close, "Back to all worktrees");
    const head = [back, this.mark, this.title, this.state, this.actions.buttons];
    this.element = h(
      "div",
      {
        class: "wb-worktree-page wb-stack",
        role: "region",
        "aria-labelledby": id,
        hidden: true,
        on: { keydown: (event) => this.onKey(event) },
      },
      h("div", { class: "wb-worktree-head" }, ...head),
      this.actions.confirmBox,
      this.actions.requests.errorBox,
      h("div", {}, this.branches, this.counts, this.facts, this.problems),
      this.approval.element,
      this.diff.element,
    );
  }

  /** @param {any} worktree */
  open(worktree) {
    this.approval.clear();
    this.replacing = 0;
    this.actions.clear();
    this.drawn = null;
    this.element.hidden = false;
    this.diff.show(worktree);
  }

  close() {
    this.approval.clear();
    this.element.hidden = true;
    this.diff.clear();
  }

  focus() {
    this.title.focus();
  }

  /**
   * Bring it up to date.
   * @param {any} worktree @param {string} state @param {{agents: Set<string>, tasks: number}} occupants
   * @param {number} now @param {boolean} enabled whether decisions can be sent
   */
  update(worktree, state, occupants, now, enabled) {
    if (this.drawn !== state) this.mark.replaceChildren(stateIcon(state));
    this.drawn = state;
    setText(this.title, worktree.id);
    setText(this.state, stateLabel(worktree, state));
    const path = projectPath(worktree.path);
    setText(this.branches, `${worktree.branch_name} → ${worktree.integration_target} · ${path}`);
    setAttribute(this.branches, "title", worktree.path);
    drawCounts(this.counts, worktree);
    setText(this.facts, factsText(worktree, occupants, now));
    this.drawProblems(problemsOf(worktree));
    this.actions.show(worktree, state, occupants.agents);
    this.drawApproval(worktree, now, enabled);
    if (state !== "closed") this.diff.update(worktree);
  }

  drawProblems(problems) {
    const key = problems.join("\n");
    if (key === this.drawnProblems) return;
    this.drawnProblems = key;
    this.problems.replaceChildren(...problems.map((text) => message("warning", text)));
  }

  /** The same card as in the inbox. Once it is decided it stays here, and shows what came of it. */
  drawApproval(worktree, now, enabled) {
    this.enabled = enabled;
    const pending = pendingApproval(worktree, this.desk.store.tables);
    this.approval.show(pending, (id) => this.isEnabled(id), now, this.replacing === Infinity);
  }

  /** Whether an approval can be decided now. */
  isEnabled(id) {
    return this.enabled && this.replacing <= id;
  }

  onRequest(replacing) {
    this.replacing = replacing;
    const { card } = this.approval;
    card?.refresh(this.isEnabled(card.approval.id));
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    this.on.close();
  }
}
