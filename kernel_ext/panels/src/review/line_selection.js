/**
 * Choosing lines of a diff to comment on: a press on their number, Shift extends to a range. With the keyboard: the down
 * arrow on a file's name goes to its lines, Shift and the arrows extend, Enter or c comments, Escape goes back.
 */

const LINES = "tr.wb-diff-line";

export class LineSelection {
  /**
   * @param {HTMLElement} body with the files of a diff
   * @param {{canComment: (line: any) => boolean, comment: (chosen: Chosen) => void}} on
   *
   * @typedef {{file: any, rows: HTMLElement[], side: "new"|"old", first: number, last: number, cell?: string}} Chosen
   */
  constructor(body, on) {
    this.on = on;
    /** @type {HTMLElement[]} */
    this.rows = [];
    body.addEventListener("click", (event) => this.onClick(event));
    body.addEventListener("keydown", (event) => this.onKey(event));
  }

  clear() {
    for (const row of this.rows) row.classList.remove("wb-chosen");
    this.rows = [];
    this.anchor = null;
  }

  onClick(event) {
    const row = event.target.closest(".wb-diff-number")?.closest(LINES);
    if (!row) return;
    this.choose(row, event.shiftKey);
    this.comment();
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const row = event.target.closest(LINES);
    if (!row) return this.enter(event);
    const rows = linesOf(row);
    const to = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (to) this.move(rows[rows.indexOf(row) + to], event);
    else if (event.target === row && (event.key === "Enter" || event.key === "c")) {
      event.preventDefault();
      if (!this.rows.includes(row)) this.choose(row, false);
      this.comment();
    } else if (event.target === row && event.key === "Escape") {
      event.preventDefault();
      this.clear();
      fileOf(row).head.focus();
    }
    return undefined;
  }

  /** From the name of a file to its first line. */
  enter(event) {
    const head = event.target.closest(".wb-diff-head");
    const first = head?.parentElement.querySelector(LINES);
    if (event.key !== "ArrowDown" || !first) return;
    event.preventDefault();
    focus(first);
  }

  move(row, event) {
    if (event.target.matches("textarea, input, select")) return;
    event.preventDefault();
    if (!row) return;
    if (event.shiftKey) this.choose(row, true, event.target.closest(LINES));
    else this.clear();
    focus(row);
  }

  /** @param {HTMLElement} row @param {boolean} extend from where the selection began @param {HTMLElement} [from] */
  choose(row, extend, from = this.anchor) {
    const anchor = extend && this.anchor ? this.anchor : extend && from ? from : row;
    this.clear();
    this.anchor = fileOf(anchor) === fileOf(row) ? anchor : row;
    const rows = linesOf(row);
    const ends = [rows.indexOf(this.anchor), rows.indexOf(row)].sort((a, b) => a - b);
    this.rows = rows.slice(ends[0], ends[1] + 1);
    for (const row of this.rows) row.classList.add("wb-chosen");
  }

  /** Comment on rows, which are those of a cell. */
  commentOn(rows, cell) {
    this.choose(rows[0], false);
    this.choose(rows.at(-1), true);
    this.comment(cell);
  }

  /** @param {string} [cell] the cell that the chosen rows are of, if the comment is about it */
  comment(cell) {
    const lines = this.rows.map((row) => row.line).filter((line) => this.on.canComment(line));
    if (!lines.length) return;
    const side = lines.some((line) => line.kind !== "-") ? "new" : "old";
    const numbers = lines.map((line) => (side === "old" || line.kind !== "-" ? line[side] : null)).filter(Boolean);
    const place = { side, first: Math.min(...numbers), last: Math.max(...numbers), cell };
    this.on.comment({ file: fileOf(this.rows[0]), rows: this.rows, ...place });
  }
}

function linesOf(row) {
  return [...row.closest("table").querySelectorAll(LINES)];
}

function fileOf(row) {
  return row.closest(".wb-diff-file").file;
}

function focus(row) {
  row.tabIndex = -1;
  row.focus();
}
