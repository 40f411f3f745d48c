/** A form that creates a task. */

import { field, form, formButtons, input, select, setOptions, textarea } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { personaOptions, worktreeOptions } from "../link/choices.js";
import { RequestRunner } from "../link/request_runner.js";

const PREFERRED = "implementer";
const NONE = "";

export class NewTaskForm {
  /** @param {any} desk @param {(outcome: any|null) => void} onDone null: it was cancelled */
  constructor(desk, onDone) {
    this.tables = desk.store.tables;
    this.requests = new RequestRunner(desk);
    this.onDone = onDone;
    this.title = input("", { maxlength: 200, required: true, placeholder: "Clean the raw table" });
    this.persona = select(personaOptions(this.tables), PREFERRED);
    this.worktree = select(this.worktrees(), NONE);
    this.command = input("", { maxlength: 10_000, placeholder: "python scripts/clean.py" });
    this.description = textarea("", 3, { placeholder: "What is to be done, and when it is done" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Create");
    this.element = this.build();
  }

  build() {
    const cancel = () => this.onDone(null);
    const choices = [field("Title", this.title), field("Persona", this.persona), field("Worktree", this.worktree)];
    return form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "New task" },
      { submit: () => this.run(), escape: cancel },
      h("div", { class: "wb-fields wb-fields-3" }, ...choices),
      field("Command that does it (optional; else an agent decides how)", this.command),
      field("Description (optional)", this.description),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  worktrees() {
    return [[NONE, "None"], ...worktreeOptions(this.tables)];
  }

  /** Offer what there is now; what was chosen stays. */
  update() {
    setOptions(this.persona, [["", personaOptions(this.tables)]]);
    setOptions(this.worktree, [["", this.worktrees()]]);
  }

  focus() {
    this.title.focus();
  }

  async run() {
    const args = {
      title: this.title.value.trim(),
      persona_id: this.persona.value,
      target_worktree: this.worktree.value || null,
      run: this.command.value.trim() || null,
      description: this.description.value.trim(),
    };
    const outcome = await this.requests.run("create_task", args, this.submit, "Creating…");
    if (outcome) this.onDone(outcome);
    else this.title.focus();
  }
}
