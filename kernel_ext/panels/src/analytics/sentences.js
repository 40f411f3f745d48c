/** What each chart shows, in one sentence, as the reports of `wb.report` say it. Pure. */

import { duration, plural } from "../lib/format.js";

const percent = (share) => `${Math.round(100 * share)} %`;
const were = (count) => (count === 1 ? "was" : "were");
const total = (intervals, name) => intervals.reduce((sum, one) => sum + one[name], 0);
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
  const most = Math.max(...intervals.map((one) => one.waiting));
  if (!most && !intervals.some((one) => one.running)) return "No task waits.";
  const at = `${plural(running, "task")} ${running === 1 ? "is" : "are"} worked on and ${number(waiting)}`;
  const longest = most > waiting ? `; at most ${number(most)} waited` : "";
  return `${at} ${waiting === 1 ? "waits" : "wait"}${longest}.`;
}

export function utilisation({ agents }, span) {
  if (!agents.some(({ attempts }) => attempts)) return `No agent held a task within the last ${span}.`;
  const share = agents.reduce((sum, agent) => sum + agent.share, 0) / agents.length;
  const text = `${plural(agents.length, "agent")} held tasks ${percent(share)} of the time`;
  if (agents.length === 1) return `${text} (${agents[0].agent_id}).`;
  const ordered = [...agents].sort((one, other) => other.share - one.share);
  const [most, least] = [ordered[0], ordered.at(-1)];
  return `${text}: ${most.agent_id} most (${percent(most.share)}), ${least.agent_id} least (${percent(least.share)}).`;
}

export function stream({ attempts }, span) {
  if (!attempts.length) return `No task was worked on within the last ${span}.`;
  const tasks = new Set(attempts.map(({ task_id: id }) => id)).size;
  const agents = new Set(attempts.map(({ agent_id: id }) => id)).size;
  const done = attempts.filter(({ outcome }) => outcome === "completed").length;
  const made = `${plural(attempts.length, "attempt")} at ${plural(tasks, "task")} by ${plural(agents, "agent")}`;
  return `${made} within the last ${span}; ${number(done)} completed theirs.`;
}

export function approvals({ approvals: asked, pending }, span) {
  const decided = asked.filter(({ status }) => status !== "pending").map((one) => one.waited_seconds);
  const still = pending ? `${plural(pending, "question")} still ${pending === 1 ? "waits" : "wait"}` : "none waits";
  if (!decided.length) return `No question was decided within the last ${span}; ${still}.`;
  const mean = duration((1000 * decided.reduce((sum, one) => sum + one, 0)) / decided.length);
  const longest = duration(1000 * Math.max(...decided));
  const text = `${plural(decided.length, "question")} ${were(decided.length)} decided after ${mean} on average`;
  return `${text} and ${longest} at most; ${still}.`;
}

export function tools({ tools: used }, span) {
  if (!used.length) return `No tool was called within the last ${span}.`;
  const calls = used.reduce((sum, one) => sum + one.calls, 0);
  const failed = used.reduce((sum, one) => sum + one.failed, 0);
  const timed = used.filter(({ median_ms: ms }) => ms !== null);
  const slowest = timed.sort((one, other) => other.median_ms - one.median_ms)[0];
  const text = `${plural(calls, "call")} of ${plural(used.length, "tool")}, ${number(failed)} failed`;
  const most = slowest ? `; the slowest is ${slowest.tool} (${duration(slowest.median_ms)} on median)` : "";
  return `${text}${most}.`;
}

export function tokens({ intervals, cost_usd: cost }, span) {
  const [answers, read, written] = ["answers", "input_tokens", "output_tokens"].map((name) => total(intervals, name));
  if (!answers) return `No model answered within the last ${span}.`;
  if (!read && !written)
    return `${plural(answers, "answer")} used an unknown number of tokens: no provider reported them.`;
  const price = cost === null ? "an unknown cost" : `${cost.toFixed(2)} US dollars`;
  return `${plural(answers, "answer")} used ${number(read)} tokens of input and ${number(written)} of output, for ${price}.`;
}
