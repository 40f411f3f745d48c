/** Reads `{ids, pairs}` a line, gives where the panel's graph puts them. */
import { createInterface } from "node:readline";

import { layout } from "../../kernel_ext/panels/src/tasks/graph_layout.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { ids, pairs } = JSON.parse(line);
  const { places, edges, layers, columns, rows } = layout(ids, pairs);
  console.log(JSON.stringify({ places: Object.fromEntries(places), edges, layers, columns, rows }));
}
