/** Which worktrees would conflict with each other, or with their targets: a table, and the files of a pair. */

import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { counted, some } from "../lib/format.js";
import { icon } from "../lib/icons.js";

const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });

export class Conflicts {
  /** @param {import("../link/store.js").Store} store @param {(name: string) => void} onOpen a worktree is to be shown */
  constructor(store, onOpen) {
    this.store = store;
    this.onOpen = onOpen;
    this.picked = null;
    this.summary = h("p", { class: "wb-muted" });
    this.caption = h("caption", { class: "wb-sr" }, "Predicted conflicts; each cell has the number of files");
    this.table = h("table", {
      class: "wb-matrix",
      on: {
        keydown: (event) => this.onKey(event),
        focusin: (event) => this.hint(event.target),
        mouseover: (event) => this.hint(event.target),
      },
    });
    this.hintLine = h("p", { class: "wb-muted wb-matrix-hint" });
    this.pair = h("div", { class: "wb-box wb-stack wb-pair", id: freshId("pair"), hidden: true });
    this.element = h(
      "div",
      { class: "wb-stack" },
      this.summary,
      h("div", { class: "wb-matrix-box" }, this.table),
      this.hintLine,
      this.pair,
    );
  }

  /** Pairs that conflict. */
  get pairs() {
    return [...this.store.tables.conflicts.values()].filter(({ id }) => id !== "");
  }

  update() {
    const { pairs } = this;
    const { tables } = this.store;
    const checked = tables.conflicts.get("");
    const key = JSON.stringify([pairs, checked, tables.worktrees.size]);
    if (key === this.shown) return;
    this.shown = key;
    setText(this.summary, this.words(pairs, checked));
    this.table.parentElement.hidden = this.hintLine.hidden = !pairs.length;
    this.drawTable(pairs);
    this.drawPair(pairs.find(({ id }) => id === this.picked));
  }

  words(pairs, checked) {
    if (checked?.error) return checked.error.message;
    const all = this.store.tables.worktrees.size;
    if (!checked) return "";
    if (!pairs.length)
      return all
        ? "No conflicts are predicted, neither between worktrees nor with what they are integrated into."
        : "There are no worktrees.";
    const named = new Set(pairs.flatMap(({ one, other, is_target: target }) => (target ? [one] : [one, other])));
    const free = all - named.size;
    return `${counted(pairs.length, "pair")} would conflict if integrated as they are now.${free > 0 ? ` ${counted(free, "other worktree")} would not, and ${free === 1 ? "is" : "are"} left out.` : ""}`;
  }

  drawTable(pairs) {
    const rows = new Set();
    const targets = new Set();
    const cells = new Map();
    for (const pair of pairs) {
      rows.add(pair.one);
      if (pair.is_target) targets.add(pair.other);
      else rows.add(pair.other);
      cells.set(`${pair.one}\n${pair.other}`, pair);
      if (!pair.is_target) cells.set(`${pair.other}\n${pair.one}`, pair);
    }
    const names = [...rows].sort(byName);
    const columns = [...[...targets].sort(byName).map((name) => [name, true]), ...names.map((name) => [name, false])];
    const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset.pair : null;
    const head = h(
      "tr",
      {},
      h("td", {}),
      ...columns.map(([name, target]) =>
        h(
          "th",
          { scope: "col", class: target ? "wb-matrix-target" : null, title: target ? `${name}, a target` : name },
          h("span", {}, name),
        ),
      ),
    );
    const line = (name) =>
      h(
        "tr",
        {},
        h("th", { scope: "row", title: name }, name),
        ...columns.map(([other, target]) => this.cell(cells.get(`${name}\n${other}`), name, other, target)),
      );
    this.table.replaceChildren(this.caption, h("thead", {}, head), h("tbody", {}, ...names.map(line)));
    if (focused) this.table.querySelector(`[data-pair=${CSS.escape(focused)}]`)?.focus();
  }

  cell(pair, name, other, target) {
    const same = !target && name === other;
    if (!pair || pair.is_target !== target)
      return h(
        "td",
        { class: same ? "wb-matrix-same" : null },
        h("span", { class: "wb-sr" }, same ? "itself" : "none"),
      );
    const open = button(
      String(pair.files.length),
      "wb-matrix-cell",
      () => this.pick(pair),
      `${name} and ${other}: ${counted(pair.files.length, "file")}`,
    );
    open.title = some(pair.files, 8);
    open.dataset.pair = pair.id;
    open.setAttribute("aria-controls", this.pair.id);
    open.setAttribute("aria-expanded", String(pair.id === this.picked));
    return h("td", {}, open);
  }

  pick(pair) {
    this.picked = this.picked === pair.id ? null : pair.id;
    for (const cell of this.table.querySelectorAll(".wb-matrix-cell"))
      cell.setAttribute("aria-expanded", String(cell.dataset.pair === this.picked));
    this.drawPair(this.picked ? pair : null);
  }

  /** The files of a cell that is pointed at, or has the focus. */
  hint(target) {
    const pair = this.store.tables.conflicts.get(target.closest?.(".wb-matrix-cell")?.dataset.pair);
    if (pair) setText(this.hintLine, `${pair.one} and ${pair.other}: ${some(pair.files, 4)}`);
    else if (!this.hintLine.textContent)
      setText(this.hintLine, "Point at a number to see the files, or press it to keep them.");
  }

  drawPair(pair) {
    this.pair.hidden = !pair;
    setText(
      this.hintLine,
      this.hintLine.textContent || "Point at a number to see the files, or press it to keep them.",
    );
    if (!pair) return;
    const open = (name) => button(`Show ${name}`, "wb-button", () => this.onOpen(name));
    this.pair.replaceChildren(
      h(
        "div",
        { class: "wb-toolbar" },
        icon("warning"),
        h(
          "span",
          { class: "wb-grow" },
          h("strong", {}, pair.one),
          " and ",
          h("strong", {}, pair.other),
          `${pair.is_target ? ", its target," : ""} change the same lines of ${counted(pair.files.length, "file")}`,
        ),
      ),
      h("ul", { class: "wb-list" }, ...pair.files.map((path) => h("li", {}, h("code", { class: "wb-wrap" }, path)))),
      h("div", { class: "wb-line" }, open(pair.one), pair.is_target ? "" : open(pair.other)),
    );
  }

  /** Arrows go from number to number; Escape closes the files. */
  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && this.picked) {
      event.stopPropagation();
      this.picked = null;
      this.shown = null;
      this.update();
      return;
    }
    const [row, column] = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[
      event.key
    ] ?? [0, 0];
    if (!row && !column) return;
    event.preventDefault();
    let cell = beside(event.target.closest("td"), row, column);
    while (cell && !cell.querySelector("button")) cell = beside(cell, row, column);
    cell?.querySelector("button").focus();
  }
}

/** The next cell in a direction. */
function beside(cell, row, column) {
  const line = cell.parentElement;
  const body = [...line.parentElement.children];
  return body[body.indexOf(line) + row]?.children[cell.cellIndex + column];
}
