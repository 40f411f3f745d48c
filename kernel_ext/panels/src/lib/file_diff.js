/** One file of a diff: its name and counts, and its lines, drawn when it comes near the visible part. */

import { colouredWords } from "./blocks.js";
import { button } from "./controls.js";
import { freshId, h, setAttribute, setText, textNode } from "./dom.js";
import { plural } from "./format.js";
import { icon } from "./icons.js";
import { languageOf } from "./languages.js";
import { hunks } from "./patch.js";

const LINE_PX = 18;
/** Lines drawn at first; five times as many are added at a time. */
const STEP = 1_000;
/** A file with more lines is closed at first. */
const LONG = 400;
const LABELS = {
  A: "added",
  D: "deleted",
  M: "changed",
  R: "renamed",
  T: "type changed",
  C: "copied",
  U: "unmerged",
};
const SIDES = { "+": "added", "-": "removed" };

export class FileDiff {
  /**
   * @param {any} file of get_worktree_diff
   * @param {{readAll: (path: string) => Promise<any>, highlighter: () => Promise<import("../link/assets.js").Highlight>}} on
   *   `readAll` reads one file without a limit, or gives null
   * @param {(file: FileDiff) => void} [on.drawn] its lines were drawn
   */
  constructor(file, on) {
    this.on = on;
    this.limit = STEP;
    this.twisty = h("span", { class: "wb-twisty" }, icon("twisty"));
    this.name = h("span", { class: "wb-diff-path wb-wrap" });
    this.label = h("span", { class: "wb-diff-kind" });
    this.counts = h("span", { class: "wb-diff-counts" });
    this.body = h("div", { id: freshId("lines") });
    this.head = button("", "wb-diff-head", () => this.toggle());
    this.head.append(this.twisty, this.name, this.label, this.counts);
    this.head.setAttribute("aria-controls", this.body.id);
    this.element = h("section", { class: "wb-diff-file" }, this.head, this.body);
    this.update(file);
    this.toggle(file.status !== "D" && this.lines <= LONG);
  }

  get path() {
    return this.file.path;
  }

  get open() {
    return !this.body.hidden;
  }

  update(file) {
    const { path, old_path: before, status, added, removed, binary, patch } = file;
    this.file = file;
    this.drawn = false;
    this.hunks = patch ? hunks(patch) : [];
    this.lines = this.hunks.reduce((sum, { lines }) => sum + lines.length + 1, 0);
    const moved = before && before !== path ? [h("span", { class: "wb-muted" }, `${before} → `)] : [];
    this.name.replaceChildren(...moved, ...pathNodes(path));
    setText(this.label, status === "M" ? "" : (LABELS[status] ?? ""));
    this.counts.replaceChildren(...countNodes(file));
    const counts = binary ? "binary" : `${plural(added ?? 0, "line")} added, ${removed ?? 0} removed`;
    setAttribute(this.head, "aria-label", `${path}, ${LABELS[status] ?? "changed"}, ${counts}`);
    setAttribute(this.element, "aria-label", path);
  }

  toggle(open = !this.open) {
    this.body.hidden = !open;
    this.head.setAttribute("aria-expanded", String(open));
    this.twisty.classList.toggle("wb-turned", open);
    // The height is reserved before the lines are drawn: nothing moves when they are.
    if (!this.drawn) this.body.style.minHeight = `${Math.min(this.lines, STEP) * LINE_PX}px`;
    if (open && this.near) this.draw();
  }

  /** It is on screen, or will soon be. */
  approach() {
    this.near = true;
    if (this.open) this.draw();
  }

  draw() {
    if (this.drawn) return;
    this.drawn = true;
    this.body.style.minHeight = "";
    const { patch } = this.file;
    this.body.replaceChildren(...(patch === null || patch === undefined ? [this.noLines()] : this.drawHunks()));
    this.on.drawn?.(this);
  }

  /** The row of a line, if it is drawn. @param {"new"|"old"} side @param {number} number */
  rowOf(side, number) {
    const rows = [...this.body.querySelectorAll(".wb-diff-line")];
    return rows.find(({ line }) => line[side] === number && (side === "old" || line.kind !== "-")) ?? null;
  }

  noLines() {
    if (this.file.binary) return note("A binary file: there are no lines to compare.");
    return note("Too large to show with the others. ", this.readAllButton());
  }

  readAllButton() {
    const label = "Show this file";
    const link = button(label, "wb-link", async () => {
      setText(link, "Loading…");
      const file = await this.on.readAll(this.path);
      setText(link, label);
      if (!file) return;
      this.update(file.patch === null ? { ...file, truncated: false } : file);
      if (file.patch === null && !file.binary)
        this.body.replaceChildren(note("Too large to show here. Use git to see it."));
      else this.draw();
      this.head.focus();
    });
    return link;
  }

