/** What a definition is and how its model is used: its metadata and settings as forms, and who uses it. */

import { Facts, labelled } from "../lib/blocks.js";
import { input, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { dateTime, shortList } from "../lib/format.js";
import { personaOptions } from "../link/choices.js";
import { DraftForm } from "./draft_form.js";
import { MODES } from "./state.js";

const PERMISSION = {
  tool: "As each tool says",
  always: "Always ask",
  never: "Never ask",
};
/** Settings: label, and the attributes of a number's field. */
const NUMBERS = {
  maxOutputTokens: ["Most tokens of an answer", { min: 1, max: 1_000_000, step: 1 }],
  maxChatTurns: ["Most steps of an answer", { min: 1, max: 1_000, step: 1, placeholder: "20, or the program's own" }],
  temperature: ["Temperature (0 to 2)", { min: 0, max: 2, step: "any" }],
  topP: ["Top P (0 to 1)", { min: 0, max: 1, step: "any" }],
};

export class OverviewView {
  /** @param {any} desk @param {string} agentTarget @param {any} definition @param {import("./pane.js").Navigation} on */
  constructor(desk, agentTarget, definition, on) {
    this.desk = desk;
    this.target = agentTarget;
    this.on = on;
    this.facts = new Facts();
    this.metadata = this.metadataForm(definition.info.metadata.persona);
    this.settings = this.settingsForm();
    this.element = h(
      "div",
      { class: "wb-stack wb-roomy" },
      this.metadata.element,
      labelled("Settings of the model", this.settings.element),
      labelled("Details", this.facts.element),
    );
    this.update(definition);
  }

  get isChanged() {
    return this.metadata.isChanged || this.settings.isChanged;
  }

  focus() {
    this.metadata.focus();
  }

  /** @param {string|null} named the persona that the file names, which may not exist */
  metadataForm(named) {
    const personas = personaOptions(this.desk.store.tables, named, (id) => `${id}, which does not exist`);
    const fields = {
      name: { label: "Name", control: input("", { maxlength: 100, required: true }) },
      mode: { label: "Mode", control: select(Object.entries(MODES), "interactive") },
      persona: { label: "Persona", control: select([["", "None"], ...personas], "") },
      version: { label: "Version", control: input("", { maxlength: 50, required: true }) },
      description: { label: "Description", long: true, control: input("", { maxlength: 2_000 }) },
    };
    const requests = (changed) => [["agent_update_metadata", { agentTarget: this.target, metadata: cleared(changed) }]];
    return this.form("Metadata", fields, requests);
  }

  settingsForm() {
    const number = (label, attributes) => ({
      label,
      control: input("", { type: "number", placeholder: "The provider's own", ...attributes }),
    });
    const fields = {
      model: {
        label: "Model",
        control: input("", { maxlength: 200, placeholder: "provider:model", pattern: "([a-z]+:.+)?" }),
      },
      toolPermission: { label: "Ask before a tool runs", control: select(Object.entries(PERMISSION), "tool") },
      ...Object.fromEntries(Object.entries(NUMBERS).map(([name, words]) => [name, number(...words)])),
    };
    const set = (key, value) => (key in NUMBERS && value === "" ? null : value);
    const request = ([key, value]) => ["agent_set_setting", { agentTarget: this.target, key, value: set(key, value) }];
    return this.form("Settings", fields, (changed) => Object.entries(changed).map(request));
  }

  form(name, fields, requests) {
    const saved = () => {
      this.desk.announce(`${name} saved.`);
      this.on.changed();
    };
    return new DraftForm(this.desk, name, fields, { requests, saved, draft: () => this.on.draft() });
  }

  /** @param {any} definition as it is now */
  update(definition) {
    const { info } = definition;
    this.metadata.update(asText({ persona: "", ...info.metadata }, this.metadata.fields));
    this.settings.update(asText(info.settings, this.settings.fields));
    this.refresh(definition);
  }

  /** Bring up to date what is not read with the definition. @param {any} definition */
  refresh({ info }) {
    const users = this.users(info.id);
    this.facts.update([
      ["Directory", info.path],
      ["Id", info.id],
      ["Content hash", h("code", {}, info.contentHash)],
      ["Created", info.metadata.created && dateTime(info.metadata.created)],
      ["Used by", users.length ? shortList(users, 6) : "no agent"],
    ]);
  }

  users(id) {
    const agents = [...this.desk.store.tables.agents.values()];
    return agents.filter((agent) => agent.definition_id === id).map(({ agent_id: name }) => name);
  }
}

/** A cleared choice is null. */
function cleared(values) {
  return "persona" in values ? { ...values, persona: values.persona || null } : values;
}

/** The values of fields as they are typed. */
function asText(values, fields) {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, String(values[name] ?? "")]));
}
