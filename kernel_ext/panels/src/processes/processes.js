/** The processes of the agents that Workbench started: a table, with the details of one beside it. */

import { DataTable } from "../components/data_table.js";
import { FactList, Split } from "../components/detail_pane.js";
import { Button, Dot, Embedded, Icon } from "../components/ui.js";
import { drawnIn, html, usePolling, useRequests, useState } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { byteSize, plural } from "../lib/format.js";
import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { ProcessDetails } from "./details.js";
import { confinementState, cpuPercent, processDot, processLabel, uptime, uptimeMs, wallsState } from "./state.js";

const POLL_MS = 2_000;
const WALLS_POLL_MS = 30_000;
const ENDED_SHOWN = 20;
const RANK = { running: 0, queued: 1, ended: 2 };
const WORKING = new Set(["claimed", "in_progress"]);
const EMPTY = html`<p class="wb-empty">
  Workbench has not started any agent yet.${" "}
  <code>wb.call("spawn_agent", persona_id="implementer", new_worktree=True)</code> starts one in a worktree of its own.
  Agents that connect by themselves are listed under Agents.
</p>`;

export class Processes {
  /** @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    /** What running processes use, by agent. */
    this.usage = new Map();
    /** For the table of processes as the kernel sends it. */
    this.requests = new RequestRunner(desk);
    /** For what is read again and again here. */
    this.reader = new RequestRunner(desk);
    this.element = h("div", { class: "wb-stack" });
    this.draw = drawnIn(this.element, signal);
    const onError = (error) => this.reader.showError(error);
    this.polling = new VisiblePolling(this.element, POLL_MS, () => this.poll(), onError, signal);
  }

  /** The rows of processes; the row without an id, which holds an error, is not one. */
  get processes() {
    return [...this.desk.store.tables.processes.values()].filter(({ id }) => id !== "");
  }

  /** The number of running processes. */
  count() {
    return this.processes.filter(({ state }) => state === "running").length;
  }

  /** Read what changes without an event. */
  async poll() {
    if (!this.count()) return;
    const { agents } = await this.reader.send("get_managed_agents", {});
    this.reader.clearError();
    const running = agents.filter(({ process }) => process);
    this.usage = new Map(running.map(({ agent_id, process }) => [agent_id, this.usageOf(agent_id, process)]));
    this.update(Date.now());
  }

  usageOf(id, process) {
    const reading = { ...process, readAt: Date.now() };
    return { ...reading, percent: cpuPercent(this.usage.get(id), reading) };
  }

  /** Bring everything up to date. @param {number} now in ms */
  update(now) {
    const { tables, loaded } = this.desk.store;
    const error = tables.processes.get("")?.error;
    if (error) this.requests.showError(error);
    else this.requests.clearError();
    const all = this.processes.sort(runningFirst);
    const view = all.length
      ? html`<${View} ...${{ desk: this.desk, all, usage: this.usage, now }} />`
      : loaded.has("processes") && EMPTY;
    const errors = [this.requests, this.reader].map(({ errorBox }) => html`<${Embedded} element=${errorBox} />`);
    this.draw(html`${errors}<${Walls} desk=${this.desk} />${view}`);
  }

  /** "2 running · 1 queued" */
  summary() {
    const all = this.processes;
    if (!all.length) return "";
    const count = (state) => all.filter((row) => row.state === state).length;
    const counted = (state) => `${count(state).toLocaleString("en")} ${state}`;
    const open = all.filter((row) => row.state === "running" && !confinementState(row.confinement).complete).length;
    const others = ["queued", "ended"].filter(count).map(counted);
    const exposed = open ? [`${plural(open, "process", "processes")} not fully confined`] : [];
    return [counted("running"), ...others, ...exposed].join(" · ");
  }
}

