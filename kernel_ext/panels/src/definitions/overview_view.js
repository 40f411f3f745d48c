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

/** Lists of the program's own tools, as settings: label, and what the field shows while nothing is set. */
const TOOL_LISTS = {
  allowedTools: ["Tools of its program: only these", "All that the profile gives; “none” for no tool"],
  disallowedTools: ["Tools of its program: not these", "None; such as WebSearch, Bash(git push:*)"],
};
const NO_TOOL = "none";
const PERMISSION_MODES = [
  ["", "The profile's"],
  ["default", "default: no limit"],
  ["acceptEdits", "acceptEdits: no limit"],
  ["dontAsk", "dontAsk: only what is allowed"],
  ["plan", "plan: changes nothing"],
];

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
      labelled("Settings of the model and the program", this.settings.element),
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

  /** @param {string|null} personaId the persona that the file names, which may not exist */
  metadataForm(personaId) {
    const personas = personaOptions(this.desk.store.tables, personaId, (id) => `${id}, which does not exist`);
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
    const tools = ([label, placeholder]) => ({
      label,
      long: true,
      control: input("", { maxlength: 10_000, placeholder }),
    });
    fields.allowedTools = tools(TOOL_LISTS.allowedTools);
    fields.permissionMode = { label: "Permission mode of its program", control: select(PERMISSION_MODES, "") };
    fields.disallowedTools = tools(TOOL_LISTS.disallowedTools);
    const request = ([key, value]) => [
      "agent_set_setting",
      { agentTarget: this.target, key, value: typed(key, value) },
    ];
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
  const text = (value) => (Array.isArray(value) ? value.join(", ") || NO_TOOL : String(value ?? ""));
  return Object.fromEntries(Object.keys(fields).map((name) => [name, text(values[name])]));
}

/** A setting as it was typed: the value that is stored, null if nothing was typed. */
function typed(key, value) {
  if (value === "") return key === "model" ? "" : null;
  return key in TOOL_LISTS && value.trim() === NO_TOOL ? [] : value;
}
