/** The worktrees: a card for each, the table of predicted conflicts, those that are closed, and the page of one. */

import { Chips } from "../lib/chips.js";
import { Segments, button, field, form, formButtons, input, searchField } from "../lib/controls.js";
import { freshId, h, prose, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { RequestRunner } from "../link/request_runner.js";
import { WorktreeCard } from "./card.js";
import { ClosedWorktrees } from "./closed.js";
import { Conflicts } from "./conflicts.js";
import { SavedViews } from "../saved_views/saved_views.js";
import { WorktreePage } from "./page.js";
import { PENDING, conflictsOf, occupancy, worktreeState } from "./state.js";

/** With so many worktrees or fewer there is no text filter. */
const FEW = 6;
const MODES = { cards: "Cards", conflicts: "Conflicts", closed: "Closed" };
/** Filters: their labels, and which worktrees match. */
const FILTERS = {
  pending: ["For you", (_, state) => PENDING.has(state)],
  queue: ["In the queue", (_, state) => state === "queued" || state === "integrating"],
  conflicts: ["With conflicts", (worktree) => conflictsOf(worktree).length > 0],
  uncommitted: ["Uncommitted", (worktree) => worktree.uncommitted > 0],
  occupied: ["With agents", (_, state, occupants) => occupants.agents.size > 0],
};
const byName = (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true });

export class Worktrees {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   */
  constructor(store, channel, announce) {
    this.store = store;
    this.desk = { store, channel, announce };
    this.requests = new RequestRunner(this.desk);
    this.mode = "cards";
    this.filter = null;
    this.text = "";
    /** The row of the worktree whose page is open. */
    this.opened = null;
    /** The worktree to open as soon as its row has come. @type {string|null} */
    this.toOpen = null;
    this.enabled = true;
    const id = freshId("worktrees");
    const done = (text) => this.showNote(text);
    this.note = h("div", { class: "wb-box wb-slim wb-note", hidden: true });
    this.page = new WorktreePage(this.desk, { close: () => this.close(), done });
    this.conflicts = new Conflicts(store, (name) => this.open(name));
    this.closed = new ClosedWorktrees(store);
    this.all = this.overview(id, done);
    const parts = [this.note, this.all, this.page.element];
    this.element = h("section", { class: "wb-section wb-stack", "aria-labelledby": id }, ...parts);
  }

  overview(id, done) {
    this.formBox = h("div", {});
    this.empty = h("div", { class: "wb-empty wb-stack" });
    this.chips = new Chips("Filter worktrees", (filter) => this.setFilter({ filter }));
    const clear = button("Show all", "wb-link", () => this.clear());
    this.noMatch = h("p", { class: "wb-empty" }, "No worktree matches the filters. ", clear);
    this.list = h("ul", { class: "wb-worktrees", "aria-labelledby": id });
    const make = (name) => new WorktreeCard(name, this.desk, { open: (worktree) => this.open(worktree), done });
    const onRemove = (_, hadFocus) => hadFocus && (this.list.querySelector(".wb-opener") ?? this.newButton).focus();
    this.cards = new KeyedList(this.list, make, { onRemove });
    const parts = [this.toolbar(id), this.formBox, this.requests.errorBox, this.empty, this.chips.element];
    const views = [this.noMatch, this.list, this.conflicts.element, this.closed.element];
    return h("div", { class: "wb-stack" }, ...parts, ...views);
  }

  toolbar(id) {
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.modes = new Segments(MODES, "Show worktrees as", (mode) => this.setMode(mode));
    this.search = searchField("Filter worktrees", "Filter worktrees by name, branch or agent", {
      input: () => this.setFilter({ text: this.search.value.trim().toLowerCase() }),
    });
    this.views = new SavedViews(this.desk, "worktrees", {
      read: () => ({ filter: this.filter, text: this.text, mode: this.mode }),
      apply: (state) => this.apply(state),
    });
    this.newButton = button("New worktree…", "wb-button", () => this.openForm());
    const heading = h("h3", { class: "wb-heading", id }, "Worktrees");
    const tools = h("div", { class: "wb-line" }, this.modes.element, this.search, this.views.element, this.newButton);
    return h("div", { class: "wb-toolbar" }, heading, this.summary, tools);
  }

