/** What the attempts of a task or of an agent asked of models: who answered, tokens and cost, and what was said. */

import { Button, Embedded, html, useLayoutEffect, usePolling, useRequests, useState } from "../components/ui.js";
import { plural } from "../lib/format.js";
import { answeredBy, costNote, costText, sumOf, tokensText } from "./words.js";
import { Budgets } from "./budgets.js";
import { AttemptCheck } from "./check.js";
import { TranscriptView } from "./transcript.js";

const POLL_MS = 2_000;
const PLAN_MS = 10_000;
/** The attempts that are listed: those that asked last. */
const MOST = 20;
const ALL_DAYS = 36_500;

/**
 * @param {object} props
 * @param {any} props.desk
 * @param {{task_id: number}|{agent_id: string}} props.of whose attempts
 * @param {boolean} props.underway whether one of them may ask more
 * @param {any} props.version they are read again when it is another one
 */
export function ModelUse({ desk, of, underway, version }) {
  const requests = useRequests(desk);
  const [attempts, setAttempts] = useState([]);
  const [budgets, setBudgets] = useState([]);
  const [opened, open] = useState(null);
  const [read, setRead] = useState(null);
  const work = async () => {
    if (read === version && !underway) return;
    const { costs } = await requests.send("list_costs", { ...of, by: "attempt", days: ALL_DAYS, limit: MOST });
    if (of.task_id) setBudgets(await budgetsOf(requests, `task:${of.task_id}`));
    requests.clearError();
    setRead(version);
    setAttempts(costs.filter(({ name }) => name).sort((one, other) => other.last_at.localeCompare(one.last_at)));
  };
  const { ref, runNow } = usePolling(POLL_MS, work, (error) => requests.showError(error));
  useLayoutEffect(runNow, [version]);
  const toggle = (name) => open(opened === name ? null : name);
  const line = (cost) =>
    html`<${Attempt}
      key=${cost.name}
      ...${{ desk, cost, ofTask: "task_id" in of, underway, isOpen: opened === cost.name, toggle }}
    />`;
  const total = attempts.length > 1 ? ` · ${attempts.length === MOST ? "the last " : ""}${summary(attempts)}` : "";
  return html`<div ref=${ref} class="wb-model-use">
    <${Budgets} budgets=${budgets} />
    ${attempts.length > 0 && html`<div class="wb-label">Requests to models${total}</div>`}
    <ul class="wb-stack">
      ${attempts.map(line)}
    </ul>
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}

/** What a plan used and cost so far, in one line, and what it may spend. @param {{desk: any, plan: string}} props */
export function PlanUse({ desk, plan }) {
  const requests = useRequests(desk);
  const [cost, setCost] = useState(null);
  const [budgets, setBudgets] = useState([]);
  const work = async () => {
    const { costs } = await requests.send("list_costs", { by: "plan", plan, days: ALL_DAYS });
    setBudgets(await budgetsOf(requests, `plan:${plan}`));
    requests.clearError();
    setCost(costs[0] ?? null);
  };
  const { ref } = usePolling(PLAN_MS, work, (error) => requests.showError(error));
  const note = cost && costNote(cost);
  return html`<div ref=${ref} class="wb-model-use">
    ${cost && html`<p class="wb-muted wb-wrap">Plan ${plan}: ${costText(cost)} · ${plural(cost.requests, "request")} to models · ${tokensText(cost)}${note && ` · ${note}`}</p>`}
    <${Budgets} budgets=${budgets} />
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}

async function budgetsOf(requests, scope) {
  return (await requests.send("list_budgets", {})).budgets.filter((budget) => budget.scope === scope);
}

function summary(attempts) {
  return `${plural(attempts.length, "attempt")}, ${costText(sumOf(attempts))}`;
}

function Attempt({ desk, cost, ofTask, underway, isOpen, toggle }) {
  const [task, attempt] = cost.name.split(".").map(Number);
  const name = ofTask ? `Attempt ${attempt}` : `Task ${task}, attempt ${attempt}`;
  const label = isOpen ? "Hide the transcript" : "Show the transcript";
  const about = { label, name: `${label} of ${name.toLowerCase()}`, "aria-expanded": isOpen };
  const note = costNote(cost);
  return html`<li>
    <div class="wb-line">
      <span class="wb-strong">${name}</span><span class="wb-grow wb-wrap">${answeredBy(cost)}</span>
      <span class="wb-number" title=${note || null}>${costText(cost)}</span>
    </div>
    <div class="wb-muted wb-wrap">${plural(cost.requests, "request")} · ${tokensText(cost)}${note && ` · ${note}`}</div>
    <${Button} class="wb-link" ...${about} onClick=${() => toggle(cost.name)} />
    ${isOpen && !ofTask && html`<${AttemptCheck} ...${{ desk, task, attempt }} />`}
    ${isOpen && html`<${TranscriptView} ...${{ desk, task, attempt, underway }} />`}
  </li>`;
}
