/** Reads a log as the panel does: steps on standard input, what is known after each on standard output. */

import { readFileSync } from "node:fs";
import process from "node:process";

import { LogTail } from "../../kernel_ext/panels/src/lib/log_tail.js";

const { step, steps } = JSON.parse(readFileSync(0, "utf8"));
const log = [];
let asked = 0;
let fails = false;

async function ask({ cursor, limit, newest_first }) {
  asked += 1;
  if (fails) return null;
  if (newest_first)
    return log
      .filter(({ id }) => !cursor || id < cursor)
      .reverse()
      .slice(0, limit);
  return log.filter(({ id }) => id > cursor).slice(0, limit);
}

const tail = new LogTail(ask, step);
const does = {
  told: (number) => {
    for (let n = 0; n < number; n += 1) log.push({ id: log.length + 1 });
  },
  read: () => tail.read(),
  back: () => tail.readBack(),
  both: () => Promise.all([tail.read(), tail.read(), tail.readBack(), tail.readBack()]),
  fails: (now) => {
    fails = now;
  },
};
const found = [];
for (const [what, how] of steps) {
  asked = 0;
  await does[what](how);
  found.push({ what, ids: tail.lines.map(({ id }) => id), whole: tail.whole, asked });
}
process.stdout.write(JSON.stringify(found));
