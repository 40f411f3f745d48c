/** The log of a task: its end, live, with the newest line at the bottom; earlier lines on request. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural, timeOfDay } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { LogTail } from "../lib/log_tail.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";

/** Lines shown at first, and added at a time. */
const STEP = 100;
const NEAR_PX = 24;
const ICONS = { warn: "warning", error: "failed" };

export class TaskLog {
  /** @param {any} desk */
  constructor(desk) {
    this.requests = new RequestRunner(desk);
    this.label = h("div", { class: "wb-label" });
    this.earlier = button("", "wb-link", () => this.showEarlier());
    this.lines = h("ol", { class: "wb-task-log" });
    this.box = h("div", { class: "wb-log", role: "log", tabindex: 0, "aria-label": "Log" }, this.earlier, this.lines);
    this.element = h("div", {}, this.label, this.box, this.requests.errorBox);
    this.show(null);
  }

  /** Show the log of another task. @param {number|null} id null: of none */
  show(id) {
    this.refresh?.stop();
    const load = async (range) => (await this.requests.send("get_task_logs", { task_id: id, ...range })).lines;
    this.tail = new LogTail(load, STEP);
    this.refresh = new Refresh(
      () => this.read(this.tail),
      (error) => this.onError(error),
    );
    this.limit = STEP;
    this.lines.replaceChildren();
    this.requests.clearError();
    this.element.hidden = true;
    if (id !== null) this.refresh.now();
  }

  /** Read the lines that are new. */
  async read(tail) {
    await tail.readNew();
    if (tail !== this.tail) return;
    this.requests.clearError();
    this.draw();
  }

  onError(error) {
    this.element.hidden = false;
    this.requests.showError(error);
  }

  draw() {
    const { box, lines, tail } = this;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    const from = Math.max(0, tail.lines.length - this.limit);
    const lastLines = tail.lines.slice(from);
    const first = Number(lines.firstElementChild?.value);
    if (first && first !== lastLines[0]?.id) lines.replaceChildren();
    const last = lines.lastElementChild?.value ?? 0;
    lines.append(...lastLines.filter(({ id }) => id > last).map(lineElement));
    const count = plural(tail.lines.length, "line");
    setText(this.label, tail.complete ? `Log · ${count}` : `Log · the last ${count}`);
    setText(this.earlier, tail.complete || from >= STEP ? `Show ${Math.min(STEP, from)} earlier` : "Show earlier");
    this.earlier.hidden = from === 0 && tail.complete;
    this.element.hidden = tail.lines.length === 0;
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  /** Show more lines above; the lines in view stay where they are. */
  async showEarlier() {
    const { box, tail } = this;
    try {
      if (!tail.complete && tail.lines.length < this.limit + STEP) await tail.readEarlier();
    } catch (error) {
      if (tail === this.tail) this.onError(error);
      return;
    }
    if (tail !== this.tail) return;
    this.requests.clearError();
    const below = box.scrollHeight - box.scrollTop;
    this.limit += STEP;
    this.draw();
    box.scrollTop = box.scrollHeight - below;
    box.focus();
  }
}

function lineElement({ id, logged_at: at, agent_id: agent, level, message }) {
  const mark = ICONS[level] ? [icon(ICONS[level]), h("span", { class: "wb-sr" }, `${level}: `)] : [];
  return h(
    "li",
    { value: id, "data-level": level },
    h("time", { class: "wb-muted", datetime: at, title: at }, timeOfDay(at)),
    h("span", { class: "wb-prose" }, ...mark, h("span", { class: "wb-muted" }, `${agent} `), message),
  );
}
