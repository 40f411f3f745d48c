/** How the question about agents that fail again and again looks on its card: go on, or stop them. */

import { outputOf } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const WHAT = {
  auth: "The provider accepts neither key nor login.",
  refused: "The provider cannot be reached, or refuses what it is asked.",
  context: "The conversations became too long for the model.",
  turns: "The program's own limit of turns or of money ended them.",
  silent: "The program said nothing for too long.",
  crashed: "The program ended without saying how.",
  failed: "The same failure came again and again.",
};

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
    h("div", {}, WHAT[kind] ?? `They ended as “${kind}”.`),
    message && outputOf(message),
    `${plural(agents, "agent")} may claim no tasks until you answer. ` +
      `Seen in ${attempts.map(([task, attempt]) => `task ${task}, attempt ${attempt}`).join("; ")}.`,
  ],
  discouraged: () => true,
  done: (_, { payload }) => `${payload.what}: its agents go on.`,
};
