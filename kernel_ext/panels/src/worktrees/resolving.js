/** The steps of resolving the conflicts of a worktree with its target, while the merge is unfinished. */

import { message } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h, prose } from "../lib/dom.js";

export class Resolving {
  /**
   * @param {import("../link/request_runner.js").RequestRunner} requests
   * @param {(text: string) => void} onDone the merge is committed or undone
   */
  constructor(requests, onDone) {
    this.requests = requests;
    this.onDone = onDone;
    this.lead = h("div", {});
    this.steps = h("ol", { class: "wb-bullets" });
    this.finish = button("Commit the merge", "wb-button wb-primary", () => this.proceed("finish", this.finish));
    this.look = button("Check again", "wb-button", () => this.proceed("start", this.look));
    this.abort = button("Undo the merge", "wb-button wb-danger", () => this.proceed("abort", this.abort));
    this.closeButton = button("Later", "wb-link");
    const buttons = [this.finish, this.look, this.abort, this.closeButton];
    this.element = h(
      "div",
      { class: "wb-box wb-stack wb-roomy", role: "group", "aria-label": "Resolve conflicts", tabindex: -1 },
      this.lead,
      this.steps,
      h("div", { class: "wb-line" }, ...buttons),
    );
  }

  focus() {
    this.element.focus();
  }

  async proceed(step, pressed) {
    const args = { worktree_name: this.name, step };
    const outcome = await this.requests.run("resolve_worktree", args, pressed);
    if (outcome) this.take(outcome);
  }

  /** Show where it stands; false if nothing is left to do. @param {any} outcome */
  take(outcome) {
    const { worktree: name, target, state, conflicts, steps } = outcome;
    this.name = name;
    const ended = {
      merged: `${target} is merged into ${name}. Request its integration again.`,
      up_to_date: `${name} already has all commits of ${target}.`,
      aborted: `The merge was undone; ${name} is as it was.`,
    }[state];
    if (ended) {
      this.onDone(ended);
      return false;
    }
    const files = conflicts.map((path) => h("li", {}, h("code", { class: "wb-wrap" }, path)));
    const left = files.length ? "These files are in conflict:" : "No file is in conflict any more. Commit the merge.";
    const lead = message(files.length ? "warning" : "completed", `${target} is being merged into ${name}. ${left}`);
    this.lead.replaceChildren(lead, h("ul", { class: "wb-list" }, ...files));
    this.steps.replaceChildren(...steps.map((text) => h("li", {}, ...prose(text))));
    this.steps.hidden = !files.length;
    return true;
  }
}
