/** What filters the tasks: chips by state, choices by what they belong to, and text. */

import { Chips } from "../lib/chips.js";
import { searchField, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { sessionPath } from "../projects/lookup.js";
import { FACETS, STATES } from "./outline.js";

const EVERY = "=";
const NONE = "";
/** The options of each facet that stand for all of them and for none. */
const LABELS = {
  persona_id: ["All personas", "No persona"],
  plan: ["All plans", "In no plan"],
  worktree: ["All worktrees", "In no worktree"],
  assigned_agent_id: ["All agents", "Not assigned"],
  session_id: ["All sessions", "In no session"],
};

export class Filters {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {(change: Partial<import("./outline.js").Filter>) => void} onChange
   * @param {() => void} onDown the down arrow was pressed in the text field
   */
  constructor(store, onChange, onDown) {
    this.store = store;
    this.onChange = onChange;
    this.onDown = onDown;
    this.chips = new Chips("Filter tasks by state", (state) => onChange({ state }));
    this.search = searchField("Filter tasks", "Filter tasks by title, number, persona, worktree, agent or plan", {
      input: () => onChange({ text: this.search.value.trim() }),
      keydown: (event) => this.onSearchKey(event),
    });
    this.choices = Object.fromEntries(FACETS.map((facet) => [facet, this.choice(facet)]));
    const attributes = { class: "wb-line", role: "group", "aria-label": "Filter tasks by what they belong to" };
    this.choiceBox = h("div", attributes, ...Object.values(this.choices));
  }

  choice(facet) {
    const change = () => this.onChange({ [facet]: element.value === EVERY ? null : element.value });
    const attributes = { class: "wb-input wb-narrow", "aria-label": LABELS[facet][0], on: { change } };
    const element = select([], EVERY, attributes);
    return element;
  }

  /** @param {import("./outline.js").Outline} outline @param {import("./outline.js").Filter} filter */
  update(outline, filter) {
    const chips = Object.entries(STATES).map(([key, label]) => {
      return { key, label, count: outline.counts[key], mark: () => icon(key) };
    });
    this.chips.update([{ key: null, label: "All", count: outline.tasks.size }, ...chips], filter.state);
    for (const facet of FACETS) this.drawChoice(facet, outline.facets[facet], filter[facet]);
    const none = outline.tasks.size === 0;
    this.search.hidden = this.chips.element.hidden = none;
    this.choiceBox.hidden = none || Object.values(this.choices).every((choice) => choice.hidden);
  }

  /** A facet with a single value is no choice: it is hidden. */
  drawChoice(facet, values, chosen) {
    const element = this.choices[facet];
    const [every, none] = LABELS[facet];
    const options = [...values]
      .filter(Boolean)
      .map((value) => [value, this.nameOf(facet, value)])
      .sort((a, b) => a[1].localeCompare(b[1], undefined, { numeric: true }));
    if (values.has(NONE)) options.unshift([NONE, none]);
    element.hidden = values.size < 2 && chosen === null;
    setOptions(element, [["", [[EVERY, every], ...options]]], chosen ?? EVERY);
  }

  nameOf(facet, value) {
    return facet === "session_id" ? (sessionPath(this.store.tables, value) ?? value) : value;
  }

  /** Show everything again. */
  clear() {
    this.search.value = "";
    this.onChange({ text: "", state: null, ...Object.fromEntries(FACETS.map((facet) => [facet, null])) });
    this.search.focus();
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.onChange({ text: "" });
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.onDown();
    }
  }
}
