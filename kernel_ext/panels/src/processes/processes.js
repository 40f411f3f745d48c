/** The processes of the agents that Workbench started: a table, and one of them opened beside it. */

import { Asker } from "../link/asker.js";
import { button, walkRows } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { confinementWords, cpuPercent, processDot, processWords, size, uptime } from "./words.js";
import { ProcessPage } from "./page.js";
import { WhileSeen } from "../lib/while_visible.js";

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
  uptime: "Up",
  confinement: "Confinement",
};

export class Processes {
  /** @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.opened = null;
    this.figures = new Map();
    this.showAll = false;
    /** @type {Map<string, ProcessRow>} */
    this.rows = new Map();
    const id = freshId("processes");
    this.body = h("tbody", {});
    const heads = Object.entries(COLUMNS).map(([key, name]) => h("th", { scope: "col", class: `wb-col-${key}` }, name));
    this.table = h(
      "table",
      { class: "wb-table wb-processes", "aria-labelledby": id, on: { keydown: (event) => walkRows(event, this.body) } },
      h("thead", {}, h("tr", {}, ...heads)),
      this.body,
    );
    this.more = button("", "wb-button", () => this.toggleEnded());
    this.empty = h(
      "p",
      { class: "wb-empty", id },
      "Workbench has started no agent. ",
      h("code", {}, 'wb.call("spawn_agent", persona_id="implementer", new_worktree=True)'),
      " starts one in a worktree of its own; agents that connect by themselves are under Agents.",
    );
    this.page = new ProcessPage(desk, () => this.close(), signal);
    this.main = h(
      "div",
      { class: "wb-split" },
      h("div", { class: "wb-split-list wb-stack" }, this.table, this.more),
      this.page.element,
    );
    this.element = h(
      "div",
      { class: "wb-stack", on: { keydown: (event) => this.onEscape(event) } },
      this.empty,
      this.asker.problem,
      this.main,
    );
    this.polling = new WhileSeen(this.table, POLL_MS, () => this.poll(), signal);
  }

  /** The processes, without the row that says why there can be none. */
  get known() {
    return [...this.desk.store.tables.processes.values()].filter(({ id }) => id !== "");
  }

  /** How many run. */
  count() {
    return this.known.filter(({ state }) => state === "running").length;
  }

  /** What moves by itself is asked for only while it is seen. */
  async poll() {
    if (!this.count()) return;
    try {
      const { agents } = await this.asker.send("get_managed_agents", {});
      this.figures = new Map(
        agents
          .filter(({ process }) => process)
          .map(({ agent_id, process }) => [agent_id, this.read(agent_id, process)]),
      );
      this.asker.clear();
      this.update(Date.now());
    } catch (error) {
      this.asker.show(error);
    }
  }

  read(id, process) {
    const made = { ...process, readAt: Date.now() };
    return { ...made, percent: cpuPercent(this.figures.get(id), made) };
  }

  /** @param {number} now in ms */
  update(now) {
    const { processes, tasks } = this.desk.store.tables;
    const all = this.known.sort(runningFirst);
    this.drawProblem(processes.get("")?.error);
    const ended = all.filter(({ state }) => state === "ended");
    const shown = this.showAll
      ? all
      : all.filter((row) => row.state !== "ended" || ended.indexOf(row) < ENDED_SHOWN || row.id === this.opened);
    this.empty.hidden = all.length > 0 || !this.desk.store.known.has("processes");
    this.main.hidden = all.length === 0;
    this.more.hidden = ended.length <= ENDED_SHOWN;
    setText(
      this.more,
      this.showAll ? "Show fewer that have ended" : `Show all ${ended.length.toLocaleString("en")} that have ended`,
    );
    this.drawRows(shown, now);
    const row = processes.get(this.opened);
    if (row)
      this.page.update(
        row,
        this.figures.get(row.id),
        [...tasks.values()].find((task) => task.assigned_agent_id === row.id && WORKING.has(task.status)),
        now,
      );
    else if (this.opened) this.close();
  }

  /** How they stand, in a line. */
  summary() {
    const all = this.known;
    const of = (state) => all.filter((row) => row.state === state);
    const open = of("running").filter(({ confinement }) => !confinementWords(confinement).whole).length;
    if (!all.length) return "";
    return [
      `${of("running").length.toLocaleString("en")} running`,
      of("queued").length ? `${of("queued").length.toLocaleString("en")} queued` : null,
      of("ended").length ? `${of("ended").length.toLocaleString("en")} ended` : null,
      open ? `${counted(open, "process", "processes")} not wholly confined` : null,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /** Say once that they could not be read. */
  drawProblem(error) {
    if (error?.message === this.said) return;
    this.said = error?.message;
    if (error) this.asker.show(error);
    else this.asker.clear();
  }

  drawRows(rows, now) {
    const wanted = new Set(rows.map(({ id }) => id));
    for (const [id, row] of this.rows) {
      if (wanted.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    let before = null;
    for (const process of rows) {
      const row = this.rows.get(process.id) ?? this.add(process.id);
      row.show(process, this.figures.get(process.id), process.id === this.opened, now);
      if (!row.element.parentNode || row.element.previousElementSibling !== before) {
        if (before) before.after(row.element);
        else this.body.prepend(row.element);
      }
      before = row.element;
    }
  }

  add(id) {
    const row = new ProcessRow(id, () => this.open(id));
    this.rows.set(id, row);
    return row;
  }

  open(id) {
    this.opened = id;
    this.main.classList.add("wb-open");
    this.page.show(id);
    this.update(Date.now());
    this.page.focus();
  }

  close() {
    const id = this.opened;
    this.opened = null;
    this.page.hide();
    this.main.classList.remove("wb-open");
    this.update(Date.now());
    this.rows.get(id)?.opener.focus();
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

/** One process's line. */
class ProcessRow {
  constructor(id, onOpen) {
    this.opener = button(id, "wb-opener", onOpen);
    this.persona = h("span", { class: "wb-alias" });
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.word = h("span", { class: "wb-cut" });
    this.guard = h("span", { class: "wb-state" });
    this.cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.cells.agent.append(this.opener, this.persona);
    this.cells.state.append(h("span", { class: "wb-state" }, this.dot, this.word));
    this.cells.confinement.append(this.guard);
    this.element = h("tr", { class: "wb-table-row" }, ...Object.values(this.cells));
    this.element.addEventListener("click", (event) => !event.target.closest("button") && onOpen());
  }

  show(process, figures, opened, now) {
    const { cells } = this;
    const live = process.state === "running" ? figures : null;
    setAttribute(this.opener, "aria-expanded", opened);
    this.element.classList.toggle("wb-active", opened);
    setText(this.persona, process.persona_id ?? "");
    setAttribute(this.dot, "data-state", processDot(process));
    setText(this.word, processWords(process));
    setAttribute(cells.state, "title", [processWords(process), process.reason].filter(Boolean).join(": "));
    setText(cells.profile, process.profile ?? "");
    setText(cells.worktree, process.worktree ?? "–");
    setText(cells.cpu, live ? `${Math.round(live.percent)} %` : "–");
    setText(cells.memory, live ? size(live.memory_bytes) : "–");
    setText(cells.children, live ? String(live.children.length) : "–");
    setText(cells.uptime, uptime(process, now) || "–");
    this.drawGuard(confinementWords(process.confinement), process.state);
  }

  drawGuard({ word, lacks, whole }, state) {
    const text = state === "queued" ? "–" : word;
    if (this.guard.textContent === text) return;
    this.guard.replaceChildren(
      ...(state === "queued" ? [text] : [icon(whole ? "shield" : "warning"), h("span", {}, word)]),
    );
    setAttribute(this.guard, "title", lacks || null);
  }
}

function runningFirst(a, b) {
  return (
    RANK[a.state] - RANK[b.state] ||
    (a.state === "ended" ? (b.ended_at ?? "").localeCompare(a.ended_at ?? "") : 0) ||
    a.id.localeCompare(b.id, undefined, { numeric: true })
  );
}
