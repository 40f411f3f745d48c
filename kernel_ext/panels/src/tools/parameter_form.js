/** The arguments of a tool: a field for each parameter, or all of them as JSON. */

import { Segments, field, input, select, textarea } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { argumentsOf, json, parametersOf } from "./json_schema.js";

const MODES = { fields: "Fields", json: "JSON" };
const NOTHING = "(not set)";

export class ParameterForm {
  /** @param {any} schema of the arguments @param {Record<string, unknown>} [values] to begin with */
  constructor(schema, values = null) {
    this.parameters = parametersOf(schema);
    this.controls = new Map();
    this.problems = new Map();
    this.modes = new Segments(MODES, "Show the arguments as", (mode) => this.show(mode));
    this.fields = h(
      "div",
      { class: "wb-stack wb-roomy" },
      ...(this.parameters ?? []).map((parameter) => this.field(parameter)),
    );
    this.text = textarea(JSON.stringify(values ?? {}, null, 2), 6, { "aria-label": "Arguments as JSON" });
    this.textProblem = problemBox(this.text);
    this.json = h("div", {}, this.text, this.textProblem);
    const isEmpty = this.parameters?.length === 0;
    const none = isEmpty ? h("p", { class: "wb-muted" }, "It takes no arguments.") : null;
    this.modes.element.hidden = isEmpty || !this.parameters;
    this.element = h("div", { class: "wb-stack" }, none, this.modes.element, this.fields, this.json);
    this.show(this.parameters && !values ? "fields" : "json");
    if (isEmpty) this.json.hidden = true;
  }

  /** The first control, to be focused. @returns {HTMLElement|null} */
  get first() {
    return this.mode === "json" ? this.text : (this.controls.values().next().value ?? null);
  }

  field(parameter) {
    const { name, description, required } = parameter;
    const control = controlOf(parameter);
    const problem = problemBox(control);
    this.controls.set(name, control);
    this.problems.set(name, problem);
    const element = field(required ? name : `${name} (optional)`, control);
    element.append(problem, ...(description ? [h("p", { class: "wb-label" }, description)] : []));
    return element;
  }

  /** Show fields or JSON; what was typed in the one is taken along to the other where it can be. */
  show(mode) {
    if (mode === "json" && this.mode === "fields") this.text.value = JSON.stringify(this.read().values, null, 2);
    if (mode === "fields" && this.mode === "json") this.fillFields();
    this.mode = mode;
    this.fields.hidden = mode !== "fields";
    this.json.hidden = mode !== "json";
    this.modes.show(mode);
    this.mark({});
  }

  fillFields() {
    let values;
    try {
      values = json(this.text.value);
    } catch {
      return; // the fields keep what they have
    }
    for (const parameter of this.parameters) {
      const { name } = parameter;
      if (values && name in values) this.controls.get(name).value = textIn(parameter, values[name]);
    }
  }

  read() {
    const typed = Object.fromEntries([...this.controls].map(([name, control]) => [name, control.value]));
    return argumentsOf(this.parameters, typed);
  }

  /** The arguments; null when some of them cannot be sent, which the form then shows. @returns {Record<string, unknown>|null} */
  values() {
    if (this.mode === "json") return this.jsonValues();
    const { values, problems } = this.read();
    this.mark(problems);
    return Object.keys(problems).length ? null : values;
  }

  jsonValues() {
    try {
      const values = json(this.text.value);
      this.mark({});
      return values;
    } catch (error) {
      this.markOne(this.text, this.textProblem, error.message);
      this.text.focus();
      return null;
    }
  }

  /** Show what is wrong with which value, and lead to the first. @param {Record<string, string>} problems by name */
  mark(problems) {
    this.markOne(this.text, this.textProblem, null);
    for (const [name, control] of this.controls) this.markOne(control, this.problems.get(name), problems[name] ?? null);
    const first = [...this.controls.keys()].find((name) => name in problems);
    if (first) this.controls.get(first).focus();
  }

  markOne(control, box, problem) {
    box.hidden = problem === null;
    if (problem === null) control.removeAttribute("aria-invalid");
    else {
      control.setAttribute("aria-invalid", "true");
      box.replaceChildren(icon("warning"), h("span", {}, problem));
    }
  }
}

function problemBox(control) {
  const box = h("div", { class: "wb-message wb-error", id: freshId("problem"), hidden: true });
  control.setAttribute("aria-describedby", box.id);
  return box;
}

function controlOf(parameter) {
  const { kind, initial, options, required } = parameter;
  if (kind === "choice") {
    const choices = options.map((value, at) => [String(at), String(value)]);
    return select(required ? choices : [["", NOTHING], ...choices], initial);
  }
  if (kind === "json") return textarea(initial, 3, { placeholder: "JSON" });
  if (kind === "text") return textarea(initial, 1, { class: "wb-input wb-area wb-short-area" });
  const type = kind === "secret" ? "password" : "text";
  return input(initial, { type, inputmode: kind === "secret" ? null : "decimal" });
}

function textIn({ kind, options }, value) {
  if (kind === "choice") return options.includes(value) ? String(options.indexOf(value)) : "";
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}
