/** How the question about a budget that is used up looks on its card: go on with as much again, or other limits, or stop. */

import { field, input } from "../lib/controls.js";
import { h, setAttribute } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { amountText, spentText } from "../models/words.js";

/** What a person types of each limit, and how many of the limit's own units that is. */
const TYPED = { tokens: ["Tokens", 1], usd: ["US dollars", 1], attempts: ["Attempts", 1], seconds: ["Hours", 3_600] };

/** Whether as much again as was stated is more: not of nothing. @param {{used_up: string[], stated: Record<string, number>}} payload */
function hasMore({ used_up: names, stated }) {
  return names.every((name) => stated[name]);
}

/** What approving does. @param {any} approval @param {boolean} detailed whether other limits can be typed */
function approveText({ payload: { used_up: names, stated } }, detailed) {
  if (detailed) return "Raise the budget";
  return `Go on with another ${names.map((name) => amountText(name, stated[name])).join(", ")}`;
}

/** @type {import("./kinds.js").Kind} */
export const budget = {
  icon: "warning",
  label: "budget",
  approve: approveText,
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
  details: ({ payload }) => new Limits(payload),
  opensDetails: ({ payload }) => !hasMore(payload),
  done: (_, { payload }) => `The budget of ${payload.what} is raised.`,
};

/** A field for each limit that is used up. */
class Limits {
  constructor({ used_up: names, spent, limits }) {
    const control = (name) => {
      const least = Math.max(spent[name], limits[name]) / TYPED[name][1];
      return input("", { type: "number", min: 0, step: "any", placeholder: `more than ${least.toLocaleString("en")}` });
    };
    this.inputs = names.map((name) => [name, control(name)]);
    this.first = this.inputs[0][1];
    const fields = this.inputs.map(([name, element]) => field(`${TYPED[name][0]} in all`, element));
    this.element = h("div", { class: "wb-box wb-fields" }, ...fields);
  }

  /** The limits that were typed; null: not all are. */
  choices() {
    for (const [, element] of this.inputs) setAttribute(element, "aria-invalid", element.value ? null : "true");
    const [, missing] = this.inputs.find(([, { value }]) => !value) ?? [];
    missing?.focus();
    if (missing) return null;
    return Object.fromEntries(this.inputs.map(([name, { value }]) => [name, Number(value) * TYPED[name][1]]));
  }

  fieldOf() {
    return this.first;
  }
}
