/** One call of a tool, and below it, when it is open, what it was called with and what came of it. */

import { Facts, labelled } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dateTime, duration, timeOfDay } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { RequestRunner } from "../link/request_runner.js";
import { originBadge, showOrigin } from "./origin_badge.js";
import { CALL_STATES, callIcon, progressText } from "./state.js";
import { resultBlocks, valueBlock } from "../contents/values.js";

/** Columns by the name of their class. */
export const COLUMNS = {
  time: "Time",
  tool: "Tool",
  origin: "Source",
  caller: "Called by",
  state: "State",
  took: "Took",
};

export class CallRow {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.opener = button("", "wb-opener", () => this.toggle());
    this.opener.setAttribute("aria-expanded", "false");
    this.badge = originBadge();
    this.mark = h("span", { class: "wb-state" });
    this.cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    this.far = h("span", { class: "wb-muted wb-cut" });
    this.cells.tool.append(h("div", { class: "wb-line" }, this.opener, this.far));
    this.cells.origin.append(this.badge);
    this.cells.state.append(this.mark);
    this.line = h("tr", { class: "wb-table-row" }, ...Object.values(this.cells));
    this.facts = new Facts();
    this.values = h("div", { class: "wb-stack" });
    this.cancelButton = button("Cancel the call", "wb-button", () => this.cancel());
    const parts = [this.facts.element, this.cancelButton, this.requests.errorBox, this.values];
    this.place = h("td", { colspan: Object.keys(COLUMNS).length }, h("div", { class: "wb-stack wb-roomy" }, ...parts));
    this.below = h("tr", { class: "wb-table-details", hidden: true }, this.place);
    this.below.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(false));
    this.elements = [this.line, this.below];
  }

  get isOpen() {
    return !this.below.hidden;
  }

  /** @param {any} call @param {boolean} enabled whether requests can be sent @param {number} now in ms */
  show(call, enabled, now) {
    const {
      tool_name: name,
      caller,
      agent_id: agent,
      state,
      requested_at: at,
      duration_ms: ms,
      started_at: began,
    } = call;
    const isOther = call !== this.call;
    this.call = call;
    const took = ms ?? (state === "running" ? Math.max(0, now - Date.parse(began)) : null);
    setText(this.cells.took, took === null ? "" : duration(took));
    if (!isOther) return;
    setText(this.cells.time, timeOfDay(at));
    this.cells.time.title = dateTime(at);
    setText(this.opener, name);
    showOrigin(this.badge, call);
    setText(this.cells.caller, agent ?? caller);
    this.mark.replaceChildren(icon(callIcon(state)), h("span", {}, CALL_STATES[state] ?? state));
    setText(this.far, (state === "running" && this.progress()) || "");
    if (this.isOpen) this.load();
  }

  /** How far it is, or was when it last said so. */
  progress() {
    const { progress, progress_total: total, progress_message: message } = this.call;
    return progressText(progress, total, message);
  }

  toggle(open = !this.isOpen) {
    this.below.hidden = !open;
    this.line.classList.toggle("wb-opened", open);
    this.opener.setAttribute("aria-expanded", String(open));
    if (open) this.load();
    else this.opener.focus();
  }

  /** Read the whole values, which the list does not have. */
  async load() {
    this.drawFacts();
    const { call } = this;
    try {
      const whole = await this.requests.send("get_tool_call", { call_id: call.call_id });
      if (call === this.call) this.drawValues(whole);
      this.requests.clearError();
    } catch (error) {
      this.requests.showError(error);
    }
  }

  drawFacts() {
    const { call } = this;
    this.cancelButton.hidden = Boolean(call.ended_at);
    this.facts.update([
      ["Requested", dateTime(call.requested_at)],
      ["Waited", call.wait_ms > 0 && duration(call.wait_ms)],
      ["Progress", this.progress()],
      ["Error", call.error_code],
      ["Task", call.task_id && `${call.task_id}, attempt ${call.attempt}`],
      ["Tokens", call.input_tokens !== null && tokensText(call)],
      ["Cost", typeof call.cost_usd === "number" && `$${call.cost_usd.toFixed(4)}`],
      ["Version", call.version],
      ["Id", call.call_id],
    ]);
  }

  drawValues({ arguments: given, result }) {
    const { announce } = this.desk;
    const parts = [labelled("Arguments", valueBlock(given, "Copy the arguments", announce))];
    if (this.call.ended_at && result !== null)
      parts.push(labelled("Result", h("div", { class: "wb-stack" }, ...resultBlocks(result, announce))));
    this.values.replaceChildren(...parts);
  }

  async cancel() {
    const args = { call_id: this.call.call_id };
    const ended = await this.requests.run("cancel_tool_call", args, this.cancelButton, "Cancelling…");
    if (ended) this.desk.announce(`${this.call.tool_name} is cancelled.`);
  }
}

/** "1,204 read, 88 written" */
function tokensText({ input_tokens: read, output_tokens: written }) {
  return `${read.toLocaleString("en")} read, ${(written ?? 0).toLocaleString("en")} written`;
}
