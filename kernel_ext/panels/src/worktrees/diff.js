/** The changes of a worktree: a list of files beside their lines, committed or not. */

import { Segments, button } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { lineCounts, plural } from "../lib/format.js";
import { requestId } from "../link/channel.js";
import { Refresh } from "../link/polling.js";
import { loadHighlighter, loadNotebook } from "../link/assets.js";
import { RequestRunner } from "../link/request_runner.js";
import { FileDiff, countNodes, pathNodes } from "../lib/file_diff.js";
import { currentPlace } from "../review/comments.js";
import { LineSelection } from "../review/line_selection.js";
import { Requested, requestsOf } from "../review/requested.js";
import { Review } from "../review/review.js";

/** Files are drawn when they are so near to the visible part. */
const NEAR = "600px";
const SIDES = { committed: "Committed", since: "Since the request", uncommitted: "Uncommitted" };

export class Diff {
  /** @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.side = "committed";
    this.review = new Review(desk, { changed: () => this.drawComments() });
    this.requested = new Requested(desk, {
      since: (request) => this.showSince(request),
      goTo: (comment) => this.goToComment(comment),
    });
    /** @type {FileDiff[]} */
    this.files = [];
    this.requests = new RequestRunner(desk);
    const id = freshId("diff");
    this.empty = h("p", { class: "wb-empty" });
    this.main = h("div", { class: "wb-diff-main wb-frame" }, this.fileList(), this.fileBodies());
    this.element = h(
      "section",
      { class: "wb-stack", "aria-labelledby": id },
      this.requested.element,
      this.toolbar(id),
      this.review.element,
      this.requests.errorBox,
      this.newerNote(),
      this.empty,
      this.main,
    );
    const onIntersect = (entries) =>
      entries.filter(({ isIntersecting }) => isIntersecting).forEach(({ target }) => target.file.approach());
    this.observer = new IntersectionObserver(onIntersect, { root: this.body, rootMargin: NEAR });
  }

  toolbar(id) {
    this.sides = new Segments(SIDES, "Show changes that are", (side) => this.setSide(side));
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.toggleAll = button("Close all", "wb-link", () => this.onToggleAll());
    const heading = h("h3", { class: "wb-heading", id }, "Changes");
    return h(
      "div",
      { class: "wb-toolbar" },
      heading,
      this.summary,
      this.toggleAll,
      this.sides.element,
      this.review.opener,
    );
  }

  newerNote() {
    const show = button("Show them", "wb-link", () => this.refresh.now());
    this.newer = h("div", { class: "wb-box wb-slim", hidden: true }, "There are newer changes than these. ", show);
    return this.newer;
  }

  fileList() {
    const on = { keydown: (event) => this.onListKey(event) };
    this.list = h("ul", { class: "wb-diff-list", "aria-label": "Files", on });
    return this.list;
  }

  fileBodies() {
    this.body = h("div", {
      class: "wb-diff-files",
      role: "group",
      tabindex: 0,
      "aria-label": "Changes; j and k go from file to file",
      on: { keydown: (event) => this.onKey(event) },
    });
    this.selection = new LineSelection(this.body, {
      canComment: (line) => this.canComment && (this.side !== "since" || line.kind !== "-"),
      comment: (chosen) => this.comment(chosen),
    });
    return this.body;
  }

  /** Show another worktree. @param {any} worktree its row */
  show(worktree) {
    this.worktree = worktree;
    this.since = null;
    this.review.show(worktree);
    this.setSide(worktree.ahead || !worktree.uncommitted ? "committed" : "uncommitted");
  }

  /** Bring it up to date. Lines that are being read are not replaced. @param {any} worktree its row */
  update(worktree) {
    this.worktree = worktree;
    this.review.update(worktree);
    this.requested.update(worktree.id, Date.now());
    this.drawSent();
    this.drawSides();
    const stale = this.diff && this.stamp !== stampOf(worktree, this.side);
    if (stale && !this.files.length) this.refresh.now();
    else this.newer.hidden = !stale;
  }

  setSide(side) {
    this.clear();
    this.side = side;
    this.drawSides();
    this.refresh = new Refresh(
      () => this.load(side),
      (error) => this.onError(error),
    );
    this.refresh.now();
  }

  drawSides() {
    const counts = { committed: this.worktree.changed ?? 0, uncommitted: this.worktree.uncommitted ?? 0 };
    for (const [side, label] of Object.entries(SIDES)) {
      if (side in counts) this.sides.setLabel(side, `${label} ${counts[side].toLocaleString("en")}`);
    }
    this.sides.buttons.since.hidden = !this.newestAnswered;
    this.sides.show(this.side);
  }

  /** The newest request for changes after which there were commits. */
  get newestAnswered() {
    return requestsOf(this.desk.store.tables, this.worktree.id).find((request) => request.commits_since > 0);
  }

  /** Show what has changed since changes were requested. */
  showSince(request) {
    this.since = request;
    this.setSide("since");
    this.sides.buttons.since.focus();
  }

  /** Whether lines can be commented on: those of commits. */
  get canComment() {
    return this.worktree.status === "active" && this.side !== "uncommitted" && Boolean(this.diff?.commit);
  }

  comment(chosen) {
    const { rows } = chosen;
    this.review.write(chosen, this.diff.commit, () => {
      this.selection.clear();
      rows.at(-1).tabIndex = -1;
      rows.at(-1).focus();
    });
  }

  /** Put the comments among the lines that are drawn. */
  drawComments() {
    for (const file of this.files) if (file.drawn) this.review.drawIn(file, this.side === "committed");
  }

  /** Draw the comments again if others were sent. */
  drawSent() {
    const sent = JSON.stringify(requestsOf(this.desk.store.tables, this.worktree.id));
    if (sent === this.drawnSent) return;
    this.drawnSent = sent;
    this.drawComments();
  }

  /** Show the lines that a comment is about: those of all that was committed. */
  async goToComment(comment) {
    if (this.side !== "committed") this.setSide("committed");
    if (!this.diff) await this.refresh.running;
    const { path, side, line } = currentPlace(comment);
    const file = this.files.find((each) => each.path === path);
    if (!file) return;
    this.goTo(file);
    file.approach();
    const row = file.rowOf(side, line);
    row?.scrollIntoView({ block: "center" });
    if (row) row.tabIndex = -1;
    row?.focus({ preventScroll: true });
  }

  clear() {
    this.refresh?.stop();
    this.diff = null;
    this.requests.clearError();
    this.observer.disconnect();
    this.files = [];
    this.list.replaceChildren();
    this.body.replaceChildren();
    this.main.hidden = this.newer.hidden = this.toggleAll.hidden = true;
    this.empty.hidden = false;
    setText(this.summary, "");
    setText(this.empty, "Loading…");
  }

  /** Read the changes. The place that a person reads stays on screen. */
  async load(side) {
    const { refresh, worktree } = this;
    const stamp = stampOf(worktree, side);
    const diff = await this.requests.send("get_worktree_diff", this.request());
    if (refresh !== this.refresh) return; // another worktree or side is shown
    this.stamp = stamp;
    this.diff = diff;
    this.requests.clearError();
    this.draw(this.position());
  }

  onError(error) {
    this.empty.hidden = true;
    this.requests.showError(error);
  }

  request(path) {
    const only = path === undefined ? {} : { path };
    const request = this.since ?? this.newestAnswered;
    const since = this.side === "since" && request ? { since: request.commit } : {};
    return { worktree_name: this.worktree.id, uncommitted: this.side === "uncommitted", ...since, ...only };
  }

  draw(position) {
    const closed = new Set(this.files.filter(({ open }) => !open).map(({ path }) => path));
    this.observer.disconnect();
    this.files = this.diff.files.map((file) => this.fileDiff(file));
    for (const file of this.files) {
      if (closed.has(file.path)) file.toggle(false);
      file.element.file = file;
      this.observer.observe(file.element);
    }
    this.body.replaceChildren(...this.files.map(({ element }) => element));
    this.list.replaceChildren(...this.files.map((file) => this.entry(file)));
    const count = this.files.length;
    setText(this.summary, count ? this.summaryText() : "");
    setText(this.empty, this.emptyText());
    this.newer.hidden = true;
    this.empty.hidden = count > 0;
    this.main.hidden = count === 0;
    this.toggleAll.hidden = count < 2;
    this.drawToggleAll();
    this.main.classList.toggle("wb-commentable", this.canComment);
    if (position) this.restore(position);
  }

  fileDiff(file) {
    return new FileDiff(file, {
      readAll: (path) => this.readAll(path),
      highlighter: () => loadHighlighter(this.desk.channel),
      drawn: (drawn) => {
        if (drawn.path.endsWith(".ipynb")) this.drawNotebook(drawn);
        this.review.drawIn(drawn, this.side === "committed");
      },
    });
  }

  /** Draw a notebook as cells, as soon as they have come. Without them its lines stay. */
  async drawNotebook(file) {
    if (!file.hunks[0]?.context.startsWith("cell ")) return;
    const { path, old_path } = file.file;
    const request = { ...this.request(path), old_path };
    file.outputs ??= this.desk.channel.request(requestId(), "get_worktree_outputs", request);
    try {
      const [draw, { cells }] = await Promise.all([loadNotebook(this.desk.channel), file.outputs]);
      draw(file, cells, (rows, cell) => this.selection.commentOn(rows, cell));
    } catch (error) {
      file.body.append(h("p", { class: "wb-diff-note" }, `The outputs are not shown: ${error.message}`));
    }
  }

  summaryText() {
    const { added, removed } = lineCounts(this.diff.files);
    const counts = `${plural(this.files.length, "file")} +${added.toLocaleString("en")} −${removed.toLocaleString("en")}`;
    if (this.side === "uncommitted") return `${counts}, not committed`;
    if (this.side === "since") return `${counts}, since changes were requested`;
    return `${counts} at ${this.diff.commit?.slice(0, 7) ?? "?"}, compared with ${this.diff.target}`;
  }

  emptyText() {
    if (this.side === "uncommitted") return "Everything is committed.";
    if (this.side === "since") return "Nothing has changed since.";
    return `It has no commits that ${this.diff.target} does not have.`;
  }

  entry(file) {
    const open = button("", "wb-diff-entry", () => this.goTo(file));
    // Right to left cuts a long path at its beginning.
    const path = h("span", { class: "wb-cut wb-grow", dir: "rtl" }, h("bdi", { dir: "ltr" }, ...pathNodes(file.path)));
    open.append(path, h("span", { class: "wb-diff-counts" }, ...countNodes(file.file)));
    setAttribute(open, "title", file.path);
    return h("li", {}, open);
  }

  /** One file without a limit, or null after an error, which is shown. */
  async readAll(path) {
    this.requests.clearError();
    try {
      const { files } = await this.requests.send("get_worktree_diff", this.request(path));
      return files.find((file) => file.path === path) ?? null;
    } catch (error) {
      this.requests.showError(error);
      return null;
    }
  }

  onToggleAll() {
    const open = !this.files.some((file) => file.open);
    for (const file of this.files) file.toggle(open);
    this.drawToggleAll();
  }

  drawToggleAll() {
    setText(this.toggleAll, this.files.some((file) => file.open) ? "Close all" : "Open all");
  }

  /** The file at the top, and how far it is scrolled. */
  position() {
    const top = this.body.scrollTop;
    const file = this.files.findLast(({ element }) => element.offsetTop <= top);
    return file && { path: file.path, offset: top - file.element.offsetTop };
  }

  restore({ path, offset }) {
    const file = this.files.find((each) => each.path === path);
    if (file) this.body.scrollTop = file.element.offsetTop + offset;
  }

  goTo(file) {
    if (!file) return;
    file.toggle(true);
    this.body.scrollTop = file.element.offsetTop;
    file.head.focus({ preventScroll: true });
  }

  /** The index of the file that has the focus, else of the one at the top. */
  get at() {
    const focused = this.files.findIndex(({ element }) => element.contains(document.activeElement));
    return focused >= 0 ? focused : this.files.findLastIndex(({ element }) => element.offsetTop <= this.body.scrollTop);
  }

  onKey(event) {
    if (event.target.matches("textarea, input, select")) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const focused = this.files.some(({ element }) => element.contains(document.activeElement));
    const next = focused || this.body.scrollTop > 0 ? this.at + 1 : 0;
    const moves = { j: next, k: this.at - 1, n: next, p: this.at - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.goTo(this.files[moves[event.key]]);
  }

  onListKey(event) {
    const entries = [...this.list.querySelectorAll("button")];
    const at = entries.indexOf(event.target);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, j: at + 1, k: at - 1, Home: 0, End: entries.length - 1 };
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    entries[moves[event.key]]?.focus();
  }
}

/** What a diff depends on: it is newer when this differs. */
function stampOf({ commit, dirty, uncommitted }, side) {
  return JSON.stringify(side === "uncommitted" ? [side, uncommitted, dirty] : [side, commit]);
}
