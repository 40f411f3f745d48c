/** What each chart shows, in one sentence, as the reports of `wb.report` say it. Pure. */

import { duration, plural } from "../lib/format.js";

const percent = (share) => `${Math.round(100 * share)} %`;
const were = (count) => (count === 1 ? "was" : "were");
const total = (intervals, name) => intervals.reduce((sum, interval) => sum + interval[name], 0);
const number = (value) => value.toLocaleString("en");

/** @param {any} found of `get_activity` @param {string} span such as "hour" */
export function throughput({ intervals }, span) {
  const [completed, failed] = [total(intervals, "completed"), total(intervals, "failed")];
  const other = total(intervals, "other");
  if (!completed && !failed && !other) return `No task was completed within the last ${span}.`;
  const bad = failed ? `${plural(failed, "attempt")} failed` : "no attempt failed";
  return `${plural(completed, "task")} ${were(completed)} completed within the last ${span}; ${bad}.`;
}

export function queue({ intervals }) {
  const { running, waiting } = intervals.at(-1);
  const most = Math.max(...intervals.map(({ waiting }) => waiting));
  if (!most && !intervals.some(({ running }) => running)) return "No task waits.";
  const at = `${plural(running, "task")} ${running === 1 ? "is" : "are"} worked on and ${number(waiting)}`;
  const longest = most > waiting ? `; at most ${number(most)} waited` : "";
  return `${at} ${waiting === 1 ? "waits" : "wait"}${longest}.`;
}

export function utilisation({ agents, totals: { present, share } }, span) {
  if (!agents.some(({ attempts }) => attempts)) return `No agent held a task within the last ${span}.`;
  const shown = present > agents.length ? ` (the chart has the ${number(agents.length)} busiest)` : "";
  const text = `${plural(present, "agent")}${shown} held tasks ${percent(share)} of the time`;
  if (agents.length === 1) return `${text} (${agents[0].agent_id}).`;
  const ordered = [...agents].sort((one, other) => other.share - one.share);
  const [most, least] = [ordered[0], ordered.at(-1)];
  return `${text}: ${most.agent_id} most (${percent(most.share)}), ${least.agent_id} least (${percent(least.share)}).`;
}

export function stream({ attempts, totals }, span) {
  const { attempts: all, tasks, agents, completed, failed } = totals;
  if (!all) return `No task was worked on within the last ${span}.`;
  const attempted = `${plural(all, "attempt")} at ${plural(tasks, "task")} by ${plural(agents, "agent")}`;
  const bad = failed ? `, ${number(failed)} failed` : "";
  const shown = all > attempts.length ? `; the chart has the newest ${number(attempts.length)}` : "";
  return `${attempted} within the last ${span}; ${number(completed)} completed theirs${bad}${shown}.`;
}

export function approvals({ approvals: asked, pending, totals }, span) {
  const { decided, mean_seconds: mean, longest_seconds: longest, decided_otherwise: others } = totals;
  const still = pending ? `${plural(pending, "question")} still ${pending === 1 ? "waits" : "wait"}` : "none waits";
  const rest = others ? `${plural(others, "question")} ${were(others)} decided without one; ` : "";
  const left = pending + decided + others - asked.length;
  const shown = left > 0 ? `; the chart leaves out ${number(left)}` : "";
  if (!decided) return `No question was decided by a person within the last ${span}; ${rest}${still}${shown}.`;
  const took = `after ${duration(1000 * mean)} on average and ${duration(1000 * longest)} at most`;
  return `${plural(decided, "question")} ${were(decided)} decided by a person ${took}; ${rest}${still}${shown}.`;
}

export function tools({ tools: used, totals: { calls: all } }, span) {
  if (!used.length) return `No tool was called within the last ${span}.`;
  const calls = used.reduce((sum, tool) => sum + tool.calls, 0);
  const failed = used.reduce((sum, tool) => sum + tool.failed, 0);
  const timed = used.filter(({ median_ms: ms }) => ms !== null);
  const slowest = timed.sort((one, other) => other.median_ms - one.median_ms)[0];
  const some = all > calls ? ` (of ${number(all)}; these are the newest, of the tools called most)` : "";
  const text = `${plural(calls, "call")} of ${plural(used.length, "tool")}${some}, ${number(failed)} failed`;
  const most = slowest ? `; the slowest is ${slowest.tool} (${duration(slowest.median_ms)} on median)` : "";
  return `${text}${most}.`;
}

export function tokens({ intervals, totals, cost_usd: cost, unpriced }, span) {
  const [answers, read, written] = ["answers", "input_tokens", "output_tokens"].map((name) => total(intervals, name));
  if (!answers) return `No model answered within the last ${span}.`;
  const some = totals.answers > answers ? ` (the newest of ${number(totals.answers)})` : "";
  if (!read && !written)
    return `${plural(answers, "answer")}${some} used an unknown number of tokens: no provider reported them.`;
  const rest = unpriced ? ` and an unknown cost of ${number(unpriced)}` : "";
  const price = cost === null ? "an unknown cost" : `${cost.toFixed(2)} US dollars${rest}`;
  return `${plural(answers, "answer")}${some} used ${number(read)} tokens of input and ${number(written)} of output, for ${price}.`;
}
