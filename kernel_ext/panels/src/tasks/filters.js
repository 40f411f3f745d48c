/** What narrows the tasks that are shown: chips by state, choices by place and person, and words. */

import { Chips } from "../lib/chips.js";
import { select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { FACETS, STATES } from "./outline.js";
import { sessionName } from "../projects/places.js";

const EVERY = "=";
const NONE = "";
const WORDS = {
  persona_id: ["All personas", "No persona"],
  plan: ["All plans", "In no plan"],
  worktree: ["All worktrees", "In no worktree"],
  assigned_agent_id: ["All agents", "With nobody"],
  session_id: ["All sessions", "In no session"],
};

export class Filters {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {(change: Partial<import("./outline.js").Wanted>) => void} onChange
   * @param {() => void} onDown what the arrow leads to from the words
   */
  constructor(store, onChange, onDown) {
    this.store = store;
    this.onChange = onChange;
    this.onDown = onDown;
    this.chips = new Chips("Show tasks by state", (state) => onChange({ state }));
    this.search = h("input", {
      class: "wb-input wb-search",
      type: "search",
      placeholder: "Filter tasks",
      "aria-label": "Filter tasks by title, number, persona, worktree, agent or plan",
      on: { input: () => onChange({ text: this.search.value.trim() }), keydown: (event) => this.onSearchKey(event) },
    });
    this.choices = Object.fromEntries(FACETS.map((facet) => [facet, this.choice(facet)]));
    this.choiceBox = h(
      "div",
      { class: "wb-line", role: "group", "aria-label": "Show tasks of" },
      ...Object.values(this.choices),
    );
  }

  choice(facet) {
    const change = () => this.onChange({ [facet]: element.value === EVERY ? null : element.value });
    const element = select([], EVERY, { class: "wb-input wb-narrow", "aria-label": WORDS[facet][0], on: { change } });
    return element;
  }

  /** @param {import("./outline.js").Outline} outline @param {import("./outline.js").Wanted} wanted */
  update(outline, wanted) {
    const all = { key: null, label: "All", count: outline.tasks.size };
    const states = Object.entries(STATES).map(([key, label]) => ({
      key,
      label,
      count: outline.counts[key],
      mark: () => icon(key),
    }));
    this.chips.update([all, ...states], wanted.state);
    for (const facet of FACETS) this.drawChoice(facet, outline.facets[facet], wanted[facet]);
    const none = outline.tasks.size === 0;
    this.search.hidden = this.chips.element.hidden = none;
    this.choiceBox.hidden = none || Object.values(this.choices).every((choice) => choice.hidden);
  }

  /** A choice between fewer than two is none. */
  drawChoice(facet, values, wanted) {
    const element = this.choices[facet];
    const [every, none] = WORDS[facet];
    const names = [...values]
      .filter(Boolean)
      .map((value) => [value, this.nameOf(facet, value)])
      .sort((a, b) => a[1].localeCompare(b[1], undefined, { numeric: true }));
    const blank = values.has(NONE) ? [[NONE, none]] : [];
    element.hidden = values.size < 2 && wanted === null;
    setOptions(element, [["", [[EVERY, every], ...blank, ...names]]], wanted ?? EVERY);
  }

  nameOf(facet, value) {
    return facet === "session_id" ? (sessionName(this.store.tables, value) ?? value) : value;
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
