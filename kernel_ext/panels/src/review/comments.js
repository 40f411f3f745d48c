/** Comments among the lines of a diff: the form for a new one, those not sent yet, and those that were sent. */

import { button, form, textarea } from "../lib/controls.js";
import { h } from "../lib/dom.js";

/**
 * A comment that was not sent yet.
 * @typedef {{path: string, side: "new"|"old", line: number, end_line: number|null, text: string, commit: string}} Draft
 */

/** "lines 3 to 5", or "cell 2" @param {{line: number, end_line: number|null, cell?: string}} place */
function linesText({ line, end_line: last, cell }) {
  if (cell) return cell;
  return last && last !== line ? `lines ${line} to ${last}` : `line ${line}`;
}

/** A comment that was sent, with the lines where those it is about stand now. @param {any} comment */
export function currentPlace(comment) {
  const { line, end_line: last, current_line: now } = comment;
  const moved = (now ?? line) - line;
  return { ...comment, line: line + moved, end_line: last && last + moved };
}

/** "model.py:3-5" */
export function placeText({ path, line, end_line: last, cell }) {
  if (cell) return `${path}, ${cell}`;
  return last && last !== line ? `${path}:${line}-${last}` : `${path}:${line}`;
}

/** A row of a diff with something other than a line in it. @param {...HTMLElement} content */
function row(...content) {
  return h("tr", { class: "wb-comment-row" }, h("td", { colspan: 3 }, h("div", { class: "wb-comment" }, ...content)));
}

/**
 * The form for a comment.
 * @param {any} place @param {string} text
 * @param {{save: (text: string) => void, cancel: () => void}} on
 */
export function commentForm(place, text, { save, cancel }) {
  const name = `Comment on ${linesText(place)} of ${place.path}`;
  const area = textarea(text, 3, {
    placeholder: "What should change, and why?",
    "aria-label": name,
    maxlength: 10_000,
  });
  area.spellcheck = true;
  const submit = h("button", { class: "wb-button wb-primary", type: "submit" }, text ? "Change" : "Add comment");
  const done = () => area.value.trim() && save(area.value.trim());
  const cancelButton = button("Cancel", "wb-button", cancel);
  const lead = h(
    "div",
    { class: "wb-muted" },
    linesText(place).replace(/^./, (first) => first.toUpperCase()),
  );
  const line = h(
    "div",
    { class: "wb-line" },
    submit,
    cancelButton,
    h("span", { class: "wb-muted" }, "Ctrl+Enter adds it"),
  );
  const onKey = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    done();
  };
  area.addEventListener("keydown", onKey);
  const element = row(form({ class: "wb-stack" }, { submit: done, escape: cancel }, lead, area, line));
  return { element, focus: () => area.focus() };
}

/** A comment that was not sent yet. @param {Draft} draft @param {{edit: () => void, remove: () => void}} on */
export function draftRow(draft, { edit, remove }) {
  const label = `comment on ${linesText(draft)} of ${draft.path}`;
  const lead = h("span", { class: "wb-muted wb-grow" }, `Not sent yet · ${linesText(draft)}`);
  const buttons = [
    button("Edit", "wb-link wb-quiet", edit, `Edit the ${label}`),
    button("Remove", "wb-link wb-quiet", remove, `Remove the ${label}`),
  ];
  return row(h("div", { class: "wb-line" }, lead, ...buttons), h("p", { class: "wb-comment-text" }, draft.text));
}

/** A comment that was sent. @param {any} comment @param {string} who */
export function sentRow(comment, who) {
  const lead = h("div", { class: "wb-muted" }, `${who} · ${linesText(comment)}`);
  return row(lead, h("p", { class: "wb-comment-text" }, comment.text));
}

/** Put a row under a line of a file, or at the end of the file, if the line is not drawn. */
export function place(file, { side, line, end_line: last }, element) {
  const at = file.rowOf(side, last ?? line);
  if (at) {
    let after = at;
    while (after.nextElementSibling?.matches(".wb-comment-row")) after = after.nextElementSibling;
    after.after(element);
  } else file.body.querySelector(".wb-diff-lines")?.append(element);
}
