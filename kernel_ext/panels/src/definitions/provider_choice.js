/** The providers that a definition does not use yet, to choose one. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";

export class ProviderChoice {
  /** @param {any} definition @param {import("./pane.js").Navigation} on */
  constructor(definition, on) {
    this.on = on;
    this.heading = h("h4", { class: "wb-strong", tabindex: -1 }, "New provider");
    this.list = h("ul", { class: "wb-entries" });
    const cancel = button("Cancel", "wb-button", () => on.open("providers"));
    this.element = h("div", { class: "wb-stack" }, this.heading, this.list, cancel);
    this.update(definition);
  }

  get isChanged() {
    return false;
  }

  focus() {
    this.heading.focus();
  }

  update({ providers, providerInfo }) {
    const used = new Set(providers.map(({ name }) => name));
    const free = Object.entries(providerInfo).filter(([id]) => !used.has(id));
    this.list.replaceChildren(...free.map(([id, info]) => this.entry(id, info)));
  }

  entry(id, { name, description }) {
    const open = button(name, "wb-opener wb-entry-name", () => this.on.open(`providers/${id}`));
    return h("li", { class: "wb-entry" }, open, h("span", { class: "wb-muted wb-grow wb-cut" }, description));
  }
}
