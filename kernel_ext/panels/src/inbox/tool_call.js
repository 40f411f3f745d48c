/** How the question whether a tool may be called looks on its card: what it would be called with, and what has changed. */

import { field, input, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";
import { longText } from "../contents/values.js";
import { nodeName } from "../network/peers.js";

/** @type {import("./kinds.js").Kind} */
export const toolCall = {
  icon: "tool",
  label: "tool call",
  approve: (_, detailed) => (detailed ? "Allow such calls" : "Allow once"),
  approving: "Allowing…",
  also: ({ payload }) => scopes(payload).map(([remember, label]) => ({ label, choices: { remember } })),
  details: ({ payload }) => new SuchCalls(payload),
  needsButton: true,
  ban: {
    label: "Never allow this tool",
    request: ({ payload }) => ["set_tool_permission", { name: payload.tool, permission: "never" }],
  },
  title: ({ payload }) => payload.tool,
  origin: ({ payload }) => `called by ${callerText(payload)}`,
  summary: ({ payload }) => [
    h("div", {}, payload.origin_of_tool, payload.description ? ` · it says: “${quoted(payload)}”` : null),
    h("div", { class: "wb-label" }, "Arguments"),
    longText(JSON.stringify(payload.arguments, null, 2), `Copy the arguments of ${payload.tool}`, () => {}),
    ...changed(payload.changes ?? []),
  ],
  warnings: ({ payload }) =>
    payload.changes?.length ? ["The tool is not what you allowed: what it says about itself has changed."] : [],
  discouraged: ({ payload }) => Boolean(payload.changes?.length),
  done: (outcome) => DONE[outcome?.remember] ?? "Allowed.",
};

const DONE = {
  conversation: "Allowed, and in this conversation from now on without asking you.",
  task: "Allowed, and for this task from now on without asking you.",
  always: "Allowed, and from now on without asking you.",
};

/** For how long a call can be allowed. @returns {[string, string][]} */
function scopes({ conversation_id: conversation, task_id: task }) {
  const all = [
    conversation && ["conversation", "Allow in this conversation"],
    task && ["task", `Allow for task ${task}`],
    ["always", "Always allow"],
  ];
  return all.filter(Boolean);
}

/** A form for what else is allowed: for how long, and with which arguments. */
class SuchCalls {
  constructor(payload) {
    this.scope = select(scopes(payload), "always", { class: "wb-input" });
    this.first = this.scope;
    const pattern = (value) => input(typeof value === "string" ? value : JSON.stringify(value), { class: "wb-input" });
    this.patterns = Object.entries(payload.arguments).map(([name, value]) => [name, pattern(value)]);
    const fields = this.patterns.map(([name, control]) => field(name, control));
    this.element = h(
      "div",
      { class: "wb-box wb-stack wb-roomy" },
      field("How long", this.scope),
      h("div", { class: "wb-muted" }, "Only calls with these arguments are allowed; * is any text."),
      ...fields,
    );
  }

  choices() {
    const patterns = this.patterns.map(([name, { value }]) => [name, value]);
    return { remember: this.scope.value, arguments: Object.fromEntries(patterns) };
  }

  fieldOf({ details }) {
    const wrong = this.patterns.find(([name]) => details?.problems?.includes(name));
    return wrong ? wrong[1] : null;
  }
}

function callerText({ caller, conversation_id: conversation }) {
  return conversation ? `the model of a conversation (${caller})` : caller;
}

/** What the tool says about itself, which cannot end the quotes around it. */
function quoted({ description }) {
  return oneLine(description, 300).replace(/[“”]/g, '"');
}

/** What the tool said about itself when it was allowed, and says now. */
function changed(changes) {
  if (!changes.length) return [];
  const line = (side, value) =>
    value === null
      ? null
      : h("div", { class: `wb-diff-${side} wb-prose` }, h("span", { class: "wb-sr" }, `${side}: `), textOf(value));
  const entry = ({ path, before, after }) =>
    h("li", {}, h("code", {}, path), line("removed", before), line("added", after));
  return [h("div", { class: "wb-label" }, "What has changed"), h("ul", { class: "wb-changes" }, ...changes.map(entry))];
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @type {import("./kinds.js").Kind} */
export const peerCall = {
  ...toolCall,
  label: "call from another node",
  approve: () => "Allow once",
  also: () => [{ label: "Always allow this node", choices: { remember: "always" } }],
  details: undefined,
  ban: {
    label: "Never allow this node to call this tool",
    request: ({ payload }) => [
      "set_peer_permission",
      { peer: payload.origin.node, trait: payload.tool, permission: "never" },
    ],
  },
  origin: ({ payload: { origin } }) =>
    `called by the node ${nodeName(origin.node)}, whose caller says it is ${origin.says}`,
  facts: ({ payload }) => payload.origin.node,
  done: (outcome) =>
    outcome?.remember === "always" ? "Allowed, and for this node from now on without asking you." : "Allowed.",
};
