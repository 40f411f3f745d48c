/** Budgets: a bar and words for what is spent of each limit. */

import { html } from "../components/ui.js";
import { plural } from "../lib/format.js";
import { LIMITS, spentText } from "./words.js";

/** Nothing for no budgets. @param {{budgets: any[]}} props of `list_budgets` */
export function Budgets({ budgets }) {
  const limitsOf = (budget) => LIMITS.filter((name) => budget[name] !== null);
  return (
    budgets.length > 0 &&
    html`<ul class="wb-budgets wb-stack" aria-label="Budgets">
      ${budgets.map(
        (budget) =>
          html`<li key=${budget.scope}>
            <div class="wb-strong wb-wrap">Budget of ${budget.what}${budget.stopped && ", stopped by you"}</div>
            ${limitsOf(budget).map((name) => html`<${Limit} key=${name} ...${{ name, budget }} />`)}
            ${budget.usd !== null && budget.unpriced > 0 && html`<div class="wb-muted wb-wrap">${plural(budget.unpriced, "request")} of unknown cost not counted in dollars</div>`}
          </li>`,
      )}
    </ul>`
  );
}

function Limit({ name, budget }) {
  const { [name]: limit, [`spent_${name}`]: spent } = budget;
  const percent = limit ? Math.floor((100 * spent) / limit) : 100;
  const state = budget.used_up.includes(name) ? "used up" : budget.nearly.includes(name) ? "nearly used up" : "";
  const text = spentText(name, spent, limit);
  const meter = { "aria-label": `Spent of ${budget.what}`, "aria-valuetext": text, "aria-valuemin": 0 };
  const style = `width: ${Math.min(percent, 100)}%`;
  return html`<div class="wb-budget-limit" data-state=${state}>
    <span class="wb-meter" role="meter" ...${meter} aria-valuemax=${limit} aria-valuenow=${Math.min(spent, limit)}
      ><span style=${style}></span
    ></span>
    <span class="wb-wrap">${text} · ${percent} %${state && html`, <span class="wb-strong">${state}</span>`}</span>
  </div>`;
}
