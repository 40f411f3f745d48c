/** What can be done to a worktree, on its card and on its page: the buttons, what they ask first, and what went wrong. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { button, checkbox } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { hasMoved, questionAbout } from "../integration/state.js";
import { counted, some } from "../lib/format.js";
import { lossOf } from "./state.js";

/** Refusals that can be overruled: what would be lost is saved first. */
const LOSSES = new Set(["WORKTREE_DIRTY", "COMMITS_ONLY_HERE"]);
const SETTLED = new Set(["queued", "integrating", "closed"]);

export class WorktreeActions {
  /**
   * @param {any} desk
   * @param {{open: () => void, said: (text: string) => void}} on its page is wanted; something was done
   * @param {boolean} [onPage] the changes are on screen already
   */
  constructor(desk, on, onPage = false) {
    this.desk = desk;
    this.on = on;
    this.onPage = onPage;
    this.insists = false;
    this.asker = new Asker(desk);
    this.review = button("", "wb-button wb-compact", on.open);
    this.ask = button("Ask to integrate", "wb-button wb-compact", () => this.integrate());
    this.renew = button("Update", "wb-button wb-compact", () => this.update());
    this.drop = button("Discard…", "wb-link wb-quiet wb-push", () => this.discard());
    this.asked = h("div", {});
    this.buttons = h("div", { class: "wb-line wb-worktree-buttons" }, this.review, this.ask, this.renew, this.drop);
  }

  /** @param {any} worktree @param {string} state @param {Set<string>} agents who works there */
  show(worktree, state, agents) {
    this.worktree = worktree;
    this.agents = [...agents];
    const { id: name, ahead, behind, integration_target: target } = worktree;
    const decide = state === "awaiting" || state === "failing" || state === "checking";
    setText(this.review, decide ? "Review and approve" : "Review");
    this.review.classList.toggle("wb-primary", decide);
    this.review.hidden = this.onPage;
    const moved = decide && hasMoved(worktree, questionAbout(worktree, this.desk.store.tables));
    this.ask.hidden = (decide && !moved) || SETTLED.has(state) || !ahead;
    if (!this.asker.sending) setText(this.ask, moved ? "Ask again" : "Ask to integrate");
    this.renew.hidden = SETTLED.has(state) || !behind;
    this.renew.title = `Bring ${counted(behind ?? 0, "commit")} of ${target} into ${name}`;
    this.drop.hidden = SETTLED.has(state);
    for (const [one, words] of [
      [this.review, this.review.textContent],
      [this.ask, this.ask.textContent],
      [this.renew, `Update from ${target}`],
      [this.drop, "Discard…"],
    ]) {
      one.setAttribute("aria-label", one === this.renew ? `Update ${name} from ${target}` : `${words} ${name}`);
    }
    this.buttons.hidden = state === "closed";
    this.tell?.();
  }

  async integrate() {
    const { id: name, integration_target: target } = this.worktree;
    const outcome = await this.asker.ask("integrate_worktree", { worktree_name: name }, this.ask, "Asking…");
    if (outcome)
      this.on.said(
        outcome.state === "integrated" ? `${name} is integrated into ${target}.` : `${name} waits for your approval.`,
      );
  }

  async update() {
    const { id: name, integration_target: target } = this.worktree;
    const outcome = await this.asker.ask("update_worktree", { worktree_name: name }, this.renew, "Updating…");
    if (!outcome) return;
    if (outcome.conflicts?.length)
      this.asker.show({
        code: "MERGE_CONFLICT",
        message: `${target} conflicts with ${name} in ${some(outcome.conflicts)}. Nothing was changed. Have an agent resolve it there, or run \`workbench worktrees run ${name} -- git merge ${target}\`.`,
      });
    else
      this.on.said(
        outcome.merged === false
          ? `${name} had all of ${target} already.`
          : `${name} has the newest commits of ${target} now.`,
      );
  }

  discard() {
    this.asker.clear();
    this.insists = false;
    const close = () => {
      this.put(null);
      this.drop.focus();
    };
    const branch = checkbox("Delete the branch too", () => this.tell());
    const losses = h("ul", { class: "wb-bullets" });
    const words = {
      label: `Discard ${this.worktree.id}`,
      why: "Its directory is removed.",
      reason: "Reason (optional; kept in the history)",
    };
    const question = new Confirm(
      words,
      (reason, pressed) => this.discarded(reason, branch.box.checked, pressed),
      close,
    );
    question.element.firstChild.after(losses, branch.element);
    this.put(question.element, () => {
      const wanted = lossOf(this.worktree, this.agents, branch.box.checked);
      if (losses.textContent !== wanted.join("")) losses.replaceChildren(...wanted.map((text) => h("li", {}, text)));
    });
    question.focus();
  }

  /** Ask under the buttons; `tell` says there what follows, as long as it is asked. */
  put(element, tell = null) {
    this.asked.replaceChildren(...(element ? [element] : []));
    this.tell = tell;
    tell?.();
  }

  clear() {
    this.put(null);
    this.asker.clear();
  }

  async discarded(reason, delete_branch, pressed) {
    const { id: name, uncommitted, ahead } = this.worktree;
    const force = this.insists || Boolean(uncommitted || (delete_branch && ahead));
    const outcome = await this.asker.ask(
      "discard_worktree",
      { worktree_name: name, reason, delete_branch, force },
      pressed,
      "Discarding…",
    );
    if (!outcome) return this.refused(pressed);
    this.put(null);
    const kept =
      outcome.branch_kept === false ? "Its branch is deleted too" : `Its branch ${outcome.branch_name} stays`;
    this.on.said(
      `${name} was discarded. ${kept}.${outcome.bundle ? ` What is nowhere else is in ${outcome.bundle}` : ""}`,
    );
    return undefined;
  }

  /** It holds more than was known here: what is said of that is read before it is pressed again. */
  refused(pressed) {
    this.insists = LOSSES.has(this.asker.problem.querySelector("code").textContent);
    if (this.insists) setText(pressed, `Discard ${this.worktree.id} all the same`);
  }
}
