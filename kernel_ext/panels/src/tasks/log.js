/** What agents said about a task: its end, live, the newest at the bottom; earlier lines are read on demand. */

import { Asker } from "../link/asker.js";
import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { clock, counted } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { LogTail } from "../lib/log_tail.js";

/** Lines that are there at first, and that are added at a time. */
const STEP = 100;
const NEAR = 24;
const LOUD = new Set(["warn", "error"]);

export class TaskLog {
  /** @param {any} desk */
  constructor(desk) {
    this.asker = new Asker(desk);
    this.label = h("div", { class: "wb-label" });
    this.earlier = button("", "wb-link", () => this.showEarlier());
    this.lines = h("ol", { class: "wb-task-log" });
    this.box = h("div", { class: "wb-log", role: "log", tabindex: 0, "aria-label": "Log" }, this.earlier, this.lines);
    this.element = h("div", { hidden: true }, this.label, this.box);
    this.stop();
  }

  /** Begin with another task. @param {number|null} id */
  start(id) {
    this.tail = new LogTail((range) => this.ask(id, range), STEP);
    this.shown = STEP;
    this.lines.replaceChildren();
    this.element.hidden = true;
  }

  stop() {
    this.start(null);
  }

  /** Errors are left to whoever reads the task itself: it fails as this does. */
  ask(id, range) {
    return this.asker.send("get_task_logs", { task_id: id, ...range }).then(
      ({ lines }) => lines,
      () => null,
    );
  }

  /** Read what is new. */
  async read() {
    const { tail } = this;
    await tail.read();
    if (tail === this.tail) this.draw();
  }

  draw() {
    const { box, lines, tail } = this;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    const from = Math.max(0, tail.lines.length - this.shown);
    const wanted = tail.lines.slice(from);
    const first = Number(lines.firstElementChild?.value);
    if (first && first !== wanted[0]?.id) lines.replaceChildren();
    const last = lines.lastElementChild?.value ?? 0;
    lines.append(...wanted.filter(({ id }) => id > last).map(drawn));
    const many = counted(tail.lines.length, "line");
    setText(this.label, tail.whole ? `Log · ${many}` : `Log · the last ${many}`);
    setText(this.earlier, tail.whole || from >= STEP ? `Show ${Math.min(STEP, from)} earlier` : "Show earlier");
    this.earlier.hidden = from === 0 && tail.whole;
    this.element.hidden = tail.lines.length === 0;
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  /** What was at the top stays where it is. */
  async showEarlier() {
    const { box, tail } = this;
    const isHere = tail.whole || tail.lines.length >= this.shown + STEP || (await tail.readBack());
    if (!isHere || tail !== this.tail) return;
    const below = box.scrollHeight - box.scrollTop;
    this.shown += STEP;
    this.draw();
    box.scrollTop = box.scrollHeight - below;
    box.focus();
  }
}

function drawn({ id, logged_at: at, agent_id: agent, level, message }) {
  const mark = LOUD.has(level)
    ? [icon(level === "error" ? "failed" : "warning"), h("span", { class: "wb-sr" }, `${level}: `)]
    : [];
  return h(
    "li",
    { value: id, "data-level": level },
    h("time", { class: "wb-muted", datetime: at, title: at }, clock(at)),
    h("span", { class: "wb-prose" }, ...mark, h("span", { class: "wb-muted" }, `${agent} `), message),
  );
}
