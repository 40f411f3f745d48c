/** One personality on a card: what the agent says about itself, what it can do, where it comes from, and how fresh it is. */

import { button } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { isOwn } from "../network/peers.js";
import { FRESHNESS, freshnessText } from "./state.js";

export class PersonalityCard {
  /** @param {(name: string) => void} onOpen */
  constructor(name, onOpen) {
    const id = freshId("personality");
    this.opener = button(name, "wb-opener", () => onOpen(name));
    this.opener.id = id;
    this.version = h("span", { class: "wb-muted wb-cut" });
    this.about = h("p", { class: "wb-personality-about" });
    this.badge = h("span", { class: "wb-source wb-push" });
    this.traits = h("ul", { class: "wb-traits" });
    this.tools = h("ul", { class: "wb-trait-tools" });
    this.fresh = h("div", { class: "wb-label wb-cut" });
    const head = h(
      "div",
      { class: "wb-personality-head" },
      icon("registration"),
      this.opener,
      this.version,
      this.badge,
    );
    const parts = [head, this.about, this.traits, this.tools, this.fresh];
    this.element = h("li", { class: "wb-personality wb-frame wb-stack", "aria-labelledby": id }, ...parts);
    this.elements = [this.element];
  }

  /** @param {any} row @param {number} now in ms */
  show(row, now) {
    const isOther = row !== this.row;
    this.row = row;
    setText(this.fresh, freshnessText(row, now));
    if (!isOther) return;
    const { version, traits, tools, highlights, provenance } = row;
    setText(this.version, version);
    showOwner(this.badge, provenance);
    setAttribute(this.fresh, "title", FRESHNESS[provenance.freshness]);
    const { text = "" } = highlights.find(({ name }) => name === "description") ?? {};
    setText(this.about, text);
    setAttribute(this.about, "title", text);
    this.about.hidden = !text;
    const [offered, about] = [true, false].map((tool) => highlights.filter(({ is_callable: is }) => is === tool));
    const chips = about.filter(({ name }) => name !== "description").map(traitChip);
    fill(this.traits, chips, traits - tools.length - about.length, "trait");
    fill(this.tools, offered.map(toolLine), tools.length - offered.length, "tool");
  }
}

/** Whose it is. @param {HTMLElement} badge @param {any} provenance */
export function showOwner(badge, provenance) {
  const { owner, owner_name: name } = provenance;
  const own = isOwn({ provenance });
  setText(badge, own ? "Yours" : name);
  setAttribute(badge, "data-own", own);
  setAttribute(badge, "title", own ? "An agent of this project" : `Owned by ${owner}`);
}

function fill(list, items, left, noun) {
  const more = left > 0 ? [h("li", { class: "wb-label" }, `and ${plural(left, `more ${noun}`)}`)] : [];
  list.replaceChildren(...items, ...more);
  list.hidden = !list.childNodes.length;
}

function traitChip({ name, text }) {
  return h(
    "li",
    { class: "wb-trait", title: `${name}: ${text}` },
    h("span", { class: "wb-muted" }, name),
    h("span", { class: "wb-cut" }, text),
  );
}

function toolLine({ name, text }) {
  const about = text ? h("span", { class: "wb-muted wb-cut" }, text) : null;
  return h("li", { title: text || null }, icon("tool"), h("code", { class: "wb-cut" }, name), about);
}
