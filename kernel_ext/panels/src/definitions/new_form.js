/** A form that creates a definition: an empty one, from a template, from a persona, or as a copy. */

import { field, form, formButtons, input, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { personaOptions } from "../link/choices.js";
import { RequestRunner } from "../link/request_runner.js";
import { MODES, proposedPath } from "./state.js";

const EMPTY = "empty:";

export class NewDefinitionForm {
  /** @param {any} desk @param {any[]} rows the definitions there are @param {(outcome: any|null) => void} onDone null: it was cancelled */
  constructor(desk, rows, onDone) {
    this.desk = desk;
    this.rows = rows;
    this.requests = new RequestRunner(desk);
    this.onDone = onDone;
    this.source = select([[EMPTY, "Nothing: an empty definition"]], EMPTY, { on: { change: () => this.onSource() } });
    this.name = input("", {
      maxlength: 100,
      required: true,
      placeholder: "Careful reviewer",
      on: { input: () => this.propose() },
    });
    this.path = input("", { maxlength: 1_000, required: true, placeholder: "./agents/careful-reviewer" });
    this.mode = select(Object.entries(MODES), "interactive");
    this.about = h("p", { class: "wb-muted", hidden: true });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Create");
    const cancel = () => onDone(null);
    this.modeField = field("Mode", this.mode);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "New definition" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields" },
        field("Name", this.name),
        field("Start from", this.source),
        field("Directory", this.path),
        this.modeField,
      ),
      this.about,
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
    /** The directory that was proposed last: another one was typed, and stays. */
    this.proposed = "";
    this.templates = [];
    this.fillSources(EMPTY);
    this.load();
  }

  focus() {
    this.name.focus();
  }

  /** Start as a copy. @param {string} path */
  copyOf(path) {
    this.fillSources(`copy:${path}`);
    this.name.value = `${this.rows.find(({ id }) => id === path).name} copy`;
    this.propose();
    this.onSource();
  }

  async load() {
    try {
      const { templates } = await new RequestRunner(this.desk).send("agent_list_templates", {});
      this.templates = templates;
      this.fillSources(this.source.value);
    } catch (error) {
      this.requests.showError(error);
    }
  }

  fillSources(value) {
    const personas = personaOptions(this.desk.store.tables);
    const groups = [
      ["", [[EMPTY, "Nothing: an empty definition"]]],
      ["Templates", this.templates.map(({ name, title }) => [`template:${name}`, title])],
      ["Personas", personas.map(([id, name]) => [`persona:${id}`, name])],
      ["Copies", this.rows.map(({ id, name }) => [`copy:${id}`, `Copy of ${name}`])],
    ];
    setOptions(
      this.source,
      groups.filter(([, options]) => options.length),
      value,
    );
  }

  onSource() {
    const [kind, id] = this.chosen();
    const description = this.templates.find(({ name }) => kind === "template" && name === id)?.description;
    this.about.hidden = !description;
    this.about.replaceChildren(description ?? "");
    this.modeField.hidden = kind !== "empty";
  }

  chosen() {
    const { value } = this.source;
    const at = value.indexOf(":");
    return [value.slice(0, at), value.slice(at + 1)];
  }

  propose() {
    if (this.path.value !== this.proposed) return;
    this.proposed = proposedPath(this.name.value);
    this.path.value = this.proposed;
  }

  /** The operation that creates it. @returns {[string, object]} */
  request() {
    const [kind, id] = this.chosen();
    const name = this.name.value.trim();
    const path = this.path.value.trim();
    const requests = {
      empty: ["agent_create", { agentPath: path, name, mode: this.mode.value }],
      template: ["agent_create_from_template", { templateName: id, agentPath: path, name }],
      persona: ["agent_create_from_persona", { personaId: id, agentPath: path, name }],
      copy: ["agent_clone", { sourceAgent: id, targetPath: path, newName: name }],
    };
    return requests[kind];
  }

  async run() {
    const outcome = await this.requests.run(...this.request(), this.submit, "Creating…");
    if (outcome) this.onDone(outcome);
    else if (this.requests.error) this.fieldOf(this.requests.error).focus();
  }

  fieldOf({ code }) {
    return code === "AGENT_EXISTS" || code === "INVALID_PATH" ? this.path : this.name;
  }
}