/** What confines the commands of agents on this machine, and what does not. It is read again and again: settings change. */
function Walls({ desk }) {
  const requests = useRequests(desk);
  const [support, setSupport] = useState(null);
  const read = async () => {
    setSupport(await requests.send("get_confinement", {}));
    requests.clearError();
  };
  const { ref } = usePolling(WALLS_POLL_MS, read, (error) => requests.showError(error));
  const { label, facts, complete } = support ? wallsState(support) : {};
  return html`<div ref=${ref}>
    ${
      support &&
      html`<details class="wb-walls">
        <summary tabindex="0"><${Icon} name=${complete ? "shield" : "warning"} /><span>${label}</span></summary>
        <div class="wb-indented">
          <p>${support.summary}</p>
          <${FactList} facts=${facts} />
        </div>
      </details>`
    }
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}

function View({ desk, all, usage, now }) {
  const [opened, open] = useState(null);
  const [showsAll, showAll] = useState(false);
  const ended = all.filter(({ state }) => state === "ended");
  const older = new Set(showsAll ? [] : ended.slice(ENDED_SHOWN).filter(({ id }) => id !== opened));
  const row = all.find(({ id }) => id === opened) ?? null;
  const isTask = (task) => task.assigned_agent_id === opened && WORKING.has(task.status);
  const task = [...desk.store.tables.tasks.values()].find(isTask);
  const close = () => open(null);
  const about = { desk, row, usage: usage.get(opened), task, now, onClose: close };
  const columns = columnsOf((process) => (process.state === "running" ? usage.get(process.id) : null), now);
  const more = showsAll ? "Show fewer ended" : `Show all ${ended.length.toLocaleString("en")} ended`;
  return html`<${Split} pane=${row && html`<${ProcessDetails} key=${opened} ...${about} />`} onClose=${close}>
    <${DataTable}
      class="wb-processes wb-by-need"
      aria-label="Processes"
      rows=${all.filter((process) => !older.has(process))}
      columns=${columns}
      opened=${row ? [opened] : []}
      onOpen=${open}
    />
    ${ended.length > ENDED_SHOWN && html`<${Button} label=${more} onClick=${() => showAll(!showsAll)} />`}
  <//>`;
}

/** @param {(row: any) => any} live what a running process uses @returns {import("../components/data_table.js").Column[]} */
function columnsOf(live, now) {
  const used = (text) => (row) => (live(row) ? text(live(row)) : "–");
  return [
    { key: "agent", label: "Agent", value: ({ id }) => id, cell: persona },
    { key: "state", label: "State", value: ({ state }) => RANK[state], cell: stateMark, title: stateTitle },
    { key: "profile", label: "Profile", value: ({ profile }) => profile },
    {
      key: "worktree",
      label: "Worktree",
      wide: true,
      optional: ({ worktree }) => worktree,
      value: ({ worktree }) => worktree,
      cell: ({ worktree }) => worktree ?? "–",
    },
    { key: "cpu", label: "CPU", value: (row) => live(row)?.percent, cell: used((u) => `${Math.round(u.percent)} %`) },
    {
      key: "memory",
      label: "Memory",
      value: (row) => live(row)?.memory_bytes,
      cell: used((use) => byteSize(use.memory_bytes)),
    },
    {
      key: "children",
      label: "Children",
      value: (row) => live(row)?.children.length,
      cell: used((use) => use.children.length),
    },
    { key: "uptime", label: "Uptime", value: (row) => uptimeMs(row, now), cell: (row) => uptime(row, now) || "–" },
    {
      key: "confinement",
      label: "Confinement",
      value: (row) => (row.state === "queued" ? null : confinementState(row.confinement).label),
      cell: confinementMark,
    },
  ];
}

const persona = ({ persona_id: id }, opener) => [opener, html`<span class="wb-alias">${id}</span>`];
const stateTitle = (row) => [processLabel(row), row.reason].filter(Boolean).join(": ");

function stateMark(row) {
  return html`<span class="wb-state"
    ><${Dot} state=${processDot(row)} /><span class="wb-cut">${processLabel(row)}</span></span
  >`;
}

function confinementMark({ state, confinement }) {
  if (state === "queued") return "–";
  const { label, missing, complete } = confinementState(confinement);
  const mark = html`<${Icon} name=${complete ? "shield" : "warning"} />`;
  return html`<span class="wb-state" title=${missing || null}>${mark}<span>${label}</span></span>`;
}

function runningFirst(a, b) {
  const ended = a.state === "ended" ? (b.ended_at ?? "").localeCompare(a.ended_at ?? "") : 0;
  return RANK[a.state] - RANK[b.state] || ended || a.id.localeCompare(b.id, undefined, { numeric: true });
}
