/** One worktree, opened: how it stands, the question about it, and what it would bring. */

import { Card } from "../inbox/card.js";
import { questionAbout } from "../integration/state.js";
import { button } from "../lib/controls.js";
import { DiffView } from "./diff_view.js";
import { freshId, h, setText } from "../lib/dom.js";
import { inProject } from "../lib/format.js";
import { message } from "../lib/message.js";
import { WorktreeActions } from "./actions.js";
import { factsOf, setCounts, stateIcon } from "./card.js";
import { stateWords, troublesOf } from "./state.js";

export class WorktreePage {
  /** @param {any} desk @param {{close: () => void, said: (text: string) => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    const id = freshId("page");
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("h3", { class: "wb-heading wb-cut", id, tabindex: -1 });
    this.word = h("span", { class: "wb-muted" });
    this.branches = h("div", { class: "wb-muted wb-wrap" });
    this.counts = h("div", { class: "wb-digits" });
    this.facts = h("div", { class: "wb-muted wb-wrap" });
    this.clashes = h("div", {});
    this.question = h("ul", { class: "wb-cards wb-frame wb-attention", "aria-label": "Waiting for you" });
    this.actions = new WorktreeActions(desk, { open: () => {}, said: on.said }, true);
    this.diff = new DiffView(desk);
    this.element = h(
      "div",
      {
        class: "wb-worktree-page wb-stack",
        role: "region",
        "aria-labelledby": id,
        hidden: true,
        on: { keydown: (event) => this.onKey(event) },
      },
      h(
        "div",
        { class: "wb-worktree-head" },
        button("‹ Worktrees", "wb-button", on.close, "Back to all worktrees"),
        this.mark,
        this.title,
        this.word,
        this.actions.buttons,
      ),
      this.actions.asked,
      this.actions.asker.problem,
      h("div", {}, this.branches, this.counts, this.facts, this.clashes),
      this.question,
      this.diff.element,
    );
  }

  /** @param {any} worktree */
  open(worktree) {
    this.name = worktree.id;
    this.state = null;
    this.card = null;
    this.question.replaceChildren();
    this.actions.clear();
    this.element.hidden = false;
    this.diff.show(worktree);
  }

  close() {
    this.name = null;
    this.element.hidden = true;
    this.diff.clear();
  }

  focus() {
    this.title.focus();
  }

  /** @param {any} worktree @param {string} state @param {{agents: Set<string>, tasks: number}} there @param {number} now @param {boolean} enabled */
  update(worktree, state, there, now, enabled) {
    if (this.state !== state) this.mark.replaceChildren(stateIcon(state));
    this.state = state;
    setText(this.title, worktree.id);
    setText(this.word, stateWords(worktree, state));
    setText(this.branches, `${worktree.branch_name} → ${worktree.integration_target} · ${inProject(worktree.path)}`);
    this.branches.title = worktree.path;
    setCounts(this.counts, worktree);
    setText(this.facts, factsOf(worktree, there, now).join(" · "));
    this.drawClashes(worktree);
    this.actions.show(worktree, state, there.agents);
    this.drawQuestion(worktree, now, enabled);
    if (state !== "closed") this.diff.update(worktree);
  }

  drawClashes(worktree) {
    const found = troublesOf(worktree);
    if (found.join("\n") === this.clashed) return;
    this.clashed = found.join("\n");
    this.clashes.replaceChildren(...found.map((text) => message("warning", text)));
  }

  /** The same card as in the inbox; once it is decided here it stays and says what became of it. */
  drawQuestion(worktree, now, enabled) {
    const question = questionAbout(worktree, this.desk.store.tables);
    if (question && question.id !== this.card?.approval.id) {
      this.card = new Card(question, {
        ...this.desk,
        tables: this.desk.store.tables,
        onPicked: () => {},
        onSettled: () => {},
        onDismissed: () => this.dismiss(),
      });
      this.question.replaceChildren(this.card.element);
    }
    const { card } = this;
    if (!card) return;
    if (question) card.take(question);
    else if (card.state === "waiting") this.gone(card);
    card.refresh(enabled);
    card.tick(now);
  }

  gone(card) {
    if (!card.problem.hidden) card.settleWithProblem();
    else card.settle("Decided elsewhere.", false);
  }

  dismiss() {
    this.card = null;
    this.question.replaceChildren();
    this.title.focus();
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    this.on.close();
  }
}
