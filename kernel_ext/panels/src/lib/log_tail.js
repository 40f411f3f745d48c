/** The end of a log, in pages: what is new is read on, what was earlier is read back when somebody asks for it. Pure. */

const PAGE = 500;

/** @typedef {{id: number}} Line */

export class LogTail {
  /**
   * @param {(range: {cursor: number, limit: number, newest_first: boolean}) => Promise<Line[]|null>} ask null when it failed
   * @param {number} step lines that are read at first, and read back at a time
   */
  constructor(ask, step) {
    this.ask = ask;
    this.step = step;
    /** @type {Line[]} from the oldest one that was read to the newest */
    this.lines = [];
    /** Whether nothing comes before them. */
    this.whole = false;
  }

  /** Read what is new; at first the end. */
  async read() {
    if (this.lines.length === 0) return void (await this.readBack());
    for (let page = PAGE; page === PAGE;) {
      const cursor = this.lines.at(-1).id;
      const found = (await this.ask({ cursor, limit: PAGE, newest_first: false })) ?? [];
      if (cursor !== this.lines.at(-1).id) return; // another reading was faster
      this.lines.push(...found);
      page = found.length;
    }
  }

  /** Read what comes right before; whether it is here now. */
  async readBack() {
    const first = this.lines[0]?.id ?? 0;
    const found = await this.ask({ cursor: first, limit: this.step + 1, newest_first: true });
    if (found === null || first !== (this.lines[0]?.id ?? 0)) return false;
    this.whole = found.length <= this.step;
    this.lines.unshift(...found.slice(0, this.step).reverse());
    return true;
  }
}
