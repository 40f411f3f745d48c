/** What the kernel told this panel: tables of rows with a version. Pure; knows neither comm nor DOM. */

/**
 * @typedef {Record<string, any> & {id: any}} Row
 * @typedef {Record<string, Map<any, Row>>} Tables
 * @typedef {Record<string, {set: Row[], gone: any[]}>} Change
 */

const TABLES = [
  "approvals",
  "personas",
  "agents",
  "projects",
  "sessions",
  "teams",
  "rules",
  "tools",
  "allowlist",
  "tasks",
  "worktrees",
  "conflicts",
  "processes",
];

export class Store {
  constructor() {
    /** @type {Tables} */
    this.tables = Object.fromEntries(TABLES.map((name) => [name, new Map()]));
    /** @type {number|null} null until a first snapshot came */
    this.version = null;
    /** What the last message was about besides its rows: ids of tasks, or null for all of them. @type {Set<number>|null} */
    this.touched = null;
    /** The tables that came so far; the slow ones come after the snapshot. @type {Set<string>} */
    this.known = new Set();
    this.listeners = new Set();
  }

  /** Take everything anew. @param {number} version @param {Record<string, Row[]>} rows */
  takeSnapshot(version, rows) {
    for (const name of new Set([...Object.keys(this.tables), ...Object.keys(rows)])) {
      this.tables[name] = new Map((rows[name] ?? []).map((row) => [row.id, row]));
    }
    this.version = version;
    this.touched = null;
    this.known = new Set(Object.keys(rows));
    this.tell();
  }

  /**
   * Make a change, if it applies to what is known.
   * @param {number} base @param {number} version @param {Change} change
   * @param {number[]} [touched] tasks that something happened to
   * @returns {boolean} false when something was missed and a snapshot is needed
   */
  takeDiff(base, version, change, touched = []) {
    if (base !== this.version) return false;
    applyChange(this.tables, change);
    this.version = version;
    for (const name of Object.keys(change)) this.known.add(name);
    this.touched = new Set(touched);
    this.tell();
    return true;
  }

  /** Call `listener` after every change until `signal` aborts. */
  listen(listener, signal) {
    this.listeners.add(listener);
    signal?.addEventListener("abort", () => this.listeners.delete(listener), { once: true });
  }

  /** Call all listeners. */
  tell() {
    for (const listener of this.listeners) listener();
  }
}

/** Make a change to tables, in place. @param {Tables} tables @param {Change} change */
export function applyChange(tables, change) {
  for (const [name, { set, gone }] of Object.entries(change)) {
    const table = (tables[name] ??= new Map());
    for (const id of gone) table.delete(id);
    for (const row of set) table.set(row.id, row);
  }
}
