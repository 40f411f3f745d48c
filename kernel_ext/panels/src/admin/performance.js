/** Figures of the server, read again and again while they are visible. */

import { h, setText } from "../lib/dom.js";
import { shortNumber } from "../lib/format.js";
import { VisiblePolling } from "../lib/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { section } from "./section.js";

const POLL_MS = 2_000;

export class Performance {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.requests = new RequestRunner(desk);
    this.figures = h("ul", { class: "wb-numbers" });
    this.element = section("Performance", "", this.figures, this.requests.errorBox);
    const onError = (error) => this.requests.showError(error);
    this.polling = new VisiblePolling(this.element, POLL_MS, () => this.load(), onError, signal);
  }

  async load() {
    const entries = flat(await this.requests.send("get_performance", {}));
    this.requests.clearError();
    if (this.figures.childElementCount !== entries.length) {
      this.figures.replaceChildren(...entries.map(([name]) => figure(name)));
    }
    entries.forEach(([, value], at) => {
      const text = typeof value === "number" ? shortNumber(value) : String(value ?? "–");
      setText(this.figures.children[at].firstChild, text);
    });
  }
}

function figure(name) {
  return h("li", {}, h("span", { class: "wb-number-value" }), h("span", { class: "wb-number-name" }, name));
}

/** Nested figures as a flat list of names and values. */
function flat(values, prefix = "") {
  return Object.entries(values).flatMap(([name, value]) => {
    const label = `${prefix}${name.replaceAll("_", " ")}`;
    return value !== null && typeof value === "object" ? flat(value, `${label} `) : [[label, value]];
  });
}
