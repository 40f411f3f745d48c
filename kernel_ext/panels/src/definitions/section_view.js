/** The list of one section of a definition, with what each thing is about; opening one, and adding one. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { ITEMS } from "./items.js";
import { SECTIONS } from "./state.js";

const ABOUT = {
  rules: "Rules say how the agent works. Those that are always included are in its system prompt, by priority.",
  references: "References are what the agent may need to know. It reads those included by “agent” with a tool.",
  tools: "Tools that this definition offers to others. The prompt of a tool is filled in and sent to the model.",
  providers: "Where its model comes from. Keys are references to secrets, such as env://ANTHROPIC_API_KEY.",
  servers: "MCP servers whose tools the agent can use. A program is started only after you have trusted its command.",
};

export class SectionView {
  /** @param {string} section @param {any} definition @param {import("./pane.js").Navigation} on */
  constructor(section, definition, on) {
    this.section = section;
    this.on = on;
    const { label, one } = SECTIONS[section];
    this.heading = h("h4", { class: "wb-strong", tabindex: -1 }, label);
    this.list = h("ul", { class: "wb-entries" });
    this.empty = h("p", { class: "wb-muted" }, `No ${label.replace(/^[RETP]/, (letter) => letter.toLowerCase())} yet.`);
    this.add = button(`New ${one}…`, "wb-button", () => on.open(`${section}/`));
    const head = h("div", { class: "wb-line" }, this.heading, h("span", { class: "wb-grow" }), this.add);
    const about = h("p", { class: "wb-muted" }, ABOUT[section]);
    this.element = h("div", { class: "wb-stack" }, head, about, this.empty, this.list);
    this.update(definition);
  }

  get isChanged() {
    return false;
  }

  focus() {
    this.add.focus();
  }

  update(definition) {
    const items = definition[this.section];
    const key = JSON.stringify(items);
    if (key === this.drawn) return;
    this.drawn = key;
    this.list.replaceChildren(...items.map((item) => this.entry(item)));
    this.empty.hidden = items.length > 0;
  }

  entry(item) {
    const { summary, note } = ITEMS[this.section];
    const text = summary(item);
    return h(
      "li",
      { class: "wb-entry" },
      button(item.name, "wb-opener wb-entry-name", () => this.on.open(`${this.section}/${item.name}`)),
      h("span", { class: "wb-muted wb-grow wb-cut", title: text }, text),
      note ? h("span", { class: "wb-muted" }, note(item)) : null,
    );
  }
}

/** The providers that a definition does not use yet, to choose one. */
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
