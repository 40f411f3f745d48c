/** The changes of a notebook as cells: a head for each, its outputs before and after, and comments on it. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";

/** How a hunk of a notebook's changes is named: the place of its cell, its kind, and what has changed besides its text. */
const TITLE = /^cell (\d+), (\w+)(?:: (.*))?$/;

/**
 * Draw the cells of a notebook, whose lines are drawn; once for each time that these are.
 * @param {import("../lib/file_diff.js").FileDiff} file
 * @param {any[]} changed the cells of get_worktree_outputs
 * @param {(rows: HTMLElement[], cell: string) => void} comment
 */
export function drawCells(file, changed, comment) {
  const parts = [...file.body.querySelectorAll(".wb-diff-lines > tbody")];
  parts.forEach((part, at) => {
    const [, place, kind, what] = TITLE.exec(file.hunks[at].context) ?? [];
    if (!place || part.dataset.cell) return;
    part.dataset.cell = place;
    const isRemoved = what === "removed";
    drawHead(part, { place, kind, what }, comment);
    const next = TITLE.exec(file.hunks[at + 1]?.context ?? "");
    if (next?.[1] === place && (next[3] === "removed") === isRemoved) return; // the cell goes on
    const number = Number(place);
    const cell = changed.find((one) => (isRemoved ? one.place === null && one.old_place : one.place) === number);
    if (cell) part.after(outputsOf(cell, place));
  });
}

function drawHead(part, { place, kind, what }, comment) {
  const rows = [...part.querySelectorAll(".wb-diff-line")];
  const name = `cell ${place}`;
  const about = [kind, what].filter(Boolean).join(" · ");
  const on = button("Comment on this cell", "wb-link wb-cell-comment", () => comment(rows, name), `Comment on ${name}`);
  const line = h(
    "div",
    { class: "wb-line wb-cell-head" },
    h("span", { class: "wb-strong" }, `Cell ${place}`),
    h("span", { class: "wb-muted wb-grow" }, about),
    rows.length ? on : null,
  );
  part.querySelector(".wb-diff-hunk > td").replaceChildren(line);
}

function outputsOf(cell, place) {
  const sides = [
    ["Before", cell.before],
    ["After", cell.after],
  ].filter(([, outputs]) => outputs.length);
  const stale = cell.stale
    ? h(
        "p",
        { class: "wb-muted" },
        "What is shown after was made by other code than this cell has now. Run the notebook.",
      )
    : null;
  const figures = sides.map(([label, outputs]) => {
    const what = sides.length === 2 ? label : label === "After" ? "Output, added" : "Output, removed";
    const name = `${what}: output of cell ${place}`;
    return h(
      "figure",
      { class: "wb-outputs", "aria-label": name },
      h("figcaption", { class: "wb-muted" }, what),
      ...outputs.map((output) => shown(output, name)),
    );
  });
  const content = h("div", { class: "wb-outputs-pair" }, ...figures);
  return h("tbody", {}, h("tr", { class: "wb-outputs-row" }, h("td", { colspan: 3 }, content, stale)));
}

/** A picture is data of an image element, which runs nothing; anything else is text. */
function shown({ form, text, media_type: type, data }, name) {
  if (form === "picture") return h("img", { src: `data:${type};base64,${data}`, alt: name });
  return h(form === "text" ? "pre" : "p", { class: form === "text" ? "wb-output-text" : "wb-muted" }, text);
}