  /** The rows of worktrees; the row without an id, which holds an error, is not one. */
  get rows() {
    return [...this.store.tables.worktrees.values()].filter(({ id }) => id !== "").sort(byName);
  }

  /** How many there are. */
  count() {
    return this.rows.length;
  }

  /** Bring everything up to date. @param {boolean} enabled whether decisions can be sent @param {number} now in ms */
  update(enabled, now) {
    this.enabled = enabled;
    const { tables } = this.store;
    if (tables.worktrees.has(this.toOpen)) this.open(this.toOpen);
    const occupants = occupancy(tables, now);
    this.all.hidden = this.opened !== null;
    if (this.opened) this.drawPage(occupants, now);
    else this.drawOverview(occupants, now);
  }

  drawOverview(occupants, now) {
    const { rows } = this;
    const { tables } = this.store;
    const states = new Map(rows.map((row) => [row.id, worktreeState(row, tables)]));
    const cards = this.mode === "cards";
    this.drawToolbar(rows, states, occupants);
    const matching = cards ? rows.filter((row) => this.matches(row, states.get(row.id), occupants(row.id))) : [];
    const draw = (card, id) => card.show(tables.worktrees.get(id), states.get(id), occupants(id), now);
    this.cards.show(
      matching.map(({ id }) => id),
      draw,
    );
    this.noMatch.hidden = !cards || matching.length > 0 || !rows.length;
    this.list.hidden = !cards || !matching.length;
    this.conflicts.element.hidden = this.mode !== "conflicts" || !rows.length;
    if (!this.conflicts.element.hidden) this.conflicts.update();
    this.closed.element.hidden = this.mode !== "closed";
    if (!this.closed.element.hidden) this.closed.update();
    this.drawEmpty(rows.length, tables.worktrees.get("")?.error);
  }

  drawToolbar(rows, states, occupants) {
    const cards = this.mode === "cards";
    const conflicts = this.conflicts.pairs.length;
    setText(this.summary, rows.length ? plural(rows.length, "worktree") : "");
    this.modes.setLabel("conflicts", conflicts ? `Conflicts ${conflicts.toLocaleString("en")}` : "Conflicts");
    this.modes.show(this.mode);
    const closed = this.closed.rows.length;
    this.modes.setLabel("closed", closed ? `Closed ${closed.toLocaleString("en")}` : "Closed");
    this.modes.element.hidden = !rows.length && !closed;
    this.search.hidden = !cards || rows.length <= FEW;
    this.chips.element.hidden = !cards || rows.length < 2;
    this.views.element.hidden = !rows.length;
    this.views.update();
    const chips = Object.entries(FILTERS).map(([key, [label, matches]]) => {
      return { key, label, count: rows.filter((row) => matches(row, states.get(row.id), occupants(row.id))).length };
    });
    this.chips.update([{ key: null, label: "All", count: rows.length }, ...chips], this.filter);
  }

  /** What a worktree is, or why there can be none. */
  drawEmpty(total, error) {
    if (error && total) this.requests.showError(error);
    else this.requests.clearError();
    this.empty.hidden = total > 0 || this.mode === "closed" || !this.store.loaded.has("worktrees");
    this.newButton.hidden = Boolean(error) && !total;
    const reason = error?.code ?? "none";
    if (this.empty.hidden || this.empty.dataset.shown === reason) return;
    this.empty.dataset.shown = reason;
    const create = button("New worktree…", "wb-link", () => this.openForm());
    const call = h("code", {}, 'wb.call("create_worktree", name="…")');
    this.empty.replaceChildren(
      h(
        "p",
        {},
        "A worktree is a directory with its own branch. An agent works there; your files do not change until you approve its work.",
      ),
      error ? h("p", {}, ...prose(error.message)) : h("p", {}, "Create one with ", create, " or ", call, "."),
    );
  }

  drawPage(occupants, now) {
    const { tables } = this.store;
    const row = tables.worktrees.get(this.opened.id);
    if (row) this.opened = row;
    const worktree = row ?? { ...this.opened, status: "closed" };
    this.page.update(worktree, worktreeState(worktree, tables), occupants(worktree.id), now, this.enabled);
  }

