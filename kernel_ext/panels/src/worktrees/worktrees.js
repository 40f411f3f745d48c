/** Worktrees: a card for each, the table of conflicts, and one of them opened. */

import { Asker } from "../link/asker.js";
import { Chips } from "../lib/chips.js";
import { Segments } from "../lib/segments.js";
import { errorContent } from "../lib/message.js";
import { Conflicts } from "./conflicts.js";
import { button, field, form, input } from "../lib/controls.js";
import { freshId, h, prose, setText } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { WorktreeCard } from "./card.js";
import { WorktreePage } from "./page.js";
import { conflictsOf, occupation, stateOf, YOURS } from "./state.js";

const MANY = 6;
const KINDS = {
  yours: ["For you", (_, state) => YOURS.has(state)],
  queue: ["In the queue", (_, state) => state === "queued" || state === "integrating"],
  conflicts: ["With conflicts", (worktree) => conflictsOf(worktree).length > 0],
  uncommitted: ["Uncommitted", (worktree) => worktree.uncommitted > 0],
  occupied: ["With agents", (_, state, there) => there.agents.size > 0],
};
const SHAPES = { cards: "Cards", conflicts: "Conflicts" };
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
    this.shape = "cards";
    this.wanted = null;
    this.text = "";
    this.opened = null;
    /** @type {string|null} what is to be opened as soon as it is known */
    this.toOpen = null;
    this.enabled = true;
    /** @type {Map<string, WorktreeCard>} */
    this.cards = new Map();
    const id = freshId("worktrees");
    const said = (text) => this.say(text);
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.search = h("input", {
      class: "wb-input wb-search",
      type: "search",
      placeholder: "Filter worktrees",
      "aria-label": "Filter worktrees by name, branch or agent",
      on: { input: () => this.filter({ text: this.search.value.trim().toLowerCase() }) },
    });
    this.shapes = new Segments(SHAPES, "Show worktrees as", (shape) => this.turn(shape));
    this.make = button("New worktree…", "wb-button", () => this.toggleMaking(true));
    this.making = h("div", {});
    this.note = h("div", { class: "wb-box wb-slim wb-note", hidden: true });
    this.problem = h("p", { class: "wb-message wb-error", hidden: true });
    this.chips = new Chips("Show worktrees", (wanted) => this.filter({ wanted }));
    this.list = h("ul", { class: "wb-worktrees", "aria-labelledby": id });
    this.conflicts = new Conflicts(store, (name) => this.open(name));
    this.empty = h("div", { class: "wb-empty" });
    this.nothing = h(
      "p",
      { class: "wb-empty" },
      "No worktree matches. ",
      button("Show all", "wb-link", () => this.clear()),
    );
    this.all = h(
      "div",
      { class: "wb-stack" },
      h(
        "div",
        { class: "wb-toolbar" },
        h("h3", { class: "wb-heading", id }, "Worktrees"),
        this.summary,
        this.shapes.element,
        this.search,
        this.make,
      ),
      this.making,
      this.problem,
      this.empty,
      this.chips.element,
      this.nothing,
      this.list,
      this.conflicts.element,
    );
    this.page = new WorktreePage(this.desk, { close: () => this.close(), said });
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      this.note,
      this.all,
      this.page.element,
    );
  }

  /** Worktrees by name, and why there can be none. */
  get rows() {
    return [...this.store.tables.worktrees.values()].filter(({ id }) => id !== "").sort(byName);
  }

  /** How many there are. */
  count() {
    return this.rows.length;
  }

  /** Bring everything up to date. @param {boolean} enabled @param {number} now in ms */
  update(enabled, now) {
    this.enabled = enabled;
    const { tables } = this.store;
    const { rows } = this;
    if (tables.worktrees.has(this.toOpen)) return this.open(this.toOpen);
    const there = occupation(tables, now);
    const states = new Map(rows.map((row) => [row.id, stateOf(row, tables)]));
    if (this.opened) this.drawPage(there, now);
    this.all.hidden = this.opened !== null;
    if (this.opened) return undefined;
    this.drawCounts(rows, states, there);
    const cards = this.shape === "cards";
    const fitting = cards ? rows.filter((row) => this.fits(row, states.get(row.id), there(row.id))) : [];
    this.drawCards(fitting, states, there, now);
    this.nothing.hidden = !cards || fitting.length > 0 || !rows.length;
    this.list.hidden = !cards || !fitting.length;
    this.conflicts.element.hidden = cards || !rows.length;
    if (!cards) this.conflicts.update();
    this.drawEmpty(rows.length);
    return undefined;
  }

  drawCounts(rows, states, there) {
    const clashing = this.conflicts.pairs.length;
    setText(this.summary, rows.length ? counted(rows.length, "worktree") : "");
    this.shapes.setLabel("conflicts", clashing ? `Conflicts ${clashing.toLocaleString("en")}` : "Conflicts");
    this.shapes.show(this.shape);
    this.shapes.element.hidden = !rows.length;
    this.search.hidden = this.shape !== "cards" || rows.length <= MANY;
    this.chips.element.hidden = this.shape !== "cards" || rows.length < 2;
    const chips = Object.entries(KINDS).map(([key, [label, fits]]) => {
      return { key, label, count: rows.filter((row) => fits(row, states.get(row.id), there(row.id))).length };
    });
    this.chips.update([{ key: null, label: "All", count: rows.length }, ...chips], this.wanted);
  }

  drawCards(rows, states, there, now) {
    const wanted = new Set(rows.map(({ id }) => id));
    for (const [name, card] of this.cards) if (!wanted.has(name)) this.drop(name, card);
    let before = null;
    for (const row of rows) {
      const card = this.cards.get(row.id) ?? this.add(row.id);
      card.show(row, states.get(row.id), there(row.id), now);
      if (card.element.previousElementSibling !== before || !card.element.parentNode) {
        if (before) before.after(card.element);
        else this.list.prepend(card.element);
      }
      before = card.element;
    }
  }

  add(name) {
    const card = new WorktreeCard(name, this.desk, {
      open: (wanted) => this.open(wanted),
      said: (text) => this.say(text),
    });
    this.cards.set(name, card);
    return card;
  }

  drop(name, card) {
    const focused = card.element.contains(document.activeElement);
    const next = card.element.nextElementSibling ?? card.element.previousElementSibling;
    card.element.remove();
    this.cards.delete(name);
    if (focused) (next?.querySelector(".wb-opener") ?? this.make).focus();
  }

  drawEmpty(total) {
    const why = this.store.tables.worktrees.get("")?.error;
    this.problem.hidden = !why || !total;
    if (!this.problem.hidden) this.problem.replaceChildren(...errorContent(why));
    this.empty.hidden = total > 0 || !this.store.known.has("worktrees");
    this.make.hidden = Boolean(why) && !total;
    if (this.empty.hidden || this.empty.dataset.why === (why?.code ?? "none")) return;
    this.empty.dataset.why = why?.code ?? "none";
    this.empty.replaceChildren(
      h(
        "p",
        {},
        "A worktree is a directory of its own with a branch of its own: an agent works there, and your files stay as they are until you approve what it made.",
      ),
      why
        ? h("p", {}, ...prose(why.message))
        : h(
            "p",
            {},
            "Make one with ",
            button("New worktree…", "wb-link", () => this.toggleMaking(true)),
            " or ",
            h("code", {}, 'wb.call("create_worktree", name="…")'),
            ".",
          ),
    );
  }

  drawPage(there, now) {
    const { tables } = this.store;
    const row = tables.worktrees.get(this.opened.id);
    if (row) this.opened = row;
    const shown = row ?? { ...this.opened, status: "closed" };
    this.page.update(shown, stateOf(shown, tables), there(shown.id), now, this.enabled);
  }

  fits(row, state, there) {
    if (this.wanted && !KINDS[this.wanted][1](row, state, there)) return false;
    const text = [row.id, row.branch_name, ...there.agents].join("\n").toLowerCase();
    return this.text.split(/\s+/).every((word) => text.includes(word));
  }

  filter(change) {
    Object.assign(this, change);
    this.update(this.enabled, Date.now());
    this.desk.announce(`${counted(this.cards.size, "worktree")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ wanted: null, text: "" });
  }

  turn(shape) {
    this.shape = shape;
    this.update(this.enabled, Date.now());
  }

  /** @param {string} name */
  open(name) {
    const row = this.store.tables.worktrees.get(name);
    this.toOpen = row ? null : name; // a conflict may be told before the worktree itself
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
    (this.cards.get(name)?.opener ?? this.make).focus();
  }

  /** What was done here, to read until it is put away. */
  say(text) {
    this.desk.announce(text);
    this.note.replaceChildren(
      h("span", { class: "wb-grow" }, text),
      button("Dismiss", "wb-link", () => this.dismiss()),
    );
    this.note.hidden = false;
  }

  dismiss() {
    this.note.hidden = true;
    if (this.opened) this.page.focus();
    else this.make.focus();
  }

  toggleMaking(open) {
    this.making.replaceChildren();
    if (!open) return this.make.focus();
    const made = new Making(this.desk, (outcome) => {
      this.toggleMaking(false);
      if (outcome)
        this.say(
          `${outcome.name} is made: ${outcome.branch_name}, to be integrated into ${outcome.integration_target}. Its files are in ${outcome.path}.`,
        );
    });
    this.making.append(made.element);
    return made.name.focus();
  }
}

/** A worktree to make. */
class Making {
  /** @param {any} desk @param {(outcome: any|null) => void} onDone */
  constructor(desk, onDone) {
    this.asker = new Asker(desk);
    this.onDone = onDone;
    this.name = input("", { maxlength: 60, required: true, placeholder: "robust-statistics" });
    this.branch = input("", { maxlength: 200, placeholder: "wb/<name>/main" });
    this.source = input("", { maxlength: 200, placeholder: "the branch checked out now" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Create");
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "New worktree" },
      { submit: () => this.run(), escape: () => onDone(null) },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Name", this.name),
        field("Branch (optional)", this.branch),
        field("Starts from, is integrated into (optional)", this.source),
      ),
      h(
        "div",
        { class: "wb-line" },
        this.submit,
        button("Cancel", "wb-button", () => onDone(null)),
      ),
      this.asker.problem,
    );
  }

  async run() {
    const args = {
      name: this.name.value.trim(),
      branch_name: this.branch.value.trim() || null,
      source_branch: this.source.value.trim() || null,
    };
    const outcome = await this.asker.ask("create_worktree", args, this.submit, "Creating…");
    if (outcome) this.onDone(outcome);
    else this.name.focus();
  }
}
