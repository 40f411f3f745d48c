/** The approvals that a cell waits for, in its output: their cards, and nothing else of the desk. */

import { Frame } from "../link/frame.js";
import { h } from "../lib/dom.js";
import { Inbox } from "./inbox.js";

const WORDS = {
  heading: "This cell waits for your decision",
  empty: ["Everything is decided. The cell goes on."],
};

export class Question extends Frame {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {number[]} ids of the approvals
   * @param {AbortSignal} signal ends the view
   */
  constructor(store, channel, ids, signal) {
    super(store, channel);
    this.inbox = new Inbox(store, channel, (text) => this.announce(text), signal, { ids: new Set(ids), ...WORDS });
    const announced = h("div", { class: "wb-sr" }, this.status);
    this.element = this.region("Decision", this.banner, this.inbox.element, announced);
    this.start(signal);
  }

  drawViews(enabled, now) {
    this.inbox.update(enabled, now);
  }

  tick(now) {
    this.inbox.tick(now);
  }
}
