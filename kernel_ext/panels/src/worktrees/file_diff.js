/** One file of a difference: its name and counts, and its lines, coloured; drawn when it comes near. */

import { coloured, languageOf } from "../lib/colours.js";
import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { hunks } from "../lib/patch.js";

const LINE = 18;
const STEP = 1_000;
const LONG = 400;
const WORDS = { A: "added", D: "deleted", M: "changed", R: "renamed", T: "kind changed", C: "copied", U: "unmerged" };
const SIDES = { "+": "added", "-": "removed" };

export class FileDiff {
  /**
   * @param {any} file of get_worktree_diff
   * @param {{whole: (path: string) => Promise<any>}} on reads a file again, without the others
   */
  constructor(file, on) {
    this.on = on;
    this.shown = STEP;
    this.twisty = h("span", { class: "wb-twisty" }, icon("twisty"));
    this.name = h("span", { class: "wb-diff-path wb-wrap" });
    this.word = h("span", { class: "wb-diff-kind" });
    this.counts = h("span", { class: "wb-diff-counts" });
    this.body = h("div", { class: "wb-diff-body", id: freshId("lines") });
    this.head = button("", "wb-diff-head", () => this.toggle());
    this.head.append(this.twisty, this.name, this.word, this.counts);
    this.head.setAttribute("aria-controls", this.body.id);
    this.element = h("section", { class: "wb-diff-file" }, this.head, this.body);
    this.take(file);
    this.toggle(file.status !== "D" && this.lines <= LONG);
  }

  get path() {
    return this.file.path;
  }

  take(file) {
    this.file = file;
    this.drawn = false;
    this.hunks = file.patch ? hunks(file.patch) : [];
    this.lines = this.hunks.reduce((sum, { lines }) => sum + lines.length + 1, 0);
    this.name.replaceChildren(
      ...(file.old_path && file.old_path !== file.path
        ? [h("span", { class: "wb-muted" }, `${file.old_path} → `)]
        : []),
      ...named(file.path),
    );
    setText(this.word, file.status === "M" ? "" : (WORDS[file.status] ?? ""));
    this.counts.replaceChildren(...countsOf(file));
    this.head.setAttribute(
      "aria-label",
      `${file.path}, ${WORDS[file.status] ?? "changed"}, ${file.binary ? "binary" : `${counted(file.added ?? 0, "line")} added, ${file.removed ?? 0} removed`}`,
    );
    this.element.setAttribute("aria-label", file.path);
  }

  get open() {
    return !this.body.hidden;
  }

  toggle(open = !this.open) {
    this.body.hidden = !open;
    this.head.setAttribute("aria-expanded", String(open));
    this.twisty.classList.toggle("wb-turned", open);
    // Its room is kept before it is drawn: nothing slides when it comes near.
    if (!this.drawn) this.body.style.minHeight = `${Math.min(this.lines, STEP) * LINE}px`;
    if (open && this.near) this.draw();
  }

  /** It is, or will soon be, on screen. */
  approach() {
    this.near = true;
    if (this.open) this.draw();
  }

  draw() {
    if (this.drawn) return;
    this.drawn = true;
    this.body.style.minHeight = "";
    this.body.replaceChildren(
      ...(this.file.patch === null || this.file.patch === undefined ? [this.without()] : this.drawnHunks()),
    );
  }

  /** What is said when there are no lines to show. */
  without() {
    if (this.file.binary) return h("p", { class: "wb-diff-note" }, "A binary file: it has no lines to compare.");
    return h("p", { class: "wb-diff-note" }, "Too large to show with the others. ", this.more("Show this file"));
  }

  more(label) {
    const link = button(label, "wb-link", async () => {
      setText(link, "Reading…");
      const file = await this.on.whole(this.path);
      setText(link, label);
      if (!file) return;
      this.take(file.patch === null ? { ...file, truncated: false } : file);
      if (file.patch === null && !file.binary)
        this.body.replaceChildren(h("p", { class: "wb-diff-note" }, "Too large to show here; look at it with git."));
      else this.draw();
      this.head.focus();
    });
    return link;
  }

  drawnHunks() {
    const language = languageOf(this.path);
    const table = h("table", { class: "wb-diff-lines", "aria-label": `Changes in ${this.path}` });
    let left = this.shown;
    for (const hunk of this.hunks) {
      if (left <= 0) break;
      table.append(drawnHunk(hunk, language, left));
      left -= hunk.lines.length;
    }
    const scroller = h("div", { class: "wb-diff-scroll", tabindex: -1 }, table);
    const parts = [scroller];
    if (left < 0)
      parts.push(
        h(
          "p",
          { class: "wb-diff-note" },
          `${counted(-left, "more line")} of this part, and what follows. `,
          button("Show more", "wb-link", () => this.showMore()),
        ),
      );
    if (!this.lines)
      parts.push(
        h(
          "p",
          { class: "wb-diff-note" },
          this.file.status === "R" ? "Renamed; its content is the same." : "Its content is the same.",
        ),
      );
    if (this.file.truncated)
      parts.push(
        h(
          "p",
          { class: "wb-diff-note" },
          "The rest is too large to show with the others. ",
          this.more("Show this file"),
        ),
      );
    return parts;
  }

  showMore() {
    this.shown += 5 * STEP;
    this.drawn = false;
    this.draw();
  }
}

/** "+3 −1", or what stands for it. */
export function countsOf({ added, removed, binary }) {
  if (binary || added === null) return [h("span", { class: "wb-muted" }, "binary")];
  return [
    h("span", { class: "wb-added" }, `+${(added ?? 0).toLocaleString("en")}`),
    h("span", { class: "wb-removed" }, `−${(removed ?? 0).toLocaleString("en")}`),
  ];
}

/** A path, its folder fainter than its name. @param {string} path */
export function named(path) {
  const at = path.lastIndexOf("/") + 1;
  return [h("span", { class: "wb-muted" }, path.slice(0, at)), path.slice(at)];
}

function drawnHunk({ about, lines }, language, most) {
  const side = (kind) => {
    const ours = lines.filter((line) => line.kind !== kind);
    const words = coloured(
      ours.map(({ text }) => text),
      language,
    );
    return new Map(ours.map((line, at) => [line, words[at] ?? []]));
  };
  const [after, before] = [side("-"), side("+")];
  const first = lines.find((line) => line.new)?.new ?? lines[0]?.old;
  const head = h(
    "tr",
    { class: "wb-diff-hunk" },
    h("td", { colspan: 3 }, `line ${first?.toLocaleString("en") ?? 0}${about ? ` · ${about}` : ""}`),
  );
  return h(
    "tbody",
    {},
    head,
    ...lines.slice(0, most).map((line) => drawnLine(line, (line.kind === "-" ? before : after).get(line))),
  );
}

function drawnLine({ kind, old, new: now, unended }, words) {
  const side = SIDES[kind];
  return h(
    "tr",
    { class: side ? `wb-diff-${side}` : null },
    h("td", { class: "wb-diff-number", "data-number": old ?? "" }),
    h("td", { class: "wb-diff-number", "data-number": now ?? "" }),
    h(
      "td",
      { class: "wb-diff-text", "data-mark": kind },
      side ? h("span", { class: "wb-sr" }, `${side}: `) : null,
      ...words.map(({ text, kind: colour }) => (colour ? h("span", { class: colour }, text) : text)),
      unended
        ? h("span", { class: "wb-muted", title: "No line feed at the end of the file" }, " (no line feed)")
        : null,
    ),
  );
}
