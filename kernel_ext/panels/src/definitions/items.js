/** The things that a definition lists (rules, references, tools, providers, servers): their fields and operations. */

import { input, select, textarea } from "../lib/controls.js";
import { FieldError } from "./draft_form.js";
import { INCLUDE } from "./state.js";

/**
 * How one kind of thing is edited.
 * @typedef {object} ItemKind
 * @property {(definition: any, name: string) => Record<string, import("./draft_form.js").Field>} fields `name` is "" for a new one
 * @property {(item: any, fields: object) => Record<string, string>} values of its fields
 * @property {string} noun that of its operations, such as `agent_update_rule`
 * @property {string} key their argument with its name
 * @property {{add: string, remove: string}} verbs of those that add and remove it
 * @property {(all: Record<string, string>, name: string) => object} add the arguments for a new one
 * @property {(changed: Record<string, string>, all: Record<string, string>) => object} update those for a change, without the name
 * @property {(item: any) => string} summary one line about it
 * @property {(item: any) => string} [note] its limits, "" if it has none
 * @property {(definition: any, name: string) => string} [about] what to know when it is edited
 */

const VERBS = { add: "add", remove: "delete" };
/** What stands for a secret that is written out, which never leaves the server. Sent back, it means: unchanged. */
const MASK = "••••••";
const NEW_SERVER = { command: "npx", args: ["-y", "some-mcp-server"], env: { TOKEN: "env://TOKEN" } };
const NEW_SCHEMA = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const nameField = (placeholder) => ({
  label: "Name",
  control: input("", { maxlength: 100, required: true, placeholder }),
});
const descriptionField = () => ({ label: "Description", wide: true, control: input("", { maxlength: 2_000 }) });

/** A rule or a reference. @param {"rule"|"reference"} noun @returns {ItemKind} */
function entryKind(noun) {
  return {
    noun,
    key: `${noun}Name`,
    verbs: VERBS,
    fields: () => ({
      name: nameField(noun === "rule" ? "be-polite" : "api-docs"),
      include: { label: "Included", control: select(Object.entries(INCLUDE), noun === "rule" ? "always" : "agent") },
      priorityLevel: {
        label: "Priority (0 comes first)",
        control: input("500", { type: "number", min: 0, max: 999, step: 1, required: true }),
      },
      description: descriptionField(),
      text: { label: "Text", wide: true, control: textarea("", 12, { required: true }) },
    }),
    values: ({ name, description, include, priorityLevel, text }) => ({
      name,
      description: description ?? "",
      include,
      priorityLevel: String(priorityLevel),
      text,
    }),
    add: (all) => ({ [noun]: entry(all) }),
    update: (changed) => ({ [noun]: entry(changed) }),
    summary: ({ description, text }) => description || text.split("\n", 1)[0],
  };
}

function entry(values) {
  return "priorityLevel" in values ? { ...values, priorityLevel: Number(values.priorityLevel) } : values;
}

/** @type {ItemKind} */
const tool = {
  noun: "tool",
  key: "toolName",
  verbs: VERBS,
  fields: () => ({
    name: nameField("summarize"),
    description: descriptionField(),
    parameters: { label: "Parameters (JSON Schema)", wide: true, control: textarea(json(NEW_SCHEMA), 8) },
    prompt: {
      label: "Prompt; {text} is replaced by the parameter text",
      wide: true,
      control: textarea("", 6, { required: true, placeholder: "Summarize in three sentences: {text}" }),
    },
  }),
  values: ({ name, description, parameters, prompt }) => ({
    name,
    description: description ?? "",
    parameters: json(parameters),
    prompt,
  }),
  add: (all) => ({ tool: toolOf(all) }),
  update: (changed) => ({ tool: toolOf(changed) }),
  summary: ({ description, prompt }) => description || prompt.split("\n", 1)[0],
};

function toolOf(values) {
  return "parameters" in values ? { ...values, parameters: object("parameters", values.parameters) } : values;
}

