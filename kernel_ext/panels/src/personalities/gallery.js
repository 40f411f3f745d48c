/** All personalities as cards, own ones first: to search, to open, and to publish one more. */

import { Chips } from "../lib/chips.js";
import { errorContent } from "../lib/blocks.js";
import { button, moveBetweenRows, searchField } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { PersonalityCard } from "./card.js";
import { PublishForm } from "./publish_form.js";
import { isOwn } from "../network/peers.js";
import { byOwnership, matches } from "./state.js";

const STEP = 60;
/** With so many personalities or fewer there is no text filter. */
const FEW = 6;
/** Filters: their labels, and which personalities match. */
const FILTERS = {
  own: ["Yours", isOwn],
  others: ["Of other nodes", (row) => !isOwn(row)],
  tools: ["With tools", ({ tools }) => tools.length > 0],
};

export class Gallery {
  /** @param {any} desk @param {{open: (name: string) => void, network: () => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    this.filters = { key: null, text: "" };
    this.limit = STEP;
    this.formBox = h("div", {});
    this.errorBox = h("div", { class: "wb-message wb-error", hidden: true });
    this.empty = h("div", { class: "wb-empty wb-stack", hidden: true });
    this.search = searchField("Filter personalities", "Filter personalities by name, owner, trait or tool", {
      input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
    });
    this.publishButton = button("Publish…", "wb-button", () => this.openForm());
    this.chips = new Chips("Filter personalities", (key) => this.filter({ key }));
    const clear = button("Show all", "wb-link", () => this.clear());
    this.noMatch = h("p", { class: "wb-empty", hidden: true }, "No personality matches the filters. ", clear);
    const keys = { keydown: (event) => moveBetweenRows(event, this.list) };
    this.list = h("ul", { class: "wb-personalities", "aria-label": "Personalities", on: keys });
    this.cards = new KeyedList(this.list, (name) => new PersonalityCard(name, on.open), {
      onRemove: (_, hadFocus) => hadFocus && (this.list.querySelector(".wb-opener") ?? this.publishButton).focus(),
    });
    this.more = button("Show more", "wb-button", () => {
      this.limit += STEP;
      this.update();
    });
    const above = [this.formBox, this.errorBox, this.empty, this.chips.element, this.noMatch];
    this.element = h("div", { class: "wb-stack" }, ...above, this.list, this.more);
  }

  /** The rows of personalities, sorted once for each version; the row without an id holds an error. @returns {any[]} */
  get rows() {
    const { version, tables } = this.desk.store;
    if (this.sorted?.version !== version) {
      const rows = [...tables.personalities.values()].filter(({ id }) => id !== "").sort(byOwnership);
      this.sorted = { version, rows };
    }
    return this.sorted.rows;
  }

  /** Whether there are enough to search. */
  get isSearchable() {
    return this.rows.length > FEW || Boolean(this.filters.text);
  }

  summary() {
    const { rows } = this;
    const own = rows.filter(isOwn).length;
    if (!rows.length) return "";
    return own
      ? `${plural(rows.length, "personality", "personalities")}, ${own} of them yours`
      : plural(rows.length, "personality", "personalities");
  }

  /** @param {boolean} [enabled] whether requests can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const { rows } = this;
    const { personalities } = this.desk.store.tables;
    const count = (test) => rows.filter(test).length;
    const chips = Object.entries(FILTERS).map(([key, [label, test]]) => ({ key, label, count: count(test) }));
    this.chips.update([{ key: null, label: "All", count: rows.length }, ...chips], this.filters.key);
    this.chips.element.hidden = rows.length < 2;
    const matching = rows.filter((row) => this.matches(row));
    this.cards.show(
      matching.slice(0, this.limit).map(({ id }) => id),
      (card, id) => card.show(personalities.get(id), now),
    );
    this.more.hidden = matching.length <= this.limit;
    this.noMatch.hidden = matching.length > 0 || !rows.length;
    this.list.hidden = !matching.length;
    this.form?.update(enabled);
    this.drawError(personalities.get("")?.error);
    this.drawEmpty(rows.length);
  }

  drawError(error) {
    this.errorBox.hidden = !error;
    if (error && error.message !== this.shownError) this.errorBox.replaceChildren(...errorContent(error));
    this.shownError = error?.message;
  }

  /** What a personality is, and how the first ones come here. */
  drawEmpty(total) {
    const { store } = this.desk;
    this.empty.hidden = total > 0 || !store.loaded.has("personalities") || !this.errorBox.hidden;
    const joined = Boolean(store.tables.network.get("network")?.joined);
    if (this.empty.hidden || this.empty.dataset.joined === String(joined)) return;
    this.empty.dataset.joined = String(joined);
    const publish = button("Publish one of your agents…", "wb-link", () => this.openForm());
    const join = button("join a network", "wb-link", () => this.on.network());
    const about = "A personality is what an agent publishes about itself: its traits, and tools that others can call. ";
    const others = joined
      ? "Those of other nodes appear here as they are received. "
      : "To see those of other projects, ";
    this.empty.replaceChildren(h("p", {}, about, others, ...(joined ? [] : [join, ". "]), publish));
  }

  matches(row) {
    const { key, text } = this.filters;
    return (!key || FILTERS[key][1](row)) && matches(row, text);
  }

  filter(change) {
    Object.assign(this.filters, change);
    this.limit = STEP;
    this.update();
    this.desk.announce(`${plural(this.cards.items.size, "personality", "personalities")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ key: null, text: "" });
    this.search.focus();
  }

  /** Give the card of a personality the focus. @param {string} name */
  focus(name) {
    (this.cards.items.get(name)?.opener ?? this.publishButton).focus();
  }

  openForm() {
    if (this.form) return this.form.focus();
    this.form = new PublishForm(this.desk, (published) => this.closeForm(published));
    this.formBox.replaceChildren(this.form.element);
    this.form.update(this.enabled);
    return this.form.focus();
  }

  closeForm(published) {
    this.form = null;
    this.formBox.replaceChildren();
    this.publishButton.focus();
    if (!published) return;
    this.desk.announce(published.is_published ? `${published.name} is published.` : `${published.name} is saved.`);
    this.on.open(published.name);
  }
}
