/** The definitions of agents: all of them as a tree, one opened beside it, and a form for a new one. */

import { button, searchField } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { NewDefinitionForm } from "./new_form.js";
import { DefinitionPane } from "./pane.js";
import { byName } from "./state.js";
import { Tree } from "./tree.js";

/** With so many definitions or fewer there is no text filter. */
const FEW = 6;

export class Definitions {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.store = store;
    this.desk = { store, channel, announce };
    this.text = "";
    /** The path of the definition that is opened, which may not have come yet. @type {string|null} */
    this.opened = null;
    this.place = "overview";
    const id = freshId("definitions");
    this.tree = new Tree({ open: (path, place) => this.open(path, place), close: () => this.close() });
    const on = {
      close: () => this.close(),
      copy: (path) => this.openForm(path),
      open: (place) => this.open(this.opened, place),
      deleted: (text) => this.onDeleted(text),
      draw: () => this.update(),
    };
    this.pane = new DefinitionPane(this.desk, on, signal);
    this.formBox = h("div", {});
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.empty.append(
      "No definitions yet. A definition is a directory that says what an agent is: its prompt, rules, references and tools. ",
      button("New definition…", "wb-link", () => this.openForm()),
    );
    this.split = h("div", { class: "wb-split" }, this.tree.element, this.pane.element);
    const parts = [this.toolbar(id), this.formBox, this.empty, this.split];
    this.element = h("section", { class: "wb-section wb-stack wb-definitions-view", "aria-labelledby": id }, ...parts);
    store.subscribe(() => this.pane.onEvents(), signal);
  }

  toolbar(id) {
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.search = searchField("Filter definitions", "Filter definitions by name, description or directory", {
      input: () => this.filter(this.search.value.trim().toLowerCase()),
    });
    this.newButton = button("New definition…", "wb-button", () => this.openForm());
    const heading = h("h3", { class: "wb-heading", id }, "Definitions");
    return h("div", { class: "wb-toolbar" }, heading, this.summary, this.search, this.newButton);
  }

  /** The rows of definitions that can be read, by name. */
  get rows() {
    return [...this.store.tables.definitions.values()].filter(({ name }) => name).sort(byName);
  }

  /** What is wrong with those that cannot be read, or with reading all of them. @returns {string[]} */
  problems() {
    const texts = [...this.store.tables.definitions.values()].map(({ problem, error }) => problem ?? error?.message);
    return texts.filter(Boolean);
  }

  /** Those that are listed: they match the filter, or are opened. */
  get matching() {
    return this.rows.filter((row) => row.id === this.opened || this.matches(row));
  }

  /** How many there are. */
  count() {
    return this.rows.length;
  }

  /** Bring everything up to date. @param {boolean} [enabled] whether decisions can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const { rows } = this;
    const { matching } = this;
    setText(this.summary, rows.length ? plural(rows.length, "definition") : "");
    this.search.hidden = rows.length <= FEW && !this.text;
    this.empty.hidden = rows.length > 0 || !this.store.loaded.has("definitions");
    this.drawOpened(
      rows.find(({ id }) => id === this.opened),
      now,
    );
    const drafts = (path) => this.pane.drafts(path);
    const opened = { path: this.opened, place: this.place, definition: this.pane.definition, drafts };
    this.tree.show(matching, opened, this.problems());
  }

  /** Its row may come after it was opened, and go while it is open: deleted, or not readable for now. */
  drawOpened(row, now) {
    this.split.classList.toggle("wb-open", Boolean(row));
    if (!row) {
      if (!this.pane.element.hidden) this.pane.hide();
      return;
    }
    if (this.pane.element.hidden) this.pane.show(row, this.place);
    this.pane.update(row, this.enabled, now);
  }

  matches({ name, id, description = "" }) {
    const text = [name, id, description].join("\n").toLowerCase();
    return this.text.split(/\s+/).every((word) => text.includes(word));
  }

  filter(text) {
    this.text = text;
    this.update();
    this.desk.announce(`${plural(this.matching.length, "definition")} shown.`);
  }

  /** Open a place of a definition, now or when its row has come. @param {string} path @param {string} place */
  open(path, place) {
    this.opened = path;
    this.place = place;
    const row = this.store.tables.definitions.get(path);
    if (row) this.pane.show(row, place);
    this.update();
  }

  close() {
    const path = this.opened;
    this.opened = null;
    this.pane.hide();
    this.update();
    this.tree.focus(path);
  }

  onDeleted(text) {
    this.opened = null;
    this.pane.hide();
    this.update();
    this.desk.announce(text);
    this.newButton.focus();
  }

  /** @param {string} [copied] path of the definition to copy */
  openForm(copied) {
    const form = new NewDefinitionForm(this.desk, this.rows, (outcome) => this.closeForm(outcome));
    if (copied) form.copyOf(copied);
    this.formBox.replaceChildren(form.element);
    form.focus();
  }

  closeForm(outcome) {
    this.formBox.replaceChildren();
    this.newButton.focus();
    if (!outcome) return;
    this.desk.announce(outcome.message ?? "The definition was created.");
    this.open(outcome.agentPath, "overview");
  }
}
