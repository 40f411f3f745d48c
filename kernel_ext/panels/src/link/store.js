/** The panel's copy of the project: tables of rows with a version, as the kernel sends them. Knows neither comm nor DOM. */

/**
 * @typedef {Record<string, any> & {id: any}} Row
 * @typedef {Record<string, Map<any, Row>>} Tables
 * @typedef {Record<string, {set: Row[], removed: any[]}>} Change
 */

const TABLES = [
  "approvals",
  "personas",
  "agents",
  "definitions",
  "catalogue",
  "permissions",
  "servers",
  "conversations",
  "personalities",
  "network",
  "peers",
  "projects",
  "sessions",
  "teams",
  "rules",
  "tools",
  "allowlist",
  "tasks",
  "worktrees",
  "closed",
  "conflicts",
  "processes",
  "unattended",
  "holds",
  "saved_views",
  "change_requests",
  "untrusted",
];

export class Store {
  constructor() {
    /** @type {Tables} */
    this.tables = Object.fromEntries(TABLES.map((name) => [name, new Map()]));
    /** @type {number|null} null until the first snapshot has come */
    this.version = null;
    /** What the events behind the last message were about, such as "task:12"; null: perhaps everything. @type {Set<string>|null} */
    this.touched = null;
    /** The tables that have come so far; slow ones come after the first snapshot. @type {Set<string>} */
    this.loaded = new Set();
    /** The path of the notebook that shows the panel, where the page tells it. @type {string|null} */
    this.notebook = null;
    this.listeners = new Set();
  }

  /** Replace everything. @param {number} version @param {Record<string, Row[]>} rows */
  takeSnapshot(version, rows) {
    for (const name of new Set([...Object.keys(this.tables), ...Object.keys(rows)])) {
      this.tables[name] = new Map((rows[name] ?? []).map((row) => [row.id, row]));
    }
    this.version = version;
    this.touched = null;
    this.loaded = new Set(Object.keys(rows));
    this.notify();
  }

  /**
   * Apply a change to the version it was made for.
   * @param {number} base @param {number} version @param {Change} change
   * @param {string[]} [touched] subjects of the events behind it, whether or not their rows changed
   * @returns {boolean} false when a message was missed: only a snapshot can repair that
   */
  takeDiff(base, version, change, touched = []) {
    if (base !== this.version) return false;
    applyChange(this.tables, change);
    this.version = version;
    this.touched = new Set(touched);
    for (const name of Object.keys(change)) this.loaded.add(name);
    this.notify();
    return true;
  }

  /** Whether the last message may concern any of these subjects. @param {...string} subjects */
  concerns(...subjects) {
    return this.touched === null || subjects.some((subject) => this.touched.has(subject));
  }

  /** Whether the last message may concern anything of these kinds, such as "task". @param {...string} nouns */
  concernsAny(...nouns) {
    return this.touched === null || [...this.touched].some((subject) => nouns.includes(subject.split(":")[0]));
  }

  /** Call `listener` after every change until `signal` aborts. */
  subscribe(listener, signal) {
    this.listeners.add(listener);
    signal?.addEventListener("abort", () => this.listeners.delete(listener), { once: true });
  }

  notify() {
    for (const listener of this.listeners) listener();
  }
}

/** Apply a change to tables, in place. @param {Tables} tables @param {Change} change */
function applyChange(tables, change) {
  for (const [name, { set, removed }] of Object.entries(change)) {
    const table = (tables[name] ??= new Map());
    for (const id of removed) table.delete(id);
    for (const row of set) table.set(row.id, row);
  }
}
