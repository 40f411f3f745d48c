/** Predicted conflicts between worktrees, and with their targets: a table, the files of one pair, and all by file. */

import { button } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { plural, shortList } from "../lib/format.js";
import { icon } from "../lib/icons.js";

const HINT = "Point at a number to see the files, or press it to keep them in view.";
const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });

export class Conflicts {
  /** @param {import("../link/store.js").Store} store @param {(name: string) => void} onOpen a worktree is to be shown */
  constructor(store, onOpen) {
    this.store = store;
    this.onOpen = onOpen;
    /** The pair whose files are shown. @type {string|null} */
    this.selected = null;
    this.summary = h("p", { class: "wb-muted" });
    this.caption = h("caption", { class: "wb-sr" }, "Predicted conflicts; each cell has the number of files");
    this.table = h("table", {
      class: "wb-matrix",
      on: {
        keydown: (event) => this.onKey(event),
        focusin: (event) => this.showHint(event.target),
        mouseover: (event) => this.showHint(event.target),
      },
    });
    this.files = h("div", {});
    this.box = h("div", { class: "wb-matrix-box" }, this.table);
    this.hint = h("p", { class: "wb-muted wb-matrix-hint" }, HINT);
    this.pair = h("div", { class: "wb-box wb-stack wb-pair", id: freshId("pair"), hidden: true });
    this.element = h("div", { class: "wb-stack" }, this.summary, this.files, this.box, this.hint, this.pair);
  }

  /** The pairs that would conflict; the row without an id, which holds the number of checks, is not one. */
  get pairs() {
    return [...this.store.tables.conflicts.values()].filter(({ id }) => id !== "");
  }

  update() {
    const { pairs } = this;
    const { tables } = this.store;
    const checked = tables.conflicts.get("");
    const key = JSON.stringify([pairs, checked, tables.worktrees.size]);
    if (key === this.drawn) return;
    this.drawn = key;
    setText(this.summary, this.summaryText(pairs, checked));
    this.files.replaceChildren(...(pairs.length ? [fileTable(pairs, this.onOpen)] : []));
    this.box.hidden = this.hint.hidden = !pairs.length;
    this.drawTable(pairs);
    this.drawPair(pairs.find(({ id }) => id === this.selected));
  }

  summaryText(pairs, checked) {
    if (checked?.error) return checked.error.message;
    if (!checked) return "";
    const total = this.store.tables.worktrees.size;
    if (!total) return "There are no worktrees.";
    if (!pairs.length) return "No conflicts are predicted, neither between worktrees nor with their targets.";
    const inConflict = new Set(pairs.flatMap(({ one, other, is_target: target }) => (target ? [one] : [one, other])));
    const others = total - inConflict.size;
    const rest = ` ${plural(others, "other worktree")} would not; ${others === 1 ? "it is" : "they are"} not listed.`;
    return `${plural(pairs.length, "pair")} would conflict if integrated now.${others > 0 ? rest : ""}`;
  }

  drawTable(pairs) {
    const { names, targets, cells } = layout(pairs);
    const columns = [...targets.map((name) => [name, true]), ...names.map((name) => [name, false])];
    const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset.pair : null;
    const head = h("tr", {}, h("td", {}), ...columns.map(([name, isTarget]) => columnHead(name, isTarget)));
    const rows = names.map((name) => {
      const line = columns.map(([other, isTarget]) => this.cell(cells.get(`${name}\n${other}`), name, other, isTarget));
      return h("tr", {}, h("th", { scope: "row", title: name }, name), ...line);
    });
    this.table.replaceChildren(this.caption, h("thead", {}, head), h("tbody", {}, ...rows));
    if (focused) this.table.querySelector(`[data-pair="${CSS.escape(focused)}"]`)?.focus();
  }

  cell(pair, name, other, isTarget) {
    const same = !isTarget && name === other;
    if (!pair || pair.is_target !== isTarget) {
      const attributes = { class: same ? "wb-matrix-same" : null };
      return h("td", attributes, h("span", { class: "wb-sr" }, same ? "itself" : "none"));
    }
    const label = `${name} and ${other}: ${plural(pair.files.length, "file")}`;
    const open = button(String(pair.files.length), "wb-matrix-cell", () => this.select(pair), label);
    setAttribute(open, "title", shortList(pair.files, 8));
    open.dataset.pair = pair.id;
    open.setAttribute("aria-controls", this.pair.id);
    open.setAttribute("aria-expanded", String(pair.id === this.selected));
    return h("td", {}, open);
  }

  select(pair) {
    this.selected = this.selected === pair.id ? null : pair.id;
    for (const cell of this.table.querySelectorAll(".wb-matrix-cell")) {
      cell.setAttribute("aria-expanded", String(cell.dataset.pair === this.selected));
    }
    this.drawPair(this.selected ? pair : null);
  }

