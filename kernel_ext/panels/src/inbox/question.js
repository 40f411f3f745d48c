/**
 * How questions look on their cards. Of an MCP server: a form by its schema, or an address that is never opened. Of an
 * agent: its options, or a text.
 */

import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";
import { nodeName } from "../network/peers.js";
import { ParameterForm } from "../tools/parameter_form.js";

/** @type {import("./kinds.js").Kind} */
export const question = {
  icon: "question",
  label: "question of a server",
  approve: ({ payload }) => (payload.url ? "Done there" : "Answer"),
  approving: "Answering…",
  reject: "Decline…",
  rejects: "Decline",
  rejected: "Declined.",
  also: () => [{ label: "Not now", choices: { action: "cancel" } }],
  opensDetails: () => true,
  needsButton: true,
  title: ({ payload }) => payload.tool,
  origin: ({ payload }) => `asked by the MCP server ${payload.server}, ${callerText(payload)}`,
  summary: ({ payload }) => [
    h("div", { class: "wb-wrap" }, `The server asks: “${oneLine(payload.message, 500).replace(/[“”]/g, '"')}”`),
    ...address(payload),
  ],
  warnings: ({ payload: { sensitive, url } }) => [
    ...(sensitive.length ? [`${sensitive.join(", ")} looks like a secret. The server gets what you type.`] : []),
    ...(url ? ["See whose address this is before you open it. Workbench does not open it."] : []),
  ],
  discouraged: ({ payload: { sensitive, url } }) => Boolean(sensitive.length || url),
  details: ({ payload }) => new Answer(payload),
  done: (outcome) => (outcome?.action === "cancel" ? "The server was told that you have not chosen." : "Answered."),
};

/** @type {import("./kinds.js").Kind} */
export const agentQuestion = {
  icon: "question",
  label: "question of an agent",
  approve: () => "Answer",
  approving: "Answering…",
  reject: "Decline…",
  rejects: "Decline",
  rejected: "The agent was told to decide itself.",
  opensDetails: () => true,
  needsButton: true,
  title: ({ payload }) => payload.agent,
  origin: ({ payload }) => (payload.task_id ? `asked while it does task ${payload.task_id}` : "asked by the agent"),
  summary: ({ payload }) => [h("div", { class: "wb-wrap" }, payload.message)],
  discouraged: () => false,
  details: ({ payload }) => new Answer(payload),
  done: () => "The agent has the answer.",
};

function callerText({ caller, node, conversation_id: conversation }) {
  if (node) return `for a call of the node ${nodeName(node)}`;
  return conversation ? `for the model of a conversation (${caller})` : `for a call of ${caller}`;
}

/** Where the server wants the person to go: a link to press, where it is one of the web. */
function address({ url, is_link: isLink }) {
  if (!url) return [];
  const attributes = { class: "wb-wrap", href: url, target: "_blank", rel: "noopener noreferrer" };
  return [h("div", {}, "At ", isLink ? h("a", attributes, url) : h("code", { class: "wb-wrap" }, url))];
}

/** The form of the answer. */
class Answer {
  constructor({ form, url }) {
    this.fields = new ParameterForm(form);
    this.first = this.fields.first;
    this.element = h("div", { class: "wb-box wb-stack wb-roomy" }, this.fields.element);
    const count = Object.keys(form.properties).length;
    this.isEmpty = Boolean(url) || !count;
    if (count === 1) this.fields.modes.element.hidden = true; // JSON would say the same in more letters
    if (this.isEmpty) this.element.replaceChildren();
    this.element.classList.toggle("wb-box", !this.isEmpty);
  }

  choices() {
    const content = this.isEmpty ? {} : this.fields.values();
    return content ? { content } : null;
  }

  fieldOf(error) {
    const problems = error.details?.problems ?? [];
    this.fields.mark(Object.fromEntries(problems.map(({ field, reason }) => [field.split(".")[0], reason])));
    return null;
  }
}
