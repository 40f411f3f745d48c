/** The processes of the agents that Workbench started: a table, with the details of one beside it. */

import { button, moveBetweenRows } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { byteSize, plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { KeyedList } from "../lib/keyed_list.js";
import { VisiblePolling } from "../link/polling.js";
import { Sorting } from "../lib/sorting.js";
import { RequestRunner } from "../link/request_runner.js";
import { ProcessDetails } from "./details.js";
import { confinementState, cpuPercent, processDot, processLabel, uptime } from "./state.js";

const POLL_MS = 2_000;
const ENDED_SHOWN = 20;
const RANK = { running: 0, queued: 1, ended: 2 };
const WORKING = new Set(["claimed", "in_progress"]);
const COLUMNS = {
  agent: "Agent",
  state: "State",
  profile: "Profile",
  worktree: "Worktree",
  cpu: "CPU",
  memory: "Memory",
  children: "Children",
  uptime: "Uptime",
  confinement: "Confinement",
};

export class Processes {
  /** @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    /** @type {string|null} the agent whose details are open */
    this.opened = null;
    /** What running processes use, by agent. */
    this.usage = new Map();
    this.showAll = false;
    /** For the table of processes as the kernel sends it. */
    this.requests = new RequestRunner(desk);
    /** For what is read again and again here. */
    this.reader = new RequestRunner(desk);
    const id = freshId("processes");
    this.empty = h(
      "p",
      { class: "wb-empty", id },
      "Workbench has not started any agent yet. ",
      h("code", {}, 'wb.call("spawn_agent", persona_id="implementer", new_worktree=True)'),
      " starts one in a worktree of its own. Agents that connect by themselves are listed under Agents.",
    );
    this.details = new ProcessDetails(desk, () => this.close(), signal);
    this.more = button("", "wb-button", () => this.toggleEnded());
    const list = h("div", { class: "wb-split-list wb-stack" }, this.makeTable(id), this.more);
    this.main = h("div", { class: "wb-split" }, list, this.details.element);
    this.element = h(
      "div",
      { class: "wb-stack", on: { keydown: (event) => this.onEscape(event) } },
      this.empty,
      this.requests.errorBox,
      this.reader.errorBox,
      this.main,
    );
    const onError = (error) => this.reader.showError(error);
    this.polling = new VisiblePolling(this.table, POLL_MS, () => this.poll(), onError, signal);
  }

  makeTable(id) {
    this.sorting = new Sorting(COLUMNS, () => this.update(Date.now()));
    const heads = Object.keys(COLUMNS).map((key) =>
      this.sorting.heading(key, "th", { scope: "col", class: `wb-col-${key}` }),
    );
    this.body = h("tbody", {});
    this.rows = new KeyedList(this.body, (agent) => new ProcessRow(agent, () => this.open(agent)));
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    const attributes = { class: "wb-table wb-processes", "aria-labelledby": id, on };
    this.table = h("table", attributes, h("thead", {}, h("tr", {}, ...heads)), this.body);
    return this.table;
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
    const { processes, tasks } = this.desk.store.tables;
    const all = this.processes.sort(runningFirst);
    this.drawError(processes.get("")?.error);
    const ended = all.filter(({ state }) => state === "ended");
    const older = new Set(this.showAll ? [] : ended.slice(ENDED_SHOWN).filter(({ id }) => id !== this.opened));
    const listed = all.filter((row) => !older.has(row));
    const shown = this.sorting.sorted(listed, (row, key) => this.sortValue(key, row, now)).map(({ id }) => id);
    this.empty.hidden = all.length > 0 || !this.desk.store.loaded.has("processes");
    this.main.hidden = all.length === 0;
    this.more.hidden = ended.length <= ENDED_SHOWN;
    setText(this.more, this.showAll ? "Show fewer ended" : `Show all ${ended.length.toLocaleString("en")} ended`);
    this.rows.show(shown, (row, id) => row.show(processes.get(id), this.usage.get(id), id === this.opened, now));
    const row = processes.get(this.opened);
    const isTask = (task) => task.assigned_agent_id === this.opened && WORKING.has(task.status);
    if (row) this.details.update(row, this.usage.get(row.id), [...tasks.values()].find(isTask), now);
    else if (this.opened) this.close();
  }

  sortValue(key, row, now) {
    const usage = row.state === "running" ? this.usage.get(row.id) : null;
    const ended = row.ended_at ? Date.parse(row.ended_at) : now;
    const values = {
      agent: row.id,
      state: RANK[row.state],
      profile: row.profile,
      worktree: row.worktree,
      cpu: usage?.percent,
      memory: usage?.memory_bytes,
      children: usage?.children.length,
      uptime: row.spawned_at && ended - Date.parse(row.spawned_at),
      confinement: row.state === "queued" ? null : confinementState(row.confinement).label,
    };
    return values[key];
  }

  /** "2 running · 1 queued" */
  summary() {
    const all = this.processes;
    const count = (state) => all.filter((row) => row.state === state).length;
    const open = all.filter((row) => row.state === "running" && !confinementState(row.confinement).complete).length;
    if (!all.length) return "";
    return [
      `${count("running").toLocaleString("en")} running`,
      count("queued") ? `${count("queued").toLocaleString("en")} queued` : null,
      count("ended") ? `${count("ended").toLocaleString("en")} ended` : null,
      open ? `${plural(open, "process", "processes")} not fully confined` : null,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /** Show why the processes could not be read, until they can. */
  drawError(error) {
    if (error) this.requests.showError(error);
    else this.requests.clearError();
  }

  open(id) {
    this.opened = id;
    this.main.classList.add("wb-open");
    this.details.show(id);
    this.update(Date.now());
    this.details.focus();
  }

  close() {
    const id = this.opened;
    this.opened = null;
    this.details.hide();
    this.main.classList.remove("wb-open");
    this.update(Date.now());
    this.rows.items.get(id)?.opener.focus();
  }

  toggleEnded() {
    this.showAll = !this.showAll;
    this.update(Date.now());
  }

  onEscape(event) {
    if (event.key !== "Escape" || event.defaultPrevented || !this.opened) return;
    event.preventDefault();
    this.close();
  }
}

/** One process in the table. */
class ProcessRow {
  constructor(id, onOpen) {
    this.opener = button(id, "wb-opener", onOpen);
    this.persona = h("span", { class: "wb-alias" });
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.state = h("span", { class: "wb-cut" });
    this.confinement = h("span", { class: "wb-state" });
    this.cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.cells.agent.append(this.opener, this.persona);
    this.cells.state.append(h("span", { class: "wb-state" }, this.dot, this.state));
    this.cells.confinement.append(this.confinement);
    this.line = h("tr", { class: "wb-table-row" }, ...Object.values(this.cells));
    this.line.addEventListener("click", (event) => !event.target.closest("button") && onOpen());
    this.elements = [this.line];
  }

  show(process, usage, opened, now) {
    const { cells } = this;
    const live = process.state === "running" ? usage : null;
    setAttribute(this.opener, "aria-expanded", opened);
    this.line.classList.toggle("wb-active", opened);
    setText(this.persona, process.persona_id ?? "");
    setAttribute(this.dot, "data-state", processDot(process));
    setText(this.state, processLabel(process));
    setAttribute(cells.state, "title", [processLabel(process), process.reason].filter(Boolean).join(": "));
    setText(cells.profile, process.profile ?? "");
    setText(cells.worktree, process.worktree ?? "–");
    setText(cells.cpu, live ? `${Math.round(live.percent)} %` : "–");
    setText(cells.memory, live ? byteSize(live.memory_bytes) : "–");
    setText(cells.children, live ? String(live.children.length) : "–");
    setText(cells.uptime, uptime(process, now) || "–");
    this.drawConfinement(confinementState(process.confinement), process.state);
  }

  drawConfinement({ label, missing, complete }, state) {
    const text = state === "queued" ? "–" : label;
    if (this.confinement.textContent === text) return;
    const mark = icon(complete ? "shield" : "warning");
    this.confinement.replaceChildren(...(state === "queued" ? [text] : [mark, h("span", {}, label)]));
    setAttribute(this.confinement, "title", missing || null);
  }
}

function runningFirst(a, b) {
  const ended = a.state === "ended" ? (b.ended_at ?? "").localeCompare(a.ended_at ?? "") : 0;
  return RANK[a.state] - RANK[b.state] || ended || a.id.localeCompare(b.id, undefined, { numeric: true });
}
