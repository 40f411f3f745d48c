/** The Analytics tab: what the project did within the last minutes or hours, as charts that follow it. */

import { drawnIn, html } from "../components/ui.js";
import { Bars } from "../charts/bars.js";
import { Figure } from "../charts/figure.js";
import { freshId, h } from "../lib/dom.js";
import { Segments } from "../lib/controls.js";
import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { agentBars, overTime, stream, toolBars, waitBars } from "./pictures.js";
import { Spending } from "./spending.js";
import * as sentences from "./sentences.js";

/** The least time between two readings; without events, windows move on as slowly as `IDLE_MS`. */
const PACE_MS = 500;
const IDLE_MS = 10_000;
const WINDOWS = { 15: "15 minutes", 60: "hour", 360: "6 hours", 1440: "24 hours" };
const LABELS = { 15: "15 min", 60: "1 h", 360: "6 h", 1440: "24 h" };
/** What events must be about to change a chart. */
const NOUNS = ["task", "approval", "agent", "tool_call", "message", "conversation"];
const ENDED = [
  ["completed", "completed", "completed"],
  ["failed", "failed", "failed or expired"],
  ["other", "other", "released or cancelled"],
];
const QUEUED = [
  ["running", "in_progress", "worked on"],
  ["waiting", "waiting", "waiting"],
];
const USED = [
  ["input_tokens", "in_progress", "tokens of input"],
  ["output_tokens", "output", "tokens of output"],
];

export class Analytics {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   * @param {{task: (id: number) => void, agent: (id: string) => void, inbox: () => void, tools: () => void}} open
   */
  constructor(store, channel, announce, signal, open) {
    this.store = store;
    this.open = open;
    this.requests = new RequestRunner({ channel, announce });
    this.minutes = "60";
    this.isStale = true;
    this.readAt = 0;
    const id = freshId("analytics");
    this.windows = new Segments(LABELS, "Show the last", (minutes) => this.choose(minutes));
    this.windows.show(this.minutes);
    this.makeFigures(signal);
    const heading = h("h3", { class: "wb-heading wb-grow", id }, "Analytics");
    const hint = h("p", { class: "wb-muted" }, "Reports on all of the past: ", h("code", {}, "%workbench report"), ".");
    const toolbar = h("div", { class: "wb-toolbar" }, heading, hint, this.windows.element);
    const figures = Object.values(this.figures).map(({ element }) => element);
    this.grid = h("div", { class: "wb-figures", hidden: true }, ...figures);
    const parts = [toolbar, this.requests.errorBox, this.grid];
    const charts = h("section", { class: "wb-section wb-stack wb-analytics", "aria-labelledby": id }, ...parts);
    const spending = h("div", {});
    drawnIn(spending, signal)(html`<${Spending} desk=${{ channel, announce }} />`);
    this.element = h("div", {}, charts, spending);
    store.subscribe(() => this.onChange(), signal);
    const onError = (error) => this.requests.showError(error);
    this.polling = new VisiblePolling(charts, PACE_MS, () => this.poll(), onError, signal);
  }

  makeFigures(signal) {
    const figure = (name, style) => new Figure(name, signal, style);
    this.figures = {
      throughput: figure("Throughput"),
      queue: figure("Queue"),
      stream: figure("Task stream", "wb-figure-wide"),
      utilisation: figure("Utilisation"),
      approvals: figure("Approvals"),
      tools: figure("Tools"),
      tokens: figure("Tokens and cost"),
    };
    this.bars = {};
    for (const name of ["utilisation", "approvals", "tools"]) {
      this.bars[name] = new Bars(this.figures[name].name);
      this.figures[name].canvas.after(this.bars[name].element);
    }
  }

  choose(minutes) {
    this.minutes = minutes;
    this.windows.show(minutes);
    this.isStale = true;
    this.polling.runNow();
  }

  onChange() {
    if (this.store.concernsAny(...NOUNS)) this.isStale = true;
  }

  /** Read what has changed, or what time alone moves on. */
  async poll() {
    if (!this.isStale && Date.now() - this.readAt < IDLE_MS) return;
    const { minutes } = this;
    this.isStale = false;
    try {
      const activity = await this.requests.send("get_activity", { minutes: Number(minutes) });
      this.requests.clearError();
      if (minutes === this.minutes) this.draw(activity);
      else this.isStale = true;
    } catch (error) {
      this.isStale = true;
      throw error;
    }
    this.readAt = Date.now();
  }

  draw(activity) {
    this.grid.hidden = false;
    const span = WINDOWS[this.minutes];
    const some = (layers) => activity.intervals.some((interval) => layers.some(([field]) => interval[field]));
    const parts = {
      throughput: some(ENDED) && overTime(activity, ENDED),
      queue: some(QUEUED) && overTime(activity, QUEUED),
      stream: activity.attempts.length > 0 && stream(activity, this.open),
      tokens: some(USED) && overTime(activity, USED),
    };
    for (const [name, figure] of Object.entries(this.figures)) {
      figure.show({ sentence: sentences[name](activity, span), ...(parts[name] || {}) });
    }
    this.bars.utilisation.show(agentBars(activity, this.open));
    this.bars.approvals.show(waitBars(activity, this.store.tables.approvals, this.open));
    this.bars.tools.show(toolBars(activity, this.open));
  }
}
