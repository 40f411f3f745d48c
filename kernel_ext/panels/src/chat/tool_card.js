/** The call of a tool in an answer: one line that opens, the pictures that it returned, and the question about it while
 * it waits for permission. */

import { ApprovalSlot } from "../inbox/approval_slot.js";
import { labelled } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { duration, oneLine } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { progressText } from "../tools/state.js";
import { RequestRunner } from "../link/request_runner.js";
import { longText, picture, pictures } from "../contents/values.js";

const LABELS = {
  running: "running",
  waiting: "waits for you",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
};
const ICONS = { running: "in_progress", waiting: "question" };

export class ToolCard {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.twisty = h("span", { class: "wb-twisty" }, icon("twisty"));
    this.mark = h("span", { class: "wb-mark" });
    this.name = h("span", { class: "wb-strong wb-wrap" });
    this.source = h("span", { class: "wb-source" });
    this.line = h("span", { class: "wb-muted wb-grow wb-cut" });
    this.state = h("span", { class: "wb-muted" });
    this.body = h("div", { class: "wb-stack wb-tool-body", id: freshId("call"), hidden: true });
    this.head = button("", "wb-tool-head", () => this.toggle());
    this.head.append(this.twisty, this.mark, this.name, this.source, this.line, this.state);
    this.head.setAttribute("aria-expanded", "false");
    this.head.setAttribute("aria-controls", this.body.id);
    this.slot = new ApprovalSlot(desk, () => this.head.focus());
    this.requests = new RequestRunner(desk);
    this.pictures = h("div", { class: "wb-stack wb-tool-pictures", hidden: true });
    const details = [this.pictures, this.requests.errorBox, this.slot.element];
    this.element = h("div", { class: "wb-tool-card" }, this.head, this.body, ...details);
  }

  /** @param {import("./transcript.js").ToolPart} part */
  show(part) {
    const { tool_name: name, tool_input: input, source, server, duration_ms: ms } = part;
    this.part = part;
    const state = this.stateOf(part);
    setText(this.name, name);
    setText(this.source, server ?? source);
    const own = server ? `A trait of your agent ${server}` : "A tool of this project";
    this.source.title = source === "mcp" ? `A tool of ${server}, which runs elsewhere` : own;
    setText(this.line, oneLine(input));
    const took = typeof ms === "number" ? duration(ms) : null;
    const far = state === "running" ? progressText(part.progress, part.total, part.message) : null;
    setText(this.state, [LABELS[state] ?? state, far, took].filter(Boolean).join(" · "));
    if (state !== this.drawnState) this.mark.replaceChildren(icon(ICONS[state] ?? state));
    this.drawnState = state;
    if (!this.body.hidden) this.drawBody();
    if (part.pictures?.length && part.record_id !== this.drawnPictures) this.drawPictures();
  }

  /** Read the pictures that it returned from its record. */
  async drawPictures() {
    const id = (this.drawnPictures = this.part.record_id);
    if (!id) return;
    try {
      const { result } = await this.requests.send("get_tool_call", { call_id: id });
      this.pictures.replaceChildren(...pictures(result).map(picture));
      this.pictures.hidden = false;
      this.requests.clearError();
    } catch (error) {
      this.requests.showError(error);
    }
  }

  /** A call that was allowed runs, although no frame says so. */
  stateOf({ state, approval_id: id }) {
    const { approvals } = this.desk.store.tables;
    return state === "waiting" && id && !approvals.has(id) && this.wasAsked ? "running" : state;
  }

  /** Show the question while it is open. @param {boolean} enabled whether decisions can be sent @param {number} now in ms */
  update(enabled, now) {
    const { state, approval_id: id } = this.part;
    const pending = state === "waiting" ? this.desk.store.tables.approvals.get(id) : undefined;
    if (pending) this.wasAsked = true;
    this.slot.show(pending, () => enabled, now);
    this.show(this.part);
  }

  /** Whether it waits for the person's decision. */
  get isWaiting() {
    return this.stateOf(this.part) === "waiting";
  }

  /** Lead to the question. */
  focus() {
    (this.slot.card?.element ?? this.head).focus();
  }

  toggle() {
    const open = this.body.hidden;
    this.body.hidden = !open;
    this.head.setAttribute("aria-expanded", String(open));
    this.twisty.classList.toggle("wb-turned", open);
    if (open) this.drawBody();
  }

  drawBody() {
    const { tool_input: input, tool_result: result } = this.part;
    const key = JSON.stringify([input, result]);
    if (key === this.drawnBody) return;
    this.drawnBody = key;
    const { announce } = this.desk;
    const parts = [labelled("Arguments", longText(indented(input), "Copy the arguments", announce))];
    if (result !== null && result !== undefined)
      parts.push(labelled("Result", longText(indented(result), "Copy the result", announce)));
    this.body.replaceChildren(...parts);
  }

  /** Do not follow the question any more. */
  stop() {
    this.slot.clear();
  }
}

/** JSON on several lines; any other text as it is. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
