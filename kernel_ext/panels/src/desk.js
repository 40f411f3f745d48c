/** The desk: who waits for a decision, and how the work goes. One store for each model, any number of views. */

import { Channel } from "./channel.js";
import { h, prose, setText } from "./dom.js";
import { icon } from "./icons.js";
import { Inbox } from "./inbox.js";
import { Store } from "./store.js";
import { Work } from "./work.js";

const TICK_MS = 5_000;
const LINKS = {
  connecting: "Connecting…",
  live: "Live",
  trouble: "Trying again…",
  stopped: "Stopped",
  gone: "Disconnected",
};

/** What one view of the desk shows. */
class View {
  constructor(store, channel, signal) {
    this.store = store;
    this.channel = channel;
    this.status = h("span", { class: "wb-status", role: "status", "aria-live": "polite" });
    this.link = h("span", { class: "wb-link-state" }, h("span", { class: "wb-dot", "aria-hidden": "true" }), h("span", {}));
    this.bannerText = h("span", { class: "wb-grow" });
    this.bannerCode = h("code", {});
    this.reconnect = h("button", { class: "wb-button", type: "button", on: { click: () => channel.resync() } }, "Reconnect");
    this.banner = h("div", { class: "wb-banner", hidden: true }, icon("warning"), this.bannerText, this.bannerCode, this.reconnect);
    const announce = (text) => setText(this.status, text);
    this.inbox = new Inbox(store, channel, announce, signal);
    this.work = new Work(store);
    this.work.onFiltered = announce;
    this.element = h(
      "div",
      { class: "wb-desk", role: "region", "aria-label": "Workbench desk", "data-lm-suppress-shortcuts": "true" },
      h("div", { class: "wb-top" }, h("span", { class: "wb-brand" }, "Workbench"), this.status, this.link),
      this.banner,
      this.inbox.element,
      this.work.element,
    );
    this.follow(signal);
  }

  /** Draw after every change, at most once a frame, until the view goes. */
  follow(signal) {
    let due = 0;
    const draw = () => {
      due = 0;
      this.draw();
    };
    this.store.listen(() => (due ||= requestAnimationFrame(draw)), signal);
    const ticking = setInterval(() => this.inbox.tick(Date.now()), TICK_MS);
    signal.addEventListener("abort", () => {
      cancelAnimationFrame(due);
      clearInterval(ticking);
    });
    this.draw();
  }

  draw() {
    const { state, error } = this.channel.link;
    this.element.dataset.link = state;
    setText(this.link.lastChild, LINKS[state]);
    this.banner.hidden = !error;
    if (error && error !== this.shown) {
      this.bannerText.replaceChildren(...prose(error.message));
      setText(this.bannerCode, error.code);
    }
    this.shown = error;
    this.reconnect.hidden = state !== "stopped" || error?.code === "PANEL_CLOSED";
    this.inbox.update(state === "live" || state === "trouble", Date.now());
    this.work.update();
  }
}

export default () => {
  const store = new Store();
  /** @type {Channel} */
  let channel;
  return {
    initialize({ model, signal }) {
      channel = new Channel(model, store, signal);
    },
    render({ el, signal }) {
      el.append(new View(store, channel, signal).element);
    },
  };
};
