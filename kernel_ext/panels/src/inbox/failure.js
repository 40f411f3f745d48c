/** How the question about agents that fail again and again looks on its card: go on, or stop them. */

import { h } from "../lib/dom.js";
import { oneLine, plural } from "../lib/format.js";

/** @type {import("./kinds.js").Kind} */
export const failure = {
  icon: "warning",
  label: "repeated failure",
  approve: () => "Go on",
  approving: "Going on…",
  reject: "Stop the agents…",
  rejects: "Stop the agents",
  rejected: "The agents were stopped; their tasks stay open.",
  title: ({ payload }) => payload.what,
  origin: () => "asked by Workbench",
  summary: ({ payload: { failure: kind, message, agents, attempts } }) => [
    h("div", { class: "wb-wrap" }, `${kind}: ${oneLine(message, 500)}`),
    `${plural(agents, "agent")} may claim no tasks until you answer. ` +
      `Seen in ${attempts.map(([task, attempt]) => `task ${task}, attempt ${attempt}`).join("; ")}.`,
  ],
  discouraged: () => true,
  done: (_, { payload }) => `${payload.what}: its agents go on.`,
};
