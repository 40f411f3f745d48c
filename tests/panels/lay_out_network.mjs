/** Reads `{nodes, lines, own, width}` a line, gives where the panel's graph of a network puts them. */
import { createInterface } from "node:readline";

import { layout, pathOf } from "../../kernel_ext/panels/src/network/graph_layout.js";

for await (const line of createInterface({ input: process.stdin })) {
  const { nodes, lines, own, width } = JSON.parse(line);
  const { places, columns, ...size } = layout(nodes, lines, own, width);
  const hub = columns.length === 3 ? places.get(columns[1][0]) : null;
  const paths = lines.map(({ from, to }) => pathOf(places.get(from), places.get(to), hub, 0));
  console.log(JSON.stringify({ places: Object.fromEntries(places), columns, paths, ...size }));
}
