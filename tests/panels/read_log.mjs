/** Reads logs as the panel does: the steps of one a line; the lines that are known after each a line. */

import { createInterface } from "node:readline";
import process from "node:process";

import { LogTail } from "../../kernel_ext/panels/src/lib/log_tail.js";

async function play({ step, steps }) {
  const log = [];
  let loads = 0;
  let fails = false;

  async function load({ cursor, limit, newest_first }) {
    loads += 1;
    if (fails) throw new Error("not now");
    if (newest_first)
      return log
        .filter(({ id }) => !cursor || id < cursor)
        .reverse()
        .slice(0, limit);
    return log.filter(({ id }) => id > cursor).slice(0, limit);
  }

  const tail = new LogTail(load, step);
  const does = {
    grow: (number) => {
      for (let n = 0; n < number; n += 1) log.push({ id: log.length + 1 });
    },
    read: () => tail.readNew(),
    back: () => tail.readEarlier(),
    both: () => Promise.all([tail.readNew(), tail.readNew(), tail.readEarlier(), tail.readEarlier()]),
    fails: (now) => {
      fails = now;
    },
  };
  const found = [];
  for (const [what, how] of steps) {
    loads = 0;
    let failed = false;
    try {
      await does[what](how);
    } catch {
      failed = true;
    }
    found.push({ what, ids: tail.lines.map(({ id }) => id), complete: tail.complete, loads, failed });
  }
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await play(JSON.parse(line))));
}
