/** What requests to models used and cost in the last days: a table by model, day, agent, plan, … */

import { DataTable } from "../components/data_table.js";
import { Choice } from "../components/filters.js";
import { Embedded, Section, html, useLayoutEffect, usePolling, useRequests, useState } from "../components/ui.js";
import { plural } from "../lib/format.js";
import { Budgets } from "../models/budgets.js";
import { costNote, costText, count, sumOf, tokensText } from "../models/words.js";

const POLL_MS = 10_000;
const BY = {
  model: "By model",
  provider: "By provider",
  day: "By day",
  agent: "By agent",
  plan: "By plan",
  task: "By task",
  definition: "By definition",
  persona: "By persona",
};
const NAMELESS = {
  model: "unknown model",
  plan: "in no plan",
  task: "for no task",
  definition: "no definition",
  persona: "no persona",
};
const DAYS = { 1: "Last day", 7: "Last 7 days", 30: "Last 30 days", 365: "Last year" };
const STEP = 50;

/** @param {{desk: any}} props */
export function Spending({ desk }) {
  const requests = useRequests(desk);
  const [by, chooseBy] = useState("model");
  const [days, chooseDays] = useState("30");
  const [read, setRead] = useState(null);
  const work = async () => {
    const { costs } = await requests.send("list_costs", { by, days: Number(days) });
    const { budgets } = await requests.send("list_budgets", {});
    requests.clearError();
    setRead({ by, days, costs, budgets });
  };
  const { ref, runNow } = usePolling(POLL_MS, work, (error) => requests.showError(error));
  useLayoutEffect(runNow, [by, days]);
  const rows = read?.costs.map((cost) => ({ ...cost, id: cost.name ?? "" }));
  return html`<${Section} title="Spending" section=${ref}>
    <div class="wb-line">
      <${Choice} name="Sum the costs" options=${Object.entries(BY)} value=${by} onChoose=${chooseBy} />
      <${Choice} name="Of which time" options=${Object.entries(DAYS)} value=${days} onChoose=${chooseDays} />
      <span class="wb-muted wb-grow">${read && sentence(read.costs)}</span>
    </div>
    <${Budgets} budgets=${read?.budgets ?? []} />
    ${rows?.length > 0 && html`<${DataTable} class="wb-by-need wb-spending" ...${{ rows, step: STEP, filters: read.by }} columns=${columnsOf(read.by)} name=${({ name }) => name ?? NAMELESS[read.by] ?? "unknown"} />`}
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

/** "12 requests, 34,200 tokens in, 1,204 out, for $0.21." */
function sentence(costs) {
  if (!costs.length) return "No request to a model was made.";
  const sum = sumOf(costs);
  const price = costText(sum);
  const cost = price === "–" ? "" : price === "unknown" ? ", at an unknown cost" : `, for ${price}`;
  return `${plural(sum.requests, "request")}, ${tokensText(sum)}${cost}. ${costNote(sum)}`;
}

function columnsOf(by) {
  const number = (key, label, kind = "tokens") => ({
    key,
    kind,
    label,
    optional: (cost) => cost[key],
    value: (cost) => cost[key],
    cell: (cost) => count(cost[key]),
  });
  return [
    {
      key: "name",
      label: BY[by].slice(3).replace(/^./, (letter) => letter.toUpperCase()),
      value: ({ name }) => name,
      cell: ({ name }) => html`<span title=${name}>${name ?? NAMELESS[by] ?? "unknown"}</span>`,
    },
    ...(by === "model" ? [{ key: "provider", label: "Provider", value: ({ provider }) => provider ?? "several" }] : []),
    number("requests", "Requests", "number"),
    number("input_tokens", "Tokens in"),
    number("cached_tokens", "Cached"),
    number("cache_write_tokens", "Written"),
    number("output_tokens", "Out"),
    number("reasoning_tokens", "Thinking"),
    {
      key: "cost_usd",
      kind: "number",
      label: "Cost",
      value: ({ cost_usd: cost }) => cost,
      cell: costText,
      title: costNote,
    },
  ];
}
