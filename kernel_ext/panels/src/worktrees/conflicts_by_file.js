/** Predicted conflicts by file: which worktrees change the same lines of each, and how many pairs that makes. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const byName = (a, b) => a.localeCompare(b, undefined, { numeric: true });

/**
 * The files in conflict, those of the most pairs first. Pure.
 * @param {any[]} pairs
 * @returns {{path: string, targets: string[], worktrees: string[], pairs: number}[]}
 */
export function conflictsByFile(pairs) {
  const found = new Map();
  for (const { one, other, is_target: isTarget, files } of pairs) {
    for (const path of files) {
      if (!found.has(path)) found.set(path, { path, targets: new Set(), worktrees: new Set(), pairs: 0 });
      const file = found.get(path);
      file.pairs += 1;
      file.worktrees.add(one);
      (isTarget ? file.targets : file.worktrees).add(other);
    }
  }
  return [...found.values()]
    .map((file) => ({
      ...file,
      targets: [...file.targets].sort(byName),
      worktrees: [...file.worktrees].sort(byName),
    }))
    .sort((a, b) => b.pairs - a.pairs || byName(a.path, b.path));
}

/** A table of them. @param {any[]} pairs @param {(name: string) => void} onOpen a worktree is to be shown */
export function fileTable(pairs, onOpen) {
  const heads = ["File", "Changed on the same lines in", "Pairs"].map((name) => h("th", { scope: "col" }, name));
  const rows = conflictsByFile(pairs).map((file) => line(file, onOpen));
  const attributes = { class: "wb-table wb-conflict-files", "aria-label": "Conflicts by file" };
  return h("table", attributes, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
}

function line({ path, targets, worktrees, pairs }, onOpen) {
  const links = worktrees.map((name) => button(name, "wb-link", () => onOpen(name), `Open ${name} (${path})`));
  const marks = targets.map((name) => h("strong", { title: `${name}, a target` }, name));
  return h(
    "tr",
    { class: "wb-table-row" },
    h("th", { scope: "row", class: "wb-conflict-file", title: path }, h("code", {}, path)),
    h("td", {}, h("span", { class: "wb-line" }, ...marks, ...links)),
    h("td", { class: "wb-digits" }, plural(pairs, "pair")),
  );
}
