/** The filters of the list of runs. */

import { checkbox, input, searchField, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RUN_STATES } from "./state.js";

const EVERY = "";
const STATES = [[EVERY, "All states"], ...Object.entries(RUN_STATES)];
const TYPING_MS = 250;

export class RunFilters {
  /** @param {() => void} onChange */
  constructor(onChange) {
    const change = () => onChange();
    const typed = () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(onChange, TYPING_MS);
    };
    const choice = (options, name) =>
      select(options, EVERY, { class: "wb-input wb-narrow", "aria-label": name, on: { change } });
    const text = (name, placeholder) =>
      input("", { class: "wb-input wb-narrow", "aria-label": name, placeholder, on: { input: typed } });
    this.search = searchField("Search runs", "Search names, notebooks and notes", { input: typed });
    this.state = choice(STATES, "Filter runs by state");
    this.sweep = choice([[EVERY, "All sweeps"]], "Filter runs by sweep");
    this.tag = text("Filter runs by tag", "Tag");
    this.where = text("Conditions on metrics, with commas", "loss<0.1, acc>=0.9");
    this.archived = checkbox("Archived", change);
    const parts = [this.state, this.sweep, this.tag, this.where, this.archived.element];
    this.element = h("div", { class: "wb-line wb-run-filters" }, ...parts);
  }

  /** @param {any[]} sweeps */
  setSweeps(sweeps) {
    const options = [[EVERY, "All sweeps"], ...sweeps.map(({ name }) => [name, name])];
    if (this.sweep.value !== EVERY && !options.some(([name]) => name === this.sweep.value)) {
      options.push([this.sweep.value, this.sweep.value]);
    }
    setOptions(this.sweep, [["", options]]);
  }

  /** Set the filters as `chosen` gave them; what is missing is not chosen. @param {any} wanted */
  choose({ search = "", state = EVERY, sweep = EVERY, tag = "", where = [], archived = false }) {
    this.search.value = search;
    this.state.value = Object.hasOwn(RUN_STATES, state) ? state : EVERY;
    const options = sweep === EVERY ? [] : [[sweep, sweep]];
    setOptions(this.sweep, [["", [[EVERY, "All sweeps"], ...options]]], sweep);
    this.tag.value = tag;
    this.where.value = where.join(", ");
    this.archived.box.checked = archived;
  }

  /** Arguments of `list_runs`. */
  get chosen() {
    const where = this.where.value.split(",").map((text) => text.trim());
    const values = {
      search: this.search.value.trim(),
      state: this.state.value,
      sweep: this.sweep.value,
      tag: this.tag.value.trim(),
    };
    const chosen = Object.entries(values).filter(([, value]) => value !== EVERY);
    return { ...Object.fromEntries(chosen), where: where.filter(Boolean), archived: this.archived.box.checked };
  }

  get isActive() {
    const { where, archived, ...others } = this.chosen;
    return where.length > 0 || archived || Object.keys(others).length > 0;
  }
}