  /** The files of the cell under the pointer, or with the focus. */
  showHint(target) {
    const pair = this.store.tables.conflicts.get(target.closest?.(".wb-matrix-cell")?.dataset.pair);
    if (pair) setText(this.hint, `${pair.one} and ${pair.other}: ${shortList(pair.files, 4)}`);
  }

  drawPair(pair) {
    this.pair.hidden = !pair;
    if (!pair) return;
    const open = (name) => button(`Show ${name}`, "wb-button", () => this.onOpen(name));
    const target = pair.is_target ? ", its target," : "";
    const text = `${target} change the same lines of ${plural(pair.files.length, "file")}`;
    this.pair.replaceChildren(
      h(
        "div",
        { class: "wb-message" },
        icon("warning"),
        h("span", {}, h("strong", {}, pair.one), " and ", h("strong", {}, pair.other), text),
      ),
      h("ul", { class: "wb-list" }, ...pair.files.map((path) => h("li", {}, h("code", { class: "wb-wrap" }, path)))),
      h("div", { class: "wb-line" }, open(pair.one), pair.is_target ? null : open(pair.other)),
    );
  }

  /** Arrows move from number to number; Escape closes the files. */
  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && this.selected) {
      event.stopPropagation();
      this.selected = null;
      this.drawn = null;
      this.update();
    } else if (event.key in STEPS) {
      event.preventDefault();
      let cell = neighbour(event.target.closest("td"), STEPS[event.key]);
      while (cell && !cell.querySelector("button")) cell = neighbour(cell, STEPS[event.key]);
      cell?.querySelector("button").focus();
    }
  }
}

/** The rows and columns of the table, and the pair of each cell. */
function layout(pairs) {
  const names = new Set();
  const targets = new Set();
  const cells = new Map();
  for (const pair of pairs) {
    names.add(pair.one);
    cells.set(`${pair.one}\n${pair.other}`, pair);
    if (pair.is_target) targets.add(pair.other);
    else {
      names.add(pair.other);
      cells.set(`${pair.other}\n${pair.one}`, pair);
    }
  }
  return { names: [...names].sort(byName), targets: [...targets].sort(byName), cells };
}

function columnHead(name, isTarget) {
  const title = isTarget ? `${name}, a target` : name;
  return h("th", { scope: "col", class: isTarget ? "wb-matrix-target" : null, title }, h("span", {}, name));
}

/** The next cell in a direction. */
function neighbour(cell, [row, column]) {
  const line = cell.parentElement;
  const body = [...line.parentElement.children];
  return body[body.indexOf(line) + row]?.children[cell.cellIndex + column];
}

/**
 * The files in conflict, those of the most pairs first. Pure.
 * @param {any[]} pairs
 * @returns {{path: string, targets: string[], worktrees: string[], pairs: number}[]}
 */
function conflictsByFile(pairs) {
  const byPath = new Map();
  for (const { one, other, is_target: isTarget, files } of pairs) {
    for (const path of files) {
      if (!byPath.has(path)) byPath.set(path, { path, targets: new Set(), worktrees: new Set(), pairs: 0 });
      const file = byPath.get(path);
      file.pairs += 1;
      file.worktrees.add(one);
      (isTarget ? file.targets : file.worktrees).add(other);
    }
  }
  return [...byPath.values()]
    .map((file) => ({
      ...file,
      targets: [...file.targets].sort(byName),
      worktrees: [...file.worktrees].sort(byName),
    }))
    .sort((a, b) => b.pairs - a.pairs || byName(a.path, b.path));
}

/** A table of them. @param {any[]} pairs @param {(name: string) => void} onOpen a worktree is to be shown */
function fileTable(pairs, onOpen) {
  const heads = ["File", "Changed on the same lines in", "Pairs"].map((name) => h("th", { scope: "col" }, name));
  const rows = conflictsByFile(pairs).map((file) => line(file, onOpen));
  const attributes = { class: "wb-table wb-conflict-files", "aria-label": "Conflicts by file" };
  return h("table", attributes, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
}

function line({ path, targets, worktrees, pairs }, onOpen) {
  const links = worktrees.map((name) => button(name, "wb-link", () => onOpen(name), `Open ${name} (${path})`));
  const marks = targets.map((name) => h("strong", { title: `${name}, a target` }, name));
  return h(
    "tr",
    { class: "wb-table-row" },
    h("th", { scope: "row", class: "wb-conflict-file", title: path }, h("code", {}, path)),
    h("td", {}, h("span", { class: "wb-line" }, ...marks, ...links)),
    h("td", { class: "wb-digits" }, plural(pairs, "pair")),
  );
}
