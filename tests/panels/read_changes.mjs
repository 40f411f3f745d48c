/** Reads a patch or the tails of a log, a line of JSON each; answers each with what the panel makes of it. */
import { createInterface } from "node:readline";
import process from "node:process";

import { newLines } from "../../kernel_ext/panels/src/lib/log_tail.js";
import { hunks } from "../../kernel_ext/panels/src/lib/patch.js";

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
    const fresh = newLines(known, tail);
    return fresh === tail ? [...tail] : [...known, ...fresh];
  }, []);

for await (const line of createInterface({ input: process.stdin })) {
  const { patch, tails } = JSON.parse(line);
  console.log(JSON.stringify(patch === undefined ? followed(tails) : sides(patch)));
}
