/** All definitions, and below the one that is opened its places. */

import { message } from "../lib/blocks.js";
import { button, moveBetweenRows } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { KeyedList } from "../lib/keyed_list.js";
import { placeOf } from "./problems.js";
import { placesOf } from "./state.js";

/** What is opened. @typedef {{path: string|null, place: string, definition: any, drafts: (path: string) => Set<string>}} Opened */

export class Tree {
  /** @param {{open: (path: string, place: string) => void, close: () => void}} on */
  constructor(on) {
    this.on = on;
    this.list = h("ul", { class: "wb-definitions", "aria-label": "Definitions" });
    this.problems = h("div", { class: "wb-stack" });
    this.element = h("div", { class: "wb-split-list wb-stack" }, this.list, this.problems);
    this.element.addEventListener("keydown", (event) => moveBetweenRows(event, this.list));
    this.rows = new KeyedList(this.list, (path) => new TreeRow(path, on));
  }

  /** @param {any[]} rows @param {Opened} opened */
  show(rows, opened) {
    const byPath = new Map(rows.map((row) => [row.id, row]));
    this.rows.show([...byPath.keys()], (shown, path) => shown.show(byPath.get(path), opened));
    this.list.hidden = !rows.length;
  }

  /** @param {string[]} problems of directories that cannot be read */
  showProblems(problems) {
    const key = problems.join("\n");
    if (key === this.drawn) return;
    this.drawn = key;
    this.problems.replaceChildren(...problems.map((text) => message("warning", text)));
  }

  /** Focus the line of a definition. @param {string} path */
  focus(path) {
    this.rows.items.get(path)?.opener.focus();
  }
}

class TreeRow {
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.opener = h("button", { class: "wb-opener", type: "button", on: { click: () => this.toggle() } });
    this.draft = h("span", { class: "wb-muted", hidden: true }, "unsaved");
    this.mode = h("span", { class: "wb-muted wb-definition-mode" });
    this.description = h("span", { class: "wb-muted wb-grow wb-cut wb-definition-description" });
    this.twisty = h("span", { class: "wb-twisty", "aria-hidden": "true" }, icon("twisty"));
    this.line = h("div", { class: "wb-entry" }, this.twisty, this.opener, this.draft, this.mode, this.description);
    this.below = h("ul", { class: "wb-places", hidden: true });
    this.places = new KeyedList(this.below, (id) => new PlaceRow(() => on.open(path, id)));
    this.elements = [h("li", {}, this.line, this.below)];
    this.twisty.addEventListener("click", () => this.toggle());
  }

  toggle() {
    if (this.opener.getAttribute("aria-expanded") === "true") this.on.close();
    else this.on.open(this.path, "overview");
  }

  /** @param {any} row @param {Opened} opened */
  show(row, opened) {
    const isOpen = opened.path === this.path;
    const drafts = opened.drafts(this.path);
    setText(this.opener, row.name);
    setAttribute(this.opener, "title", this.path);
    setAttribute(this.opener, "aria-expanded", isOpen);
    this.twisty.classList.toggle("wb-turned", isOpen);
    setText(this.mode, row.mode);
    setText(this.description, row.description ?? "");
    this.draft.hidden = isOpen || !drafts.size;
    this.below.hidden = !isOpen || !opened.definition;
    if (!this.below.hidden) this.showPlaces(opened, drafts);
  }

  showPlaces({ definition, place }, drafts) {
    const places = new Map(placesOf(definition).map((one) => [one.id, one]));
    const wrong = wrongPlaces(definition);
    this.places.show([...places.keys()], (shown, id) =>
      shown.show(places.get(id), { isHere: isAt(place, id, places), isDraft: drafts.has(id), isWrong: wrong.has(id) }),
    );
  }
}

/** The places with something to mend, or that are not trusted. @returns {Set<string>} */
function wrongPlaces({ problems, trust }) {
  const paths = problems.filter(({ severity }) => severity !== "hint").map(({ place }) => place);
  const untrusted = trust.needs.filter(({ trusted }) => !trusted).map(({ name }) => name);
  return new Set([...paths, ...untrusted].map(placeOf));
}

/** Whether a place is the one that is opened; a new rule is in the list of rules. */
function isAt(place, id, places) {
  return place === id || (!places.has(place) && place.split("/")[0] === id);
}

class PlaceRow {
  constructor(onOpen) {
    this.label = h("span", { class: "wb-cut" });
    this.note = h("span", { class: "wb-muted" });
    this.mark = h(
      "span",
      { class: "wb-place-mark", hidden: true },
      icon("warning"),
      h("span", { class: "wb-sr" }, "problem"),
    );
    this.button = button("", "wb-place", onOpen);
    this.button.append(this.label, this.mark, this.note);
    this.elements = [h("li", {}, this.button)];
  }

  /** @param {import("./state.js").Place} place @param {{isHere: boolean, isDraft: boolean, isWrong: boolean}} how */
  show({ label, level, note }, { isHere, isDraft, isWrong }) {
    setText(this.label, label);
    setText(this.note, isDraft ? "unsaved" : note);
    this.mark.hidden = !isWrong;
    setAttribute(this.button, "aria-current", isHere ? "true" : null);
    this.button.classList.toggle("wb-active", isHere);
    this.button.dataset.level = level;
  }
}
