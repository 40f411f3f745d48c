/** What a worktree would bring: files with counts, and their lines; commits and what is not committed. */

import { Segments } from "../lib/segments.js";
import { Asker } from "../link/asker.js";
import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { countsOf, FileDiff, named } from "./file_diff.js";
import { counted, lineCounts } from "../lib/format.js";

const NEAR = "600px";
const SIDES = { committed: "Committed", uncommitted: "Uncommitted" };

export class DiffView {
  /** @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.side = "committed";
    /** @type {FileDiff[]} */
    this.files = [];
    this.asker = new Asker(desk);
    const id = freshId("diff");
    this.sides = new Segments(SIDES, "Show changes that are", (side) => this.turn(side));
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.all = button("Close all", "wb-link", () => this.toggleAll());
    this.newer = h(
      "div",
      { class: "wb-box wb-slim", hidden: true },
      h("span", {}, "There are newer changes than these. "),
      button("Show them", "wb-link", () => this.load()),
    );
    this.list = h("ul", {
      class: "wb-diff-list",
      "aria-label": "Files",
      on: { keydown: (event) => this.onListKey(event) },
    });
    this.body = h("div", {
      class: "wb-diff-files",
      role: "group",
      tabindex: 0,
      "aria-label": "Changes; j and k go from file to file",
      on: { keydown: (event) => this.onKey(event) },
    });
    this.empty = h("p", { class: "wb-empty" });
    this.main = h("div", { class: "wb-diff-main wb-frame" }, this.list, this.body);
    this.element = h(
      "section",
      { class: "wb-stack", "aria-labelledby": id },
      h(
        "div",
        { class: "wb-toolbar" },
        h("h3", { class: "wb-heading", id }, "Changes"),
        this.summary,
        this.all,
        this.sides.element,
      ),
      this.asker.problem,
      this.newer,
      this.empty,
      this.main,
    );
    this.nearing = new IntersectionObserver(
      (entries) =>
        entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => target.file.approach()),
      { root: this.body, rootMargin: NEAR },
    );
  }

  /** Show another worktree from the beginning. @param {any} worktree its row */
  show(worktree) {
    this.worktree = worktree;
    this.side = worktree.ahead || !worktree.uncommitted ? "committed" : "uncommitted";
    this.clear();
    this.drawSides();
    return this.load();
  }

  /** What is known now; what is being read is not torn away. @param {any} worktree */
  update(worktree) {
    this.worktree = worktree;
    this.drawSides();
    const stale = this.found && this.asked !== stampOf(worktree, this.side);
    if (stale && !this.files.length) this.load();
    else this.newer.hidden = !stale;
  }

  drawSides() {
    const numbers = { committed: this.worktree.changed ?? 0, uncommitted: this.worktree.uncommitted ?? 0 };
    for (const [side, label] of Object.entries(SIDES)) {
      this.sides.setLabel(side, `${label} ${numbers[side].toLocaleString("en")}`);
    }
    this.sides.show(this.side);
  }

  turn(side) {
    this.side = side;
    this.clear();
    this.drawSides();
    this.load();
  }

  clear() {
    this.found = null;
    this.asker.clear();
    this.nearing.disconnect();
    this.files = [];
    this.list.replaceChildren();
    this.body.replaceChildren();
    this.main.hidden = this.newer.hidden = this.all.hidden = true;
    this.empty.hidden = false;
    setText(this.summary, "");
    setText(this.empty, "Reading…");
  }

  /** Read it; where one reads stays on screen. */
  async load() {
    const asked = (this.loading = stampOf(this.worktree, this.side));
    const at = this.reading();
    try {
      const found = await this.asker.send("get_worktree_diff", this.request());
      if (asked !== this.loading) return;
      this.asked = asked;
      this.found = found;
      this.asker.clear();
      this.draw(at);
    } catch (error) {
      if (asked !== this.loading) return;
      this.empty.hidden = true;
      this.asker.show(error);
    }
  }

  request(path) {
    const more = path === undefined ? {} : { path };
    return { worktree_name: this.worktree.id, uncommitted: this.side === "uncommitted", ...more };
  }

  draw(at) {
    const closed = new Set(this.files.filter(({ open }) => !open).map(({ path }) => path));
    this.nearing.disconnect();
    this.files = this.found.files.map((file) => new FileDiff(file, { whole: (path) => this.whole(path) }));
    for (const file of this.files) {
      if (closed.has(file.path)) file.toggle(false);
      file.element.file = file;
      this.nearing.observe(file.element);
    }
    this.body.replaceChildren(...this.files.map(({ element }) => element));
    this.list.replaceChildren(...this.files.map((file) => this.entry(file)));
    const { added, removed } = lineCounts(this.found.files);
    setText(
      this.summary,
      this.files.length
        ? `${counted(this.files.length, "file")} +${added.toLocaleString("en")} −${removed.toLocaleString("en")}${this.against()}`
        : "",
    );
    setText(this.empty, this.nothing());
    this.newer.hidden = true;
    this.empty.hidden = this.files.length > 0;
    this.main.hidden = this.files.length === 0;
    this.all.hidden = this.files.length < 2;
    this.drawAll();
    if (at) this.goBack(at);
  }

  against() {
    if (this.side === "uncommitted") return " not committed yet";
    return ` at ${this.found.commit?.slice(0, 7) ?? "?"}, against ${this.found.target}`;
  }

  nothing() {
    return this.side === "uncommitted"
      ? "Everything is committed."
      : `No commit here that ${this.found.target} does not have.`;
  }

  entry(file) {
    const open = button("", "wb-diff-entry", () => this.goTo(file));
    open.append(
      h("span", { class: "wb-cut wb-grow", dir: "rtl" }, h("bdi", { dir: "ltr" }, ...named(file.path))),
      h("span", { class: "wb-diff-counts" }, ...countsOf(file.file)),
    );
    open.title = file.path;
    return h("li", {}, open);
  }

  async whole(path) {
    this.asker.clear();
    try {
      return (
        (await this.asker.send("get_worktree_diff", this.request(path))).files.find((file) => file.path === path) ??
        null
      );
    } catch (error) {
      this.asker.show(error);
      return null;
    }
  }

  toggleAll() {
    const open = !this.files.some((file) => file.open);
    for (const file of this.files) file.toggle(open);
    this.drawAll();
  }

  drawAll() {
    setText(this.all, this.files.some((file) => file.open) ? "Close all" : "Open all");
  }

  /** The file at the top, and how far it is scrolled. */
  reading() {
    const top = this.body.scrollTop;
    const file = this.files.findLast(({ element }) => element.offsetTop <= top);
    return file && { path: file.path, by: top - file.element.offsetTop };
  }

  goBack({ path, by }) {
    const file = this.files.find((one) => one.path === path);
    if (file) this.body.scrollTop = file.element.offsetTop + by;
  }

  goTo(file) {
    if (!file) return;
    file.toggle(true);
    this.body.scrollTop = file.element.offsetTop;
    file.head.focus({ preventScroll: true });
  }

  /** The file that has the focus, else the one at the top. */
  get at() {
    const focused = this.files.findIndex(({ element }) => element.contains(document.activeElement));
    return focused >= 0 ? focused : this.files.findLastIndex(({ element }) => element.offsetTop <= this.body.scrollTop);
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const fresh =
      !this.files.some(({ element }) => element.contains(document.activeElement)) && this.body.scrollTop === 0;
    const moves = { j: fresh ? 0 : this.at + 1, k: this.at - 1, n: fresh ? 0 : this.at + 1, p: this.at - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.goTo(this.files[moves[event.key]]);
  }

  onListKey(event) {
    const entries = [...this.list.querySelectorAll("button")];
    const at = entries.indexOf(event.target);
    const move = { ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1, Home: 0, End: entries.length - 1 }[
      event.key
    ];
    if (move === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    entries[move]?.focus();
  }
}

/** What the shown difference was made of. */
function stampOf({ commit, dirty, uncommitted }, side) {
  return JSON.stringify(side === "committed" ? [side, commit] : [side, uncommitted, dirty]);
}
