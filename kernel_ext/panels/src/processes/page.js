/** One process, opened beside the others: what it uses, what it writes, and how to end or start it. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { Facts } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { duration, moment } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { confinementWords, limitWords, processDot, processWords, size, uptime } from "./words.js";
import { ProcessLog } from "./log.js";
import { WhileSeen } from "../lib/while_visible.js";

const FOLLOW_MS = 750;
const LINES = 200;
const TERMINATE = {
  reason: "Reason (optional; kept in the history)",
  why: "Its process and everything it started are ended. What it holds can be claimed by others.",
};
const RESTART = { why: "It is started again with the same settings.", danger: false };

export class ProcessPage {
  /** @param {any} desk @param {() => void} onClose @param {AbortSignal} signal */
  constructor(desk, onClose, signal) {
    this.desk = desk;
    /** @type {string|null} */
    this.id = null;
    this.asker = new Asker(desk);
    this.reader = new Asker(desk);
    this.log = new ProcessLog();
    const name = freshId("process");
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.title = h("h4", { class: "wb-pane-title", id: name, tabindex: -1 });
    this.standing = h("div", { class: "wb-muted wb-indented" });
    this.guard = h("div", { class: "wb-message wb-indented" });
    this.restart = button("Restart…", "wb-button", () => this.ask("restart"));
    this.end = button("Terminate…", "wb-button", () => this.ask("end"));
    this.asked = h("div", {});
    this.facts = new Facts();
    this.children = h("div", {});
    this.element = h(
      "section",
      { class: "wb-pane wb-stack wb-roomy wb-process", "aria-labelledby": name, hidden: true },
      h(
        "div",
        { class: "wb-pane-head" },
        h("span", { class: "wb-mark" }, this.dot),
        this.title,
        button("×", "wb-close", onClose, "Close the process"),
      ),
      h("div", {}, this.standing, this.guard),
      h("div", { class: "wb-line wb-indented" }, this.restart, this.end),
      this.asked,
      this.asker.problem,
      this.log.element,
      this.reader.problem,
      this.facts.element,
      this.children,
    );
    this.following = new WhileSeen(this.element, FOLLOW_MS, () => this.read(), signal);
  }

  /** @param {string} id */
  show(id) {
    if (this.id !== id) {
      this.id = id;
      this.process = null;
      this.log.clear();
      this.children.replaceChildren();
      this.asked.replaceChildren();
      this.asker.clear();
      this.reader.clear();
    }
    this.element.hidden = false;
    this.following.now();
  }

  hide() {
    this.id = null;
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  /** Read what moves; an ended process is read once. */
  async read() {
    const { id } = this;
    if (id === null || (this.process?.state === "ended" && this.row?.state === "ended")) return;
    try {
      const process = await this.reader.send("get_agent_process_info", { agent_id: id, log_lines: LINES });
      if (id !== this.id) return;
      this.reader.clear();
      this.process = process;
      this.log.take(process.log_tail, process.log);
      this.draw(Date.now());
    } catch (error) {
      if (id === this.id) this.reader.show(error);
    }
  }

  /** Take what is known now. @param {any} row @param {any} figures what it uses @param {any} task what it works on @param {number} now */
  update(row, figures, task, now) {
    const news = this.row && this.row.id === row.id && this.row !== row;
    this.row = row;
    this.figures = row.state === "running" ? figures : null;
    this.task = task;
    this.draw(now);
    if (news) this.following.now();
  }

  draw(now) {
    const { row } = this;
    this.dot.dataset.state = processDot(row);
    setText(this.title, row.id);
    setText(this.standing, [processWords(row), row.reason, uptime(row, now)].filter(Boolean).join(" · "));
    this.drawGuard(confinementWords(row.confinement));
    this.end.hidden = row.state === "ended";
    this.restart.hidden = row.state === "queued";
    this.restart.setAttribute("aria-label", `Restart… ${row.id}`);
    this.end.setAttribute("aria-label", `Terminate… ${row.id}`);
    this.drawFacts(now);
    this.drawChildren();
  }

  drawGuard({ word, lacks, whole }) {
    const text = lacks ? `${word}: ${lacks}` : word;
    if (this.guard.textContent === text) return;
    this.guard.replaceChildren(icon(whole ? "shield" : "warning"), h("span", {}, text));
  }

  drawFacts() {
    const { row, task } = this;
    const process = { ...row, ...this.process };
    this.facts.update([
      ["Works on", task ? `${task.title} #${task.id}` : null],
      ["Persona", row.persona_id],
      [
        "Profile",
        process.profile &&
          `${process.profile}, ${process.mode === "task" ? "for one task" : "takes tasks as they come"}`,
      ],
      ["Worktree", process.worktree],
      ["Process", process.pid],
      [
        "CPU",
        this.figures &&
          `${Math.round(this.figures.percent)} % of a processor, ${duration(this.figures.cpu_seconds * 1000)} in all`,
      ],
      ["Memory", this.figures && size(this.figures.memory_bytes)],
      ["Limits", limitWords(process.limits) || "none"],
      ["Started", process.spawned_at && moment(process.spawned_at)],
      ["Ended", process.ended_at && moment(process.ended_at)],
    ]);
  }

  drawChildren() {
    const children = this.process?.children ?? [];
    const line = ({ pid, name, cpu_seconds: cpu, memory_bytes: memory }) =>
      h(
        "tr",
        {},
        h("td", {}, name),
        h("td", {}, String(pid)),
        h("td", {}, duration(cpu * 1000)),
        h("td", {}, size(memory)),
      );
    const heads = ["Started by it", "Process", "CPU", "Memory"].map((name) => h("th", { scope: "col" }, name));
    this.children.replaceChildren(
      ...(children.length
        ? [
            h(
              "table",
              { class: "wb-table wb-children" },
              h("thead", {}, h("tr", {}, ...heads)),
              h("tbody", {}, ...children.map(line)),
            ),
          ]
        : []),
    );
  }

  ask(what) {
    this.asker.clear();
    const opener = what === "end" ? this.end : this.restart;
    const close = () => {
      this.asked.replaceChildren();
      opener.focus();
    };
    const words =
      what === "end"
        ? { ...TERMINATE, label: `Terminate ${this.id}` }
        : {
            ...RESTART,
            label: `Restart ${this.id}`,
            why: this.row.state === "running" ? `Its process is ended first. ${RESTART.why}` : RESTART.why,
          };
    const question = new Confirm(
      words,
      (reason, pressed) =>
        what === "end"
          ? this.run("terminate_agent", { reason }, pressed, "Terminating…", "terminated")
          : this.run("restart_agent", {}, pressed, "Restarting…", "started again"),
      close,
    );
    this.asked.replaceChildren(question.element);
    question.focus();
  }

  async run(op, more, pressed, busy, done) {
    const { id } = this;
    const outcome = await this.asker.ask(op, { agent_id: id, ...more }, pressed, busy);
    if (!outcome) return;
    this.asked.replaceChildren();
    this.process = null;
    this.desk.announce(`${id}: ${done}.`);
    this.following.now();
    this.focus();
  }
}
