/** The calls of tools that are known, the newest first: a page of them, which newer ones join. Pure. */

/** @typedef {{call_id: string, state: string, ended_at: string|null, [more: string]: any}} Call ids sort by time */

export class CallList {
  constructor() {
    /** @type {Map<string, Call>} by id */
    this.calls = new Map();
    /** The cursor of the calls before them; null: there are none. @type {string|null} */
    this.cursor = null;
  }

  /** Take the newest page. If calls are missing between it and those that are known, these are forgotten. @param {{calls: Call[], next_cursor: string|null}} page */
  takeNewest({ calls, next_cursor: cursor }) {
    const isJoined = calls.some(({ call_id: id }) => this.calls.has(id));
    if (!isJoined || !this.calls.size) {
      this.calls = new Map();
      this.cursor = cursor;
    }
    this.put(calls);
  }

  /** Take the page after the cursor. */
  takeEarlier({ calls, next_cursor: cursor }) {
    this.put(calls);
    this.cursor = cursor;
  }

  /** Take newer versions of calls that are known. @param {Call[]} calls */
  refresh(calls) {
    this.put(calls.filter(({ call_id: id }) => this.calls.has(id)));
  }

  /** Calls that are not in these, and had not ended when they were read. @param {Call[]} calls */
  openBesides(calls) {
    const read = new Set(calls.map(({ call_id: id }) => id));
    return [...this.calls.values()].filter((call) => !call.ended_at && !read.has(call.call_id));
  }

  put(calls) {
    for (const call of calls) this.calls.set(call.call_id, call);
  }
}
