/** Blocks that several views are made of. */

import { copyButton } from "./controls.js";
import { h, prose, textNode } from "./dom.js";
import { plural } from "./format.js";
import { icon } from "./icons.js";

/** Content under a small label. @returns {HTMLElement} */
export function labelled(label, ...content) {
  return h("div", {}, h("div", { class: "wb-label" }, label), ...content);
}

/** A sentence with an icon before it. @param {string} name of the icon @param {...(Node|string)} content @returns {HTMLElement} */
export function message(name, ...content) {
  return h("div", { class: "wb-message" }, icon(name), h("span", {}, ...content));
}

const SHOWN_LINES = 5;

/** Why a worker failed: the first line as prose, its output below with its lines, all after five folded. @param {string} text */
export function outputOf(text) {
  const [first, ...rest] = text.trimEnd().split("\n");
  const [shown, more] = [rest.slice(0, SHOWN_LINES), rest.slice(SHOWN_LINES)];
  const lines = (rows) => h("pre", { class: "wb-pre wb-wrap", tabindex: 0 }, rows.join("\n"));
  const folded = () => h("details", {}, h("summary", {}, plural(more.length, "more line")), lines(more));
  return h(
    "div",
    { class: "wb-output" },
    h("span", {}, ...prose(first)),
    shown.length ? lines(shown) : null,
    more.length ? folded() : null,
  );
}

/** The content of an error's message: its code, and what to do next. @param {{code?: string, message: string}} error @returns {Node[]} */
export function errorContent({ code, message: text }) {
  return [icon("warning"), h("span", {}, h("code", {}, code ?? "ERROR"), " ", ...prose(text))];
}

/**
 * Text to read and to copy.
 * @param {string} text @param {string} name of the button @param {(text: string) => void} announce
 * @param {HTMLElement[]} [more] other buttons
 */
export function codeBlock(text, name, announce, more = []) {
  const block = h("pre", { class: "wb-pre", tabindex: 0 }, text);
  const buttons = [...more, copyButton(() => text, name, announce)];
  return h("div", { class: "wb-code" }, block, h("div", { class: "wb-code-buttons" }, ...buttons));
}

/** Highlighted lines. @param {import("./highlight.js").Word[][]} lines @returns {Node[]} */
export function coloured(lines) {
  return lines.flatMap((words, at) => [...(at ? [textNode("\n")] : []), ...colouredWords(words)]);
}

/** The highlighted words of a line. @param {import("./highlight.js").Word[]} [words] @returns {Node[]} */
export function colouredWords(words = []) {
  return words.map(({ text, style }) => (style ? h("span", { class: style }, text) : textNode(text)));
}

/** A table of plain values. @param {string[]} columns @param {any[][]} rows a cell that is an element stays what it is */
export function plainTable(columns, rows) {
  const head = h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)));
  const cell = (value) => (value instanceof Node ? value : h("td", {}, value));
  const body = rows.map((row) => h("tr", {}, ...row.map(cell)));
  return h("table", { class: "wb-table wb-plain-table" }, h("thead", {}, head), h("tbody", {}, ...body));
}

/** Facts with their names. Drawn anew only when they differ: what is selected in them stays. */
export class Facts {
  constructor() {
    this.element = h("ul", { class: "wb-facts" });
    this.shown = "";
  }

  /** @param {[string, Node|string|number|null|undefined|false][]} facts those without a value are left out */
  update(facts) {
    const present = facts.filter(([, value]) => value);
    const key = JSON.stringify(
      present.map(([name, value]) => [name, value instanceof Node ? value.textContent : value]),
    );
    if (key === this.shown) return;
    this.shown = key;
    this.element.replaceChildren(...present.map(([name, value]) => fact(name, value)));
  }
}

function fact(name, value) {
  return h("li", {}, h("span", { class: "wb-muted" }, name), value instanceof Node ? value : h("span", {}, value));
}
