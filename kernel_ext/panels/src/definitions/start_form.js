/** A form that starts an agent with a definition. */

import { checkbox, field, form, formButtons, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { personaOptions, worktreeOptions } from "../link/choices.js";
import { RequestRunner } from "../link/request_runner.js";

const SCRIPT = "script";
/** What stands for a worktree that is made for the agent, and for none. */
const NEW = "+";
const NONE = "";

export class StartForm {
  /**
   * @param {any} desk
   * @param {any} definition as it was read
   * @param {(outcome: any|null) => void} onDone null: it was cancelled
   */
  constructor(desk, definition, onDone) {
    const { info, rules, references } = definition;
    const { tables } = desk.store;
    this.path = info.path;
    this.requests = new RequestRunner(desk);
    this.onDone = onDone;
    this.persona = select(personaOptions(tables), info.metadata.persona ?? "implementer");
    this.profile = select([[SCRIPT, SCRIPT]], SCRIPT);
    this.worktree = select([[NONE, "None"], [NEW, "A new one"], ...worktreeOptions(tables)], NONE);
    const manual = [...rules, ...references].filter(({ include }) => include === "manual");
    this.included = manual.map(({ name }) => ({ name, ...checkbox(name, () => {}) }));
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Start");
    this.element = this.build(info.name);
    this.load();
  }

  build(name) {
    const cancel = () => this.onDone(null);
    const fields = [field("Persona", this.persona), field("Program", this.profile), field("Worktree", this.worktree)];
    const boxes = this.included.map(({ element }) => element);
    return form(
      { class: "wb-confirm wb-stack", "aria-label": `Start an agent with ${name}` },
      { submit: () => this.run(), escape: cancel },
      h("div", { class: "wb-fields wb-fields-3" }, ...fields),
      boxes.length ? h("div", { class: "wb-line" }, h("span", { class: "wb-muted" }, "Also include"), ...boxes) : null,
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    this.persona.focus();
  }

  async load() {
    try {
      const { profiles } = await this.requests.send("list_profiles", {});
      const label = ({ name, available }) => (available ? name : `${name} (not installed)`);
      setOptions(this.profile, [["", profiles.map((profile) => [profile.name, label(profile)])]]);
    } catch (error) {
      this.requests.showError(error);
    }
  }

  async run() {
    const { value } = this.worktree;
    const args = {
      definition: this.path,
      persona_id: this.persona.value,
      profile: this.profile.value,
      include: this.included.filter(({ box }) => box.checked).map(({ name }) => name),
      ...(value === NEW ? { new_worktree: true } : { assigned_worktree: value || null }),
    };
    const outcome = await this.requests.run("spawn_agent", args, this.submit, "Starting…");
    if (outcome) this.onDone(outcome);
  }
}
