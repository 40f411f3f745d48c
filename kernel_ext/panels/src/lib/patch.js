/** Unified diffs as data. Pure. */

/**
 * A line: `kind` is " ", "+" or "-"; `old` and `new` are its numbers, null on the side where it is not.
 * @typedef {{kind: string, old: number|null, new: number|null, text: string, unended: boolean}} Line
 * @typedef {{about: string, lines: Line[]}} Hunk `about`: where it is, as git says
 */

const HEAD = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

/** @param {string} patch @returns {Hunk[]} */
export function hunks(patch) {
  const found = [];
  let [before, after] = [0, 0];
  for (const text of patch.replace(/\n$/, "").split("\n")) {
    const head = HEAD.exec(text);
    if (head) {
      [before, after] = [Number(head[1]), Number(head[2])];
      found.push({ about: head[3], lines: [] });
    } else if (found.length) {
      const { lines } = found.at(-1);
      const kind = text[0] ?? " ";
      if (kind === "\\") lines.at(-1).unended = true;
      else
        lines.push({
          kind,
          old: kind === "+" ? null : before++,
          new: kind === "-" ? null : after++,
          text: text.slice(1).replace(/\r$/, ""),
          unended: false,
        });
    }
  }
  return found;
}
