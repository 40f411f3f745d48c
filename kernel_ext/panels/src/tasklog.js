/** What agents said about a task: live, the newest at the bottom, earlier lines on demand. */

import { Asker } from "./asker.js";
import { button } from "./controls.js";
import { h, setText } from "./dom.js";
import { clock, counted } from "./format.js";
import { icon } from "./icons.js";

const PAGE = 500;
const STEP = 100;
const NEAR = 24;
const LOUD = new Set(["warn", "error"]);

export class TaskLog {
  /** @param {any} desk */
  constructor(desk) {
    this.asker = new Asker(desk);
    this.label = h("div", { class: "wb-label" });
    this.earlier = button("", "wb-link", () => this.showEarlier());
    this.lines = h("ol", { class: "wb-log-lines" });
    this.box = h("div", { class: "wb-log", role: "log", tabindex: 0, "aria-label": "Log" }, this.earlier, this.lines);
    this.element = h("div", { class: "wb-task-part", hidden: true }, this.label, this.box);
    this.stop();
  }

  /** Begin with another task. @param {number} id */
  start(id) {
    this.id = id;
    this.known = [];
    this.shown = STEP;
    this.lines.replaceChildren();
    this.element.hidden = true;
  }

  stop() {
    this.start(null);
  }

  /** Read what is new. Errors are left to whoever reads the task itself: it fails as this does. */
  async read() {
    const { id } = this;
    for (let page = PAGE; page === PAGE && id === this.id; ) {
      const cursor = this.known.at(-1)?.id ?? 0;
      const found = await this.asker.send("get_task_logs", { task_id: id, cursor, limit: PAGE }).catch(() => ({ lines: [] }));
      if (id !== this.id || cursor !== (this.known.at(-1)?.id ?? 0)) return;
      this.known.push(...found.lines);
      page = found.lines.length;
    }
    this.draw();
  }

  draw() {
    const { box, lines } = this;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    const from = Math.max(0, this.known.length - this.shown);
    const wanted = this.known.slice(from);
    const first = Number(lines.firstElementChild?.value);
    if (first && first !== wanted[0]?.id) lines.replaceChildren();
    const last = lines.lastElementChild?.value ?? 0;
    lines.append(...wanted.filter(({ id }) => id > last).map(drawn));
    setText(this.label, `Log · ${counted(this.known.length, "line")}`);
    setText(this.earlier, `Show ${Math.min(STEP, from)} earlier`);
    this.earlier.hidden = from === 0;
    this.element.hidden = this.known.length === 0;
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  /** What was at the top stays where it is. */
  showEarlier() {
    const { box } = this;
    const below = box.scrollHeight - box.scrollTop;
    this.shown += STEP;
    this.draw();
    box.scrollTop = box.scrollHeight - below;
    box.focus();
  }
}

function drawn({ id, logged_at: at, agent_id: agent, level, message }) {
  const mark = LOUD.has(level) ? [icon(level === "error" ? "failed" : "warning"), h("span", { class: "wb-sr" }, `${level}: `)] : [];
  return h(
    "li",
    { value: id, class: `wb-log-${level}` },
    h("time", { class: "wb-muted", datetime: at, title: at }, clock(at)),
    h("span", { class: "wb-log-text" }, ...mark, h("span", { class: "wb-muted" }, `${agent} `), message),
  );
}
