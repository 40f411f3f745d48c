/** Unified diffs as data. Pure. */

/**
 * A line: `kind` is " ", "+" or "-"; `old` and `new` are its numbers, null on the side that does not have it;
 * `unended` when the file ends here without a line feed.
 * @typedef {{kind: string, old: number|null, new: number|null, text: string, unended: boolean}} Line
 * @typedef {{context: string, lines: Line[]}} Hunk `context`: the function or section it is in, as git names it
 */

const HEADER = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

/** @param {string} patch @returns {Hunk[]} */
export function hunks(patch) {
  const list = [];
  let [before, after] = [0, 0];
  for (const text of patch.replace(/\n$/, "").split("\n")) {
    const header = HEADER.exec(text);
    if (header) {
      [before, after] = [Number(header[1]), Number(header[2])];
      list.push({ context: header[3], lines: [] });
    } else if (list.length) {
      const { lines } = list.at(-1);
      const kind = text[0] ?? " ";
      if (kind === "\\") {
        lines.at(-1).unended = true;
        continue;
      }
      lines.push({
        kind,
        old: kind === "+" ? null : before++,
        new: kind === "-" ? null : after++,
        text: text.slice(1).replace(/\r$/, ""),
        unended: false,
      });
    }
  }
  return list;
}
