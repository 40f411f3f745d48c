/** A form that creates a worktree. */

import { field, form, formButtons, input } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

export class NewWorktreeForm {
  /** @param {any} desk @param {(outcome: any|null) => void} onDone null: it was cancelled */
  constructor(desk, onDone) {
    this.requests = new RequestRunner(desk);
    this.onDone = onDone;
    this.name = input("", { maxlength: 60, required: true, placeholder: "robust-statistics" });
    const plain = () => setText(this.submit, "Create");
    this.branch = input("", { maxlength: 200, placeholder: "wb/<name>/main", on: { input: plain } });
    this.source = input("", { maxlength: 200, placeholder: "the current branch" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Create");
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "New worktree" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Name", this.name),
        field("Branch (optional)", this.branch),
        field("Start from, and integrate into (optional)", this.source),
      ),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    this.name.focus();
  }

  async run() {
    const args = {
      name: this.name.value.trim(),
      branch_name: this.branch.value.trim() || null,
      source_branch: this.source.value.trim() || null,
    };
    const outcome = await this.requests.run("create_worktree", args, this.submit, "Creating…");
    if (outcome) this.onDone(outcome);
    else if (this.requests.error?.code === "BRANCH_EXISTS" && !args.branch_name)
      this.offer(this.requests.error.details);
    else this.name.focus();
  }

  /** The usual branch exists: put it into its field, so that the next press continues it. */
  offer({ branch }) {
    this.branch.value = branch;
    setText(this.submit, `Continue ${branch}`);
    this.submit.focus();
  }
}
