/** One process's details beside the table: what it uses, its log, and the buttons to restart or terminate it. */

import { Facts } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button } from "../lib/controls.js";
import { freshId, h, renew, setAttribute, setText } from "../lib/dom.js";
import { byteSize, dateTime, duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { ProcessLog } from "./log.js";
import { confinementState, limitsText, processDot, processLabel, uptime } from "./state.js";

const POLL_MS = 750;
const LOG_LINES = 200;
const TERMINATE = {
  consequence: "The process and everything it started are ended. Its tasks can be claimed by other agents.",
  reason: "Reason (optional; kept in the history)",
};
const RESTART = { consequence: "It is started again with the same settings.", danger: false };

export class ProcessDetails {
  /** @param {any} desk @param {() => void} onClose @param {AbortSignal} signal */
  constructor(desk, onClose, signal) {
    this.desk = desk;
    /** @type {string|null} the agent whose process is shown */
    this.id = null;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    this.log = new ProcessLog();
    this.facts = new Facts();
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.state = h("div", { class: "wb-muted wb-indented" });
    this.confinement = h("div", { class: "wb-message wb-indented" });
    this.restart = button("Restart…", "wb-button", () => this.askRestart());
    this.terminate = button("Terminate…", "wb-button", () => this.askTerminate());
    this.confirmBox = h("div", {});
    this.children = h("div", {});
    const id = freshId("process");
    this.title = h("h4", { class: "wb-pane-title", id, tabindex: -1 });
    const mark = h("span", { class: "wb-mark" }, this.dot);
    const close = button("×", "wb-close", onClose, "Close the process");
    this.element = h(
      "section",
      { class: "wb-pane wb-stack wb-roomy wb-process", "aria-labelledby": id, hidden: true },
      h("div", { class: "wb-pane-head" }, mark, this.title, close),
      h("div", {}, this.state, this.confinement),
      h("div", { class: "wb-line wb-indented" }, this.restart, this.terminate),
      this.confirmBox,
      this.requests.errorBox,
      this.log.element,
      this.reader.errorBox,
      this.facts.element,
      this.children,
    );
    const onError = (error) => this.reader.showError(error);
    this.polling = new VisiblePolling(this.element, POLL_MS, () => this.read(), onError, signal);
  }

  /** @param {string} id */
  show(id) {
    if (this.id !== id) {
      this.id = id;
      this.row = this.process = null;
      this.log.clear();
      this.children.replaceChildren();
      this.confirmBox.replaceChildren();
      this.requests.clearError();
      this.reader.clearError();
    }
    this.element.hidden = false;
    this.polling.runNow();
  }

  hide() {
    this.id = null;
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  /** Read what changes without an event; of a process that has ended, once. */
  async read() {
    const { id } = this;
    if (id === null || (this.process?.state === "ended" && this.row?.state === "ended")) return;
    const process = await this.reader.send("get_agent_process_info", { agent_id: id, log_lines: LOG_LINES });
    if (id !== this.id) return;
    this.reader.clearError();
    this.process = process;
    this.log.update(process.log_tail, process.log);
    if (this.row) this.draw(Date.now());
  }

  /**
   * Bring it up to date.
   * @param {any} row @param {any} usage of CPU and memory @param {any} task it works on @param {number} now in ms
   */
  update(row, usage, task, now) {
    const changed = this.row && this.row !== row;
    this.row = row;
    this.usage = row.state === "running" ? usage : null;
    this.task = task;
    this.draw(now);
    if (changed) this.polling.runNow();
  }

  draw(now) {
    const { row } = this;
    this.dot.dataset.state = processDot(row);
    setText(this.title, row.id);
    setText(this.state, [processLabel(row), row.reason, uptime(row, now)].filter(Boolean).join(" · "));
    this.drawConfinement(confinementState(row.confinement));
    this.terminate.hidden = row.state === "ended";
    this.restart.hidden = row.state === "queued";
    setAttribute(this.restart, "aria-label", `Restart… ${row.id}`);
    setAttribute(this.terminate, "aria-label", `Terminate… ${row.id}`);
    this.drawFacts();
    this.drawChildren();
  }

  drawConfinement({ label, missing, complete }) {
    const text = missing ? `${label}: ${missing}` : label;
    if (this.confinement.textContent === text) return;
    this.confinement.replaceChildren(icon(complete ? "shield" : "warning"), h("span", {}, text));
  }

  drawFacts() {
    const { row, task, usage } = this;
    const process = { ...row, ...this.process };
    const mode = process.mode === "task" ? "for one task" : "claims tasks as they come";
    const cpu =
      usage && `${Math.round(usage.percent)} % of a processor, ${duration(usage.cpu_seconds * 1000)} in total`;
    this.facts.update([
      ["Works on", task && `${task.title} #${task.id}`],
      ["Persona", row.persona_id],
      ["Profile", process.profile && `${process.profile}, ${mode}`],
      ["Worktree", process.worktree],
      ["Process", process.pid],
      ["CPU", cpu],
      ["Memory", usage && byteSize(usage.memory_bytes)],
      ["Limits", limitsText(process.limits) || "none"],
      ["Started", process.spawned_at && dateTime(process.spawned_at)],
      ["Ended", process.ended_at && dateTime(process.ended_at)],
    ]);
  }

  drawChildren() {
    const children = this.process?.children ?? [];
    const cells = ({ pid, name, cpu_seconds: cpu, memory_bytes: memory }) =>
      [name, String(pid), duration(cpu * 1000), byteSize(memory)].map((text) => h("td", {}, text));
    const heads = ["Child process", "Process", "CPU", "Memory"].map((name) => h("th", { scope: "col" }, name));
    const rows = children.map((child) => h("tr", {}, ...cells(child)));
    const head = h("thead", {}, h("tr", {}, ...heads));
    const table = h("table", { class: "wb-table wb-children" }, head, h("tbody", {}, ...rows));
    renew(this.children, ...(rows.length ? [table] : []));
  }

  askTerminate() {
    const words = { ...TERMINATE, label: `Terminate ${this.id}` };
    this.ask(this.terminate, words, (reason, pressed) =>
      this.run("terminate_agent", { reason }, pressed, "Terminating…", "terminated"),
    );
  }

  askRestart() {
    const running = this.row.state === "running" ? "Its process is ended first. " : "";
    const words = { ...RESTART, label: `Restart ${this.id}`, consequence: running + RESTART.consequence };
    this.ask(this.restart, words, (_, pressed) => this.run("restart_agent", {}, pressed, "Restarting…", "restarted"));
  }

  ask(opener, words, onConfirm) {
    this.requests.clearError();
    askIn(this.confirmBox, opener, words, onConfirm);
  }

  async run(op, more, pressed, label, done) {
    const { id } = this;
    const outcome = await this.requests.run(op, { agent_id: id, ...more }, pressed, label);
    if (!outcome) return;
    this.confirmBox.replaceChildren();
    this.process = null;
    this.desk.announce(`${id}: ${done}.`);
    this.polling.runNow();
    this.focus();
  }
}
