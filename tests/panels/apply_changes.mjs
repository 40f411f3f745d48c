/** Reads `{snapshot, changes}` a line, gives what the panel's store then holds, and whether it notices a gap. */
import { createInterface } from "node:readline";

import { Store } from "../../kernel_ext/panels/src/link/store.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { snapshot, changes } = JSON.parse(line);
  const store = new Store();
  store.takeSnapshot(1, snapshot);
  changes.forEach((change, at) => store.takeDiff(at + 1, at + 2, change));
  const missed = !store.takeDiff(store.version + 1, store.version + 2, { tasks: { set: [], removed: [] } });
  const tables = {};
  for (const [name, rows] of Object.entries(store.tables)) {
    if (rows.size) tables[name] = [...rows.values()].sort((a, b) => a.id - b.id);
  }
  console.log(JSON.stringify({ tables, version: store.version, missed }));
}
