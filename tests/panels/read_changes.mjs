/** Reads a line of JSON with a patch or a log's tails, and answers what the panel makes of it. */
import { createInterface } from "node:readline";
import process from "node:process";

import { hunks } from "../../kernel_ext/panels/src/lib/patch.js";
import { added } from "../../kernel_ext/panels/src/lib/log_lines.js";

const sides = (patch) =>
  hunks(patch).map(({ lines }) =>
    ["-", "+"].map((side) =>
      lines
        .filter(({ kind }) => kind !== (side === "-" ? "+" : "-"))
        .map(({ text, old, new: now }) => [side === "-" ? old : now, text]),
    ),
  );

const followed = (tails) =>
  tails.reduce((known, tail) => {
    const fresh = added(known, tail);
    return fresh === tail ? [...tail] : [...known, ...fresh];
  }, []);

for await (const line of createInterface({ input: process.stdin })) {
  const { patch, tails } = JSON.parse(line);
  console.log(JSON.stringify(patch === undefined ? followed(tails) : sides(patch)));
}
