/** How the question about a budget that is used up looks on its card: go on with as much again, or stop. */

import { plural } from "../lib/format.js";
import { amountText, spentText } from "../models/words.js";

/** @type {import("./kinds.js").Kind} */
export const budget = {
  icon: "warning",
  label: "budget",
  approve: ({ payload: { used_up: names, stated } }) =>
    `Go on with another ${names.map((name) => amountText(name, stated[name] ?? 0)).join(", ")}`,
  approving: "Going on…",
  reject: "Stop…",
  rejects: "Stop",
  rejected: "Nothing more of it begins; its tasks stay open.",
  title: ({ payload }) => `The budget of ${payload.what} is used up`,
  origin: () => "asked by Workbench",
  summary: ({ payload: { used_up: names, spent, limits, tasks } }) => [
    `${names.map((name) => spentText(name, spent[name], limits[name])).join("; ")} spent. ` +
      `${plural(tasks, "task")} waiting for your answer.`,
  ],
  discouraged: () => true,
  done: (_, { payload }) => `The budget of ${payload.what} is raised.`,
};