  matches(row, state, occupants) {
    if (this.filter && !FILTERS[this.filter][1](row, state, occupants)) return false;
    const text = [row.id, row.branch_name, ...occupants.agents].join("\n").toLowerCase();
    return this.text.split(/\s+/).every((word) => text.includes(word));
  }

  setFilter(change) {
    Object.assign(this, change);
    this.update(this.enabled, Date.now());
    this.desk.announce(`${plural(this.cards.items.size, "worktree")} shown.`);
  }

  /** Show what was saved. @param {any} state */
  apply({ filter = null, text = "", mode }) {
    this.mode = mode in MODES ? mode : "cards";
    this.search.value = text;
    this.setFilter({ filter: filter in FILTERS ? filter : null, text });
  }

  clear() {
    this.search.value = "";
    this.setFilter({ filter: null, text: "" });
  }

  setMode(mode) {
    this.mode = mode;
    this.update(this.enabled, Date.now());
  }

  /** Open the page of a worktree, now or when its row has come: a conflict may come first. @param {string} name */
  open(name) {
    const row = this.store.tables.worktrees.get(name);
    this.toOpen = row ? null : name;
    if (!row) return;
    this.opened = row;
    this.page.open(row);
    this.update(this.enabled, Date.now());
    this.page.focus();
    this.element.closest(".wb-desk")?.scrollIntoView({ block: "nearest" });
  }

  close() {
    const name = this.opened?.id;
    this.opened = null;
    this.page.close();
    this.update(this.enabled, Date.now());
    (this.cards.items.get(name)?.opener ?? this.newButton).focus();
  }

  /** Show what was done, until it is dismissed. */
  showNote(text) {
    this.desk.announce(text);
    const dismiss = button("Dismiss", "wb-link", () => this.dismissNote());
    this.note.replaceChildren(h("span", { class: "wb-grow" }, text), dismiss);
    this.note.hidden = false;
  }

  dismissNote() {
    this.note.hidden = true;
    if (this.opened) this.page.focus();
    else this.newButton.focus();
  }

  openForm() {
    const form = new NewWorktreeForm(this.desk, (outcome) => this.closeForm(outcome));
    this.formBox.replaceChildren(form.element);
    form.focus();
  }

  closeForm(outcome) {
    this.formBox.replaceChildren();
    this.newButton.focus();
    if (!outcome) return;
    const { name, branch_name: branch, integration_target: target, path } = outcome;
    this.showNote(`Created ${name}: branch ${branch}, to be integrated into ${target}. Its files are in ${path}.`);
  }
}

/** A form that creates a worktree. */
class NewWorktreeForm {
  /** @param {any} desk @param {(outcome: any|null) => void} onDone null: it was cancelled */
  constructor(desk, onDone) {
    this.requests = new RequestRunner(desk);
    this.onDone = onDone;
    this.name = input("", { maxlength: 60, required: true, placeholder: "robust-statistics" });
    const plain = () => setText(this.submit, "Create");
    this.branch = input("", { maxlength: 200, placeholder: "wb/<name>/main", on: { input: plain } });
    this.source = input("", { maxlength: 200, placeholder: "the current branch" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Create");
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "New worktree" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Name", this.name),
        field("Branch (optional)", this.branch),
        field("Start from, and integrate into (optional)", this.source),
      ),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    this.name.focus();
  }

  async run() {
    const args = {
      name: this.name.value.trim(),
      branch_name: this.branch.value.trim() || null,
      source_branch: this.source.value.trim() || null,
    };
    const outcome = await this.requests.run("create_worktree", args, this.submit, "Creating…");
    if (outcome) this.onDone(outcome);
    else if (this.requests.error?.code === "BRANCH_EXISTS" && !args.branch_name)
      this.offer(this.requests.error.details);
    else this.name.focus();
  }

  /** The usual branch exists: put it into its field, so that the next press continues it. */
  offer({ branch }) {
    this.branch.value = branch;
    setText(this.submit, `Continue ${branch}`);
    this.submit.focus();
  }
}
