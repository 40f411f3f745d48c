/** Figures of the server, read again and again while they are visible. */

import { h, setText } from "../lib/dom.js";
import { byteSize, plural, shortNumber } from "../lib/format.js";
import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { section } from "./section.js";

const POLL_MS = 2_000;
const perSecond = (value) => `${shortNumber(value)} /s`;
const milliseconds = (value) => `${shortNumber(value)} ms`;
const count = (noun) => (value) => plural(value, noun);
/** The figures, each with its unit. @type {[string, (values: any) => number|null, (value: number) => string][]} */
const FIGURES = [
  ["queue length", (values) => values.queue_length, count("change")],
  ["written", (values) => values.writes_per_second, (value) => `${plural(value, "change")}/s`],
  ["committed", (values) => values.commits_per_second, perSecond],
  ["in one commit", (values) => values.writes_per_commit, count("change")],
  ["time of a commit, median", ({ commit_ms: times }) => times.p50, milliseconds],
  ["time of a commit, 95th percentile", ({ commit_ms: times }) => times.p95, milliseconds],
  ["time of a commit, longest", ({ commit_ms: times }) => times.max, milliseconds],
  ["connected", (values) => values.connections, count("connection")],
  ["waiting for admission", (values) => values.pending_agents, count("agent")],
  ["reading the feed", (values) => values.feed_readers, count("reader")],
  ["read from memory", (values) => values.cache_hits, (value) => `${Math.round(value * 100)} %`],
  ["recorded", (values) => values.events, count("event")],
  ["stored", (values) => values.tasks, count("task")],
  ["database", (values) => values.database_bytes, byteSize],
];

export class Performance {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.requests = new RequestRunner(desk);
    this.figures = h("ul", { class: "wb-numbers" }, ...FIGURES.map(([name]) => figure(name)));
    this.figures.hidden = true;
    this.element = section("Performance", "", this.figures, this.requests.errorBox);
    const onError = (error) => this.requests.showError(error);
    this.polling = new VisiblePolling(this.element, POLL_MS, () => this.load(), onError, signal);
  }

  async load() {
    const values = await this.requests.send("get_performance", {});
    this.requests.clearError();
    this.figures.hidden = false;
    FIGURES.forEach(([, valueOf, text], at) => {
      const value = valueOf(values);
      setText(this.figures.children[at].firstChild, value === null ? "–" : text(value));
    });
  }
}

function figure(name) {
  return h("li", {}, h("span", { class: "wb-number-value" }), h("span", { class: "wb-number-name" }, name));
}