  drawHunks() {
    const table = h("table", { class: "wb-diff-lines", "aria-label": `Changes in ${this.path}` });
    let left = this.limit;
    for (const hunk of this.hunks) {
      if (left <= 0) break;
      const drawn = new DrawnHunk(hunk, left);
      table.append(drawn.element);
      this.colour(drawn);
      left -= hunk.lines.length;
    }
    return [h("div", { class: "wb-diff-scroll", tabindex: -1 }, table), ...this.notes(left)];
  }

  /** Colour the lines as soon as the highlighter has come. Without it they stay plain. */
  async colour(drawn) {
    const language = drawn.language ?? languageOf(this.path);
    if (!language) return;
    try {
      drawn.colour(await this.on.highlighter(), language);
    } catch {
      // They are readable without colours, and the next diff tries again.
    }
  }

  notes(left) {
    const { status, truncated } = this.file;
    const more = button("Show more", "wb-link", () => this.showMore());
    const same = status === "R" ? "Renamed; the content is the same." : "The content is the same.";
    return [
      left < 0 ? note(`${plural(-left, "more line")} in this part, and what follows. `, more) : null,
      this.lines ? null : note(same),
      truncated ? note("The rest is too large to show with the others. ", this.readAllButton()) : null,
    ].filter(Boolean);
  }

  showMore() {
    this.limit += 5 * STEP;
    this.drawn = false;
    this.draw();
  }
}

/** A hunk on screen: plain at first, its words can be coloured later. */
class DrawnHunk {
  /** @param {import("./patch.js").Hunk} hunk @param {number} limit lines to draw */
  constructor({ context, lines }, limit) {
    this.lines = lines;
    const [, kind] = /^cell \d+, (\w+)/.exec(context) ?? [];
    /** That of a cell of a notebook. */
    this.language = kind && (kind === "code" ? "python" : "markdown");
    /** The element with the text of each drawn line. */
    this.texts = new Map();
    const first = lines.find((line) => line.new)?.new ?? lines[0]?.old;
    const place = `line ${first?.toLocaleString("en") ?? 0}${context ? ` · ${context}` : ""}`;
    const head = h("tr", { class: "wb-diff-hunk" }, h("td", { colspan: 3 }, place));
    this.element = h("tbody", {}, head, ...lines.slice(0, limit).map((line) => this.row(line)));
  }

  row(line) {
    const { kind, old, new: now, text, unended } = line;
    const side = SIDES[kind];
    const content = h("span", {}, text);
    this.texts.set(line, content);
    const ending = h("span", { class: "wb-muted", title: "The file ends without a line feed" }, " (no line feed)");
    const element = h(
      "tr",
      { class: side ? `wb-diff-line wb-diff-${side}` : "wb-diff-line" },
      h("td", { class: "wb-diff-number", "data-number": old ?? "" }),
      h("td", { class: "wb-diff-number", "data-number": now ?? "" }),
      h(
        "td",
        { class: "wb-diff-text", "data-mark": kind },
        side ? h("span", { class: "wb-sr" }, `${side}: `) : null,
        content,
        unended ? ending : null,
      ),
    );
    element.line = line;
    return element;
  }

  /** Each side is coloured as the text that it is: the new one with its context, the old one for removed lines. */
  colour(highlight, language) {
    for (const [hidden, shows] of [
      ["-", (kind) => kind !== "-"],
      ["+", (kind) => kind === "-"],
    ]) {
      const side = this.lines.filter(({ kind }) => kind !== hidden);
      const words = highlight(
        side.map(({ text }) => text),
        language,
      );
      if (!words) return;
      side.forEach(
        (line, at) => shows(line.kind) && this.texts.get(line)?.replaceChildren(...colouredWords(words[at])),
      );
    }
  }
}

function note(...content) {
  return h("p", { class: "wb-diff-note" }, ...content);
}

/** "+3 −1", or "binary". */
export function countNodes({ added, removed, binary }) {
  if (binary || added === null) return [h("span", { class: "wb-muted" }, "binary")];
  return [
    h("span", { class: "wb-added" }, `+${(added ?? 0).toLocaleString("en")}`),
    h("span", { class: "wb-removed" }, `−${(removed ?? 0).toLocaleString("en")}`),
  ];
}

/** A path with its folder muted. @param {string} path */
export function pathNodes(path) {
  const at = path.lastIndexOf("/") + 1;
  return [h("span", { class: "wb-muted" }, path.slice(0, at)), textNode(path.slice(at))];
}
