/** How the question whether a tool may be called looks on its card: what it would be called with, and what has changed. */

import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";
import { longText } from "../contents/values.js";

/** @type {import("./kinds.js").Kind} */
export const toolCall = {
  icon: "tool",
  label: "tool call",
  approve: () => "Allow once",
  approving: "Allowing…",
  also: () => ({ label: "Always allow", choices: { remember: "always" } }),
  ban: {
    label: "Never allow this tool",
    request: ({ payload }) => ["set_tool_permission", { name: payload.tool, permission: "never" }],
  },
  title: ({ payload }) => payload.tool,
  origin: ({ payload }) => `called by ${callerText(payload)}`,
  summary: ({ payload }) => [
    h("div", {}, payload.origin_of_tool, payload.description ? ` · it says: “${said(payload)}”` : null),
    h("div", { class: "wb-label" }, "Arguments"),
    longText(JSON.stringify(payload.arguments, null, 2), `Copy the arguments of ${payload.tool}`, () => {}),
    ...changed(payload.changes ?? []),
  ],
  warnings: ({ payload }) =>
    payload.changes?.length ? ["The tool is not what you allowed: what it says about itself has changed."] : [],
  discouraged: ({ payload }) => Boolean(payload.changes?.length),
  done: (outcome) => (outcome?.remember === "always" ? "Allowed, and from now on without asking you." : "Allowed."),
};

function callerText({ caller, conversation_id: conversation }) {
  return conversation ? `the model of a conversation (${caller})` : caller;
}

/** What the tool says about itself, which cannot end the quotes around it. */
function said({ description }) {
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
