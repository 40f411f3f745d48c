/** What the charts of the Analytics tab draw, from what `get_activity` found. */

import { kindOf } from "../inbox/kinds.js";
import { columns } from "../charts/columns.js";
import { gantt } from "../charts/gantt.js";
import { dateTime, duration, hourMinute, plural } from "../lib/format.js";

const DAY_MS = 86_400_000;
/** The most lanes of the task stream: those of the agents that worked last. */
const LANES = 20;
const OUTCOMES = { completed: "completed", failed: "failed", expired: "failed", null: "in_progress" };

/** "10:05", or for longer windows "Nov 21, 10:05". @param {any} found */
function clockOf({ since, until }) {
  const isLong = Date.parse(until) - Date.parse(since) > DAY_MS / 2;
  return isLong ? (ms) => dateTime(ms) : hourMinute;
}

/** Columns over the intervals. @param {any} activity @param {[string, string, string][]} layers field, state and word */
export function overTime(activity, layers) {
  const { intervals, interval_seconds: seconds } = activity;
  const clock = clockOf(activity);
  const starts = intervals.map(({ start }) => Date.parse(start));
  const until = starts.at(-1) + 1000 * seconds;
  const count = (at) =>
    layers
      .filter(([field]) => intervals[at][field])
      .map(([field, , word]) => `${intervals[at][field].toLocaleString("en")} ${word}`)
      .join(", ");
  const rows = starts.map((start, at) => [clock(start), ...layers.map(([field]) => intervals[at][field])]);
  return {
    legend: layers.map(([, state, word]) => [state, word]),
    table: {
      columns: ["From", ...layers.map(([, , word]) => word)],
      rows: rows.filter((row) => row.some((one) => one > 0)),
    },
    draw: (width) =>
      columns(width, {
        starts,
        until,
        clock,
        text: (at) => `${clock(starts[at])}: ${count(at)}`,
        layers: layers.map(([field, state]) => ({ state, values: intervals.map((one) => one[field]) })),
      }),
  };
}

/** The attempts, in a lane for each agent. @param {any} activity @param {{task: (id: number) => void}} open */
export function stream(activity, open) {
  const clock = clockOf(activity);
  const [since, until] = [Date.parse(activity.since), Date.parse(activity.until)];
  const latest = [...activity.attempts].reverse();
  const names = [...new Set(latest.map(({ agent_id: id }) => id))].slice(0, LANES).sort();
  const lanes = names.map((name) => ({ name, open: null }));
  const attempts = activity.attempts.filter(({ agent_id: id }) => names.includes(id));
  const about = (attempt) => {
    const took = duration(Date.parse(attempt.ended_at ?? activity.until) - Date.parse(attempt.claimed_at));
    return [
      attempt.agent_id,
      `${attempt.task_id} ${attempt.task}`,
      attempt.attempt,
      clock(Date.parse(attempt.claimed_at)),
      took,
      attempt.outcome ?? "under way",
    ];
  };
  const bars = attempts.map((attempt) => {
    const [agent, task, number, , took, outcome] = about(attempt);
    return {
      lane: names.indexOf(agent),
      from: Date.parse(attempt.claimed_at),
      to: Date.parse(attempt.ended_at ?? activity.until),
      state: OUTCOMES[attempt.outcome] ?? "other",
      key: `${attempt.task_id}.${number}`,
      text: `${task}, attempt ${number} by ${agent}: ${outcome}, ${took}`,
      open: () => open.task(attempt.task_id),
    };
  });
  return {
    legend: [
      ["in_progress", "under way"],
      ["completed", "completed"],
      ["failed", "failed or expired"],
      ["other", "released or cancelled"],
    ],
    table: { columns: ["Agent", "Task", "Attempt", "Claimed", "Took", "Outcome"], rows: attempts.map(about) },
    draw: (width) => gantt(width, { since, until, clock, lanes, bars: spread(bars) }),
  };
}

/** Bars in time's order, lane by lane, as keys move through them. */
function spread(bars) {
  return bars.sort((one, other) => one.lane - other.lane || one.from - other.from);
}

/** How busy each agent was. @param {any} found @param {{agent: (id: string) => void}} open */
export function agentBars({ agents }, open) {
  return agents.map(({ agent_id: name, share, attempts, busy_seconds: busy }) => ({
    name,
    open: () => open.agent(name),
    share,
    text: `${Math.round(100 * share)} %`,
    title: `${plural(attempts, "attempt")}, ${duration(1000 * busy)}`,
  }));
}

/** How long questions waited, the longest wait as the whole width. Those that wait are named as in the inbox.
 * @param {any} found @param {Map<number, any>} waiting the approvals in the inbox @param {{inbox: () => void}} open */
export function waitBars({ approvals }, waiting, open) {
  const longest = Math.max(...approvals.map((one) => one.waited_seconds), 0.001);
  return approvals.map(({ id, kind, status, requester, waited_seconds: waited }) => ({
    name: questionName(id, kind, waiting.get(id)),
    title: `${questionName(id, kind, waiting.get(id))}\nQuestion ${id}, asked by ${requester}`,
    open: open.inbox,
    share: waited / longest,
    state: status === "pending" ? "pending" : status === "approved" ? "completed" : "failed",
    text: `${duration(1000 * waited)}, ${status === "pending" ? "waits" : status}`,
  }));
}

/** "ada · registration", or of one that is decided "registration 4". */
function questionName(id, kind, approval) {
  const { label, title } = kindOf({ kind });
  return approval ? `${title(approval)} · ${label}` : `${label} ${id}`;
}

/** The median of each tool's calls as a bar, and how long the slowest of twenty took as a tick. @param {any} found @param {{tools: () => void}} open */
export function toolBars({ tools }, open) {
  const longest = Math.max(...tools.map(({ p95_ms: ms }) => ms ?? 0), 0.001);
  return tools.map(({ tool, calls, failed, median_ms: median, p95_ms: slow }) => ({
    name: tool,
    open: open.tools,
    share: (median ?? 0) / longest,
    tick: slow === null ? undefined : slow / longest,
    state: failed ? "failed" : "in_progress",
    text: median === null ? "not ended" : duration(median),
    title: `${plural(calls, "call")}, ${failed} failed${slow === null ? "" : `; 95 % took no longer than ${duration(slow)}`}`,
  }));
}
