/** The Tools tab: the catalogue of all tools, their calls as they happen, and the MCP servers. */

import { freshId, h, setText } from "../lib/dom.js";
import { Segments } from "../lib/controls.js";
import { Calls } from "./calls.js";
import { Catalogue } from "./catalogue.js";
import { Servers } from "./servers.js";

const MODES = { catalogue: "Catalogue", calls: "Calls", servers: "Servers" };

export class Tools {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    const desk = { store, channel, announce };
    this.mode = "catalogue";
    this.catalogue = new Catalogue(desk);
    this.calls = new Calls(desk, signal);
    this.servers = new Servers(desk);
    const id = freshId("tools");
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.modes = new Segments(MODES, "Show", (mode) => this.setMode(mode));
    const heading = h("h3", { class: "wb-heading", id }, "Tools");
    const controls = [this.modes.element, this.catalogue.search];
    const toolbar = h("div", { class: "wb-toolbar" }, heading, this.summary, ...controls);
    const parts = Object.keys(MODES).map((mode) => this[mode].element);
    this.element = h("section", { class: "wb-section wb-stack", "aria-labelledby": id }, toolbar, ...parts);
  }

  /** How many tools there are besides the operations of Workbench. */
  count() {
    return this.catalogue.count();
  }

  setMode(mode) {
    this.mode = mode;
    this.update();
  }

  /** Bring it up to date. @param {boolean} [enabled] whether requests can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const failing = this.servers.failing();
    this.modes.setLabel("servers", failing ? `Servers (${failing} down)` : "Servers");
    this.modes.show(this.mode);
    for (const mode of Object.keys(MODES)) this[mode].element.hidden = mode !== this.mode;
    this.catalogue.search.hidden = this.mode !== "catalogue";
    setText(this.summary, this.catalogue.summary());
    this[this.mode].update(enabled, now);
  }
}
