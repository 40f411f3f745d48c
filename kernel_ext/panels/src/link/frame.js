/** What every view of the project has: a banner for what is wrong with the connection, announcements, and drawing. */

import { button } from "../lib/controls.js";
import { h, prose, setText } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { VisiblePolling } from "./polling.js";
import { UndoToast } from "./undo.js";

/** How often times such as "3 min ago" are redrawn. */
const TICK_MS = 5_000;
/** How often the kernel is told that the view is looked at. */
const LOOK_MS = 60_000;
/** How long an announcement stays. */
const ANNOUNCEMENT_MS = 10_000;

/** A view; a subclass makes its `element`, and draws what is in it (`drawViews`, `tick`). */
export class Frame {
  /** @param {import("./store.js").Store} store @param {import("./channel.js").Channel} channel */
  constructor(store, channel) {
    this.store = store;
    this.channel = channel;
    this.status = h("span", { class: "wb-status wb-cut", role: "status", "aria-live": "polite" });
    this.banner = this.makeBanner();
    this.ended = new AbortController();
    this.undo = new UndoToast({ channel, announce: (text) => this.announce(text) }, this.ended.signal);
  }

  makeBanner() {
    this.bannerText = h("span", { class: "wb-grow" });
    this.bannerCode = h("code", {});
    this.reconnect = button("Reconnect", "wb-button", () => this.channel.resync());
    const parts = [icon("warning"), this.bannerText, this.bannerCode, this.reconnect];
    return h("div", { class: "wb-banner", hidden: true }, ...parts);
  }

  /** The element of the view. @param {string} name for screen readers @param {...HTMLElement} content */
  region(name, ...content) {
    const attributes = { class: "wb-desk", role: "region", "aria-label": name, "data-lm-suppress-shortcuts": "true" };
    const region = h("div", attributes, ...content, this.undo.element);
    this.undo.listenTo(region);
    return region;
  }

  /** Show a short message for a while; screen readers read it. */
  announce(text) {
    clearTimeout(this.fading);
    setText(this.status, text);
    this.fading = setTimeout(() => setText(this.status, ""), ANNOUNCEMENT_MS);
  }

  /** Draw after every change, at most once a frame, until the view ends. @param {AbortSignal} signal */
  start(signal) {
    let frame = 0;
    const draw = () => {
      frame = 0;
      this.draw();
    };
    this.store.subscribe(() => (frame ||= requestAnimationFrame(draw)), signal);
    new VisiblePolling(
      this.element,
      LOOK_MS,
      async () => this.channel.look(),
      () => {},
      signal,
    );
    const ticking = setInterval(() => this.tick(Date.now()), TICK_MS);
    signal.addEventListener("abort", () => {
      this.ended.abort();
      cancelAnimationFrame(frame);
      clearInterval(ticking);
      clearTimeout(this.fading);
    });
    this.draw();
  }

  draw() {
    const { state, error } = this.channel.link;
    this.element.dataset.link = state;
    this.drawBanner(state, error);
    this.drawViews(state === "live" || state === "retrying", Date.now());
  }

  drawBanner(state, error) {
    this.banner.hidden = !error;
    if (error && error !== this.drawnError) {
      this.bannerText.replaceChildren(...prose(error.message));
      setText(this.bannerCode, error.code);
    }
    this.drawnError = error;
    this.reconnect.hidden = state !== "stopped" || error?.code === "PANEL_CLOSED";
  }
}