/** A provider: a field for each key of its configuration. @type {ItemKind} */
const provider = {
  noun: "provider",
  key: "providerType",
  verbs: { add: "install", remove: "uninstall" },
  fields: ({ providerInfo }, name) => {
    const { configValues = [] } = providerInfo[name] ?? {};
    return Object.fromEntries(configValues.map((value) => [value.key, configField(value)]));
  },
  values: ({ config }, fields) => Object.fromEntries(Object.keys(fields).map((key) => [key, config[key] ?? ""])),
  add: (all, providerType) => ({ providerType, config: filled(all) }),
  update: (_, all) => ({ config: filled(all) }),
  summary: ({ config }) => Object.keys(config).join(", "),
  about: ({ providerInfo, providers }, name) => {
    const { name: title, description, configValues = [] } = providerInfo[name] ?? { name, description: "" };
    const what = `${title}: ${description}.`;
    if (!configValues.some(({ secret }) => secret)) return what;
    const { config = {} } = providers.find((provider) => provider.name === name) ?? {};
    const isHidden = Object.values(config).includes(MASK);
    const written = isHidden ? ` ${MASK} is a key that is written in agent.yaml; it is not shown.` : "";
    return `${what} A reference (env://, file://, op:// or keyring://) keeps a key out of agent.yaml.${written}`;
  },
};

function configField({ key, caption, hint, secret, required, default: usual }) {
  const label = [caption, hint && `(${hint})`, required ? null : "(optional)"].filter(Boolean).join(" ");
  const placeholder = usual ?? (secret ? `env://${key}` : "");
  return { label, control: input("", { class: "wb-input wb-mono", maxlength: 10_000, required, placeholder }) };
}

function filled(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

/** An MCP server: its configuration as JSON, as MCP clients share it. @type {ItemKind} */
const server = {
  noun: "mcp_server",
  key: "serverName",
  verbs: VERBS,
  fields: (_, name) => ({
    ...(name ? {} : { name: nameField("github") }),
    config: {
      label: "Configuration (JSON, as MCP clients write it)",
      wide: true,
      control: textarea(json(NEW_SERVER), 14, { required: true }),
    },
  }),
  values: ({ config }) => ({ config: json(withoutEmpty(config)) }),
  add: serverOf,
  update: ({ config }) => ({ config: object("config", config) }),
  summary: ({ config }) => (config.url ? config.url : [config.command, ...(config.args ?? [])].join(" ")),
  note: ({ config }) => limitsOf(config),
};

/** Which of a server's tools the model is offered, and which it is asked about before; "" if no rule says. */
function limitsOf({ tools = {}, serverToolDefaults: defaults = {} }) {
  const named = (says) => Object.keys(tools).filter((name) => says(tools[name]));
  const isOffered = ({ include }) => include === "always" || include === "agent";
  const offered = defaults.include === "manual" ? named(isOffered) : null;
  const withheld = defaults.include === "manual" ? [] : named(({ include }) => include === "manual");
  const asked = defaults.permissionRequired ? ["each"] : named((rule) => rule.permissionRequired);
  return [
    offered && `only ${offered.join(", ") || "tools asked for by name"}`,
    withheld.length && `without ${withheld.join(", ")}`,
    asked.length && `asks before ${asked.join(", ")}`,
  ]
    .filter(Boolean)
    .join("; ");
}

/** A configuration without what says nothing: null, and empty lists and objects. */
function withoutEmpty(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, withoutEmpty(item)]);
  const says = (item) => item !== null && (typeof item !== "object" || Object.keys(item).length > 0);
  return Object.fromEntries(entries.filter(([, item]) => says(item)));
}

/** The name and configuration of a new server. A whole `mcpServers` object, as manuals print it, is accepted too. */
function serverOf({ name, config }) {
  const value = object("config", config);
  const pasted = Object.entries(value.mcpServers ?? {});
  if (pasted.length > 1) throw new FieldError("config", "These are several servers. Add them one by one.");
  return pasted.length
    ? { serverName: name || pasted[0][0], config: pasted[0][1] }
    : { serverName: name, config: value };
}

/** @type {Record<string, ItemKind>} */
export const ITEMS = {
  rules: entryKind("rule"),
  references: entryKind("reference"),
  tools: tool,
  providers: provider,
  servers: server,
};

/** JSON as a person edits it. @param {unknown} value */
export function json(value) {
  return JSON.stringify(value, null, 2);
}

/** An object that a person typed as JSON. @param {string} name of the field @param {string} text @returns {any} */
export function object(name, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new FieldError(name, `This is not JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new FieldError(name, "This must be a JSON object, in braces.");
  }
  return value;
}
