/** What a person can do with a worktree, on its card and on its page: the buttons, their confirmations, and errors. */

import { branchMoved, pendingApproval } from "../integration/state.js";
import { Confirm } from "../lib/confirm.js";
import { button, checkbox } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { plural, shortList } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { Resolving } from "./resolving.js";
import { discardConsequences, PENDING } from "./state.js";

/** Refusals that can be overruled: what would be lost is saved first. */
const OVERRULABLE = new Set(["WORKTREE_DIRTY", "COMMITS_ONLY_HERE"]);
const NO_ACTIONS = new Set(["queued", "integrating", "closed"]);

export class WorktreeActions {
  /**
   * @param {any} desk
   * @param {{open: () => void, done: (text: string) => void, request?: (replacing: number) => void}} on its page is to
   *   be opened; something was done; approvals with a lower id than this are being replaced (see `WorktreePage`)
   * @param {boolean} [onPage] whether the changes are on screen already
   */
  constructor(desk, on, onPage = false) {
    this.desk = desk;
    this.on = on;
    this.onPage = onPage;
    this.force = false;
    this.requests = new RequestRunner(desk);
    this.review = button("", "wb-button wb-compact", on.open);
    this.request = button("", "wb-button wb-compact", () => this.requestIntegration());
    this.update = button("Update", "wb-button wb-compact", () => this.updateFromTarget());
    this.resolve = button("Resolve conflicts…", "wb-button wb-compact", () => this.startResolving());
    this.discard = button("Discard…", "wb-link wb-quiet wb-push", () => this.askDiscard());
    this.confirmBox = h("div", {});
    const buttons = [this.review, this.request, this.update, this.resolve, this.discard];
    this.buttons = h("div", { class: "wb-line wb-worktree-buttons" }, ...buttons);
  }

  /** @param {any} worktree @param {string} state @param {Set<string>} agents who work there */
  show(worktree, state, agents) {
    this.worktree = worktree;
    this.agents = [...agents];
    const { id: name, ahead, behind, integration_target: target } = worktree;
    const pending = PENDING.has(state);
    const moved = pending && branchMoved(worktree, pendingApproval(worktree, this.desk.store.tables));
    const none = NO_ACTIONS.has(state);
    setText(this.review, pending && state !== "failing" ? "Review and approve" : "Review");
    this.review.classList.toggle("wb-primary", state === "awaiting" && !moved && !worktree.conflicts?.length);
    if (!this.requests.busy) setText(this.request, moved ? "Request again" : "Request integration");
    setAttribute(this.update, "title", `Merge ${plural(behind ?? 0, "commit")} of ${target} into ${name}`);
    this.review.hidden = this.onPage;
    this.request.hidden = (pending && !moved) || none || !ahead;
    this.update.hidden = none || !behind || worktree.conflicts?.length > 0;
    this.resolve.hidden = none || !(worktree.conflicts?.length || worktree.merging);
    this.discard.hidden = none;
    this.buttons.hidden = state === "closed";
    for (const element of [this.review, this.request, this.resolve, this.discard]) {
      setAttribute(element, "aria-label", `${element.textContent} ${name}`);
    }
    setAttribute(this.update, "aria-label", `Update ${name} from ${target}`);
    this.drawConsequences?.();
  }

  async requestIntegration() {
    const { id: name, integration_target: target } = this.worktree;
    this.on.request?.(Infinity);
    const outcome = await this.requests.run("integrate_worktree", { worktree_name: name }, this.request, "Requesting…");
    this.on.request?.(outcome?.approval_id ?? 0);
    if (!outcome) return;
    const done = outcome.state === "integrated";
    this.on.done(done ? `${name} was integrated into ${target}.` : `${name} waits for your approval.`);
  }

  async updateFromTarget() {
    const { id: name, integration_target: target } = this.worktree;
    const outcome = await this.requests.run("update_worktree", { worktree_name: name }, this.update, "Updating…");
    if (!outcome) return;
    if (outcome.conflicts?.length) this.requests.showError(conflictError(name, target, outcome.conflicts));
    else if (outcome.merged === false) this.on.done(`${name} already had all commits of ${target}.`);
    else this.on.done(`${name} now has the newest commits of ${target}.`);
  }

  /** Merge the target with the conflicts left in the files, and show the steps. */
  async startResolving() {
    const { id: name } = this.worktree;
    const outcome = await this.requests.run("resolve_worktree", { worktree_name: name }, this.resolve, "Merging…");
    if (!outcome) return;
    const close = () => {
      this.clear();
      this.resolve.focus();
    };
    const resolving = new Resolving(this.requests, (text) => {
      this.clear();
      this.on.done(text);
    });
    this.clear();
    if (!resolving.take(outcome)) return;
    resolving.closeButton.addEventListener("click", close);
    this.confirmBox.replaceChildren(resolving.element);
    resolving.focus();
  }

  askDiscard() {
    this.clear();
    this.force = false;
    const cancel = () => {
      this.clear();
      this.discard.focus();
    };
    const branch = checkbox("Delete the branch too", () => this.drawConsequences());
    const list = h("ul", { class: "wb-bullets" });
    const words = {
      label: `Discard ${this.worktree.id}`,
      consequence: "Its directory is removed.",
      reason: "Reason (optional; kept in the history)",
    };
    const onConfirm = (reason, pressed) => this.runDiscard(reason, branch.box.checked, pressed);
    const confirm = new Confirm(words, onConfirm, cancel);
    confirm.element.firstChild.after(list, branch.element);
    this.confirmBox.replaceChildren(confirm.element);
    this.drawConsequences = () => {
      const consequences = discardConsequences(this.worktree, this.agents, branch.box.checked);
      if (list.textContent !== consequences.join(""))
        list.replaceChildren(...consequences.map((text) => h("li", {}, text)));
    };
    this.drawConsequences();
    confirm.focus();
  }

  /** Close what is open under the buttons. */
  clear() {
    this.confirmBox.replaceChildren();
    this.drawConsequences = null;
    this.requests.clearError();
  }

  async runDiscard(reason, delete_branch, pressed) {
    const { id: name, uncommitted, ahead } = this.worktree;
    const force = this.force || Boolean(uncommitted || (delete_branch && ahead));
    const args = { worktree_name: name, reason, delete_branch, force };
    const outcome = await this.requests.run("discard_worktree", args, pressed, "Discarding…");
    if (!outcome) return this.onRefused(pressed);
    this.clear();
    const branch =
      outcome.branch_kept === false ? "Its branch was deleted too" : `Its branch ${outcome.branch_name} is kept`;
    const saved = outcome.bundle ? ` What is on no other branch was saved in ${outcome.bundle}` : "";
    this.on.done(`${name} was discarded. ${branch}.${saved}`);
    return undefined;
  }

  /** It has more to lose than was known here. The error says what; the next press overrules it. */
  onRefused(pressed) {
    this.force = OVERRULABLE.has(this.requests.error?.code);
    if (this.force) setText(pressed, `Discard ${this.worktree.id} anyway`);
  }
}

function conflictError(name, target, files) {
  const message = `${target} conflicts with ${name} in ${shortList(files)}. Nothing was changed. Press “Resolve conflicts…” for the steps.`;
  return { code: "MERGE_CONFLICT", message };
}
