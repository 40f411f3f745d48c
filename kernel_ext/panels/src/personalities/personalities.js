/** The Personalities tab: the agents that this project and others have published, and the network they come over. */

import { freshId, h, setText } from "../lib/dom.js";
import { Segments } from "../lib/controls.js";
import { Gallery } from "./gallery.js";
import { Network } from "../network/network.js";
import { PersonalityPage } from "./page.js";

const MODES = { gallery: "Personalities", network: "Network" };

export class Personalities {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.store = store;
    const desk = { store, channel, announce };
    this.mode = "gallery";
    /** The name of the personality whose page is open. @type {string|null} */
    this.opened = null;
    const open = (name) => this.open(name);
    this.gallery = new Gallery(desk, { open, network: () => this.setMode("network") });
    this.network = new Network(desk, { open }, signal);
    this.page = new PersonalityPage(desk, { close: () => this.close() });
    const id = freshId("personalities");
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.modes = new Segments(MODES, "Show", (mode) => this.setMode(mode));
    const heading = h("h3", { class: "wb-heading", id }, "Personalities");
    const controls = [this.modes.element, this.gallery.search, this.gallery.publishButton];
    this.toolbar = h(
      "div",
      { class: "wb-toolbar" },
      heading,
      this.summary,
      h("div", { class: "wb-line" }, ...controls),
    );
    const parts = [this.toolbar, this.gallery.element, this.network.element, this.page.element];
    this.element = h("section", { class: "wb-section wb-stack", "aria-labelledby": id }, ...parts);
  }

  /** How many there are. */
  count() {
    return this.gallery.rows.length;
  }

  setMode(mode) {
    this.mode = mode;
    this.update();
  }

  /** Bring it up to date. @param {boolean} [enabled] whether requests can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const isOpen = this.opened !== null;
    this.modes.show(this.mode);
    this.toolbar.hidden = isOpen;
    for (const mode of Object.keys(MODES)) this[mode].element.hidden = isOpen || mode !== this.mode;
    const inGallery = this.mode === "gallery";
    this.gallery.search.hidden = !inGallery || !this.gallery.isSearchable;
    this.gallery.publishButton.hidden = !inGallery;
    setText(this.summary, this[this.mode].summary());
    if (isOpen) this.page.update(this.store.tables.personalities.get(this.opened) ?? null, enabled, now);
    else this[this.mode].update(enabled, now);
  }

  /** Open the page of a personality. @param {string} name */
  open(name) {
    this.opened = name;
    this.page.open(name);
    this.update();
    this.page.focus();
    this.element.closest(".wb-desk")?.scrollIntoView({ block: "nearest" });
  }

  close() {
    const name = this.opened;
    this.opened = null;
    this.page.close();
    this.update();
    if (this.mode === "gallery") this.gallery.focus(name);
    else this.network.focus();
  }
}
