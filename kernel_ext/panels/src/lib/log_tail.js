/** The end of a log that grows. Pure. */

const PAGE = 500;

/** @typedef {{id: number}} Line */

/** A log whose lines have ids: read forward as it grows, and backward on request. */
export class LogTail {
  /**
   * @param {(range: {cursor: number, limit: number, newest_first: boolean}) => Promise<Line[]>} load reads lines after
   *   the cursor, or before it; it may reject, and the next call goes on where this one stopped
   * @param {number} step lines to read at first, and at a time when reading backward
   */
  constructor(load, step) {
    this.load = load;
    this.step = step;
    /** @type {Line[]} without a gap, the newest last */
    this.lines = [];
    /** Whether the first line of the log is among them. */
    this.complete = false;
  }

  /** Read the lines that are new; at first the last ones. */
  async readNew() {
    if (this.lines.length === 0) {
      await this.readEarlier();
      return;
    }
    for (let size = PAGE; size === PAGE;) {
      const cursor = this.lines.at(-1).id;
      const lines = await this.load({ cursor, limit: PAGE, newest_first: false });
      if (cursor !== this.lines.at(-1).id) return; // another call has read them
      this.lines.push(...lines);
      size = lines.length;
    }
  }

  /** Read the lines before the first one that is known. */
  async readEarlier() {
    const first = this.lines[0]?.id ?? 0;
    const lines = await this.load({ cursor: first, limit: this.step + 1, newest_first: true });
    if (first !== (this.lines[0]?.id ?? 0)) return; // another call has read them
    this.complete = lines.length <= this.step;
    this.lines.unshift(...lines.slice(0, this.step).reverse());
  }
}

/**
 * The lines of a newer tail that come after the known ones; the whole tail when the two do not overlap.
 * @param {string[]} lines @param {string[]} tail @returns {string[]}
 */
export function newLines(lines, tail) {
  for (let size = Math.min(lines.length, tail.length); size > 0; size -= 1) {
    const start = lines.length - size;
    if (tail.every((line, at) => at >= size || line === lines[start + at])) return tail.slice(size);
  }
  return tail;
}
