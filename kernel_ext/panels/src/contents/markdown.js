/** Text that a model writes, as elements: made of what the parser finds, and never of markup in the text. */

import { codeBlock, coloured } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h, textNode } from "../lib/dom.js";
import { languageNamed } from "../lib/languages.js";
import { loadHighlighter, loadMarkdown, loadMath } from "../link/assets.js";

/** Addresses that a link may lead to. Nothing is ever loaded from an address that a model wrote. */
const LINKED = /^(https?|mailto):/i;
const HEADINGS = "wb-markdown-heading";
const CLICK_FIRST = "Click into the cell to replace first.";

/** @typedef {{type: string, children?: Parsed[], value?: string, position?: any, [more: string]: any}} Parsed of the parser */

/** Text that grows. Of a text that has grown only its last block is made anew, so what is selected above stays. */
export class Markdown {
  /**
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void,
   *   cells?: import("../link/cells.js").Cells, lastCell?: import("../link/cells.js").LastCell}} desk
   */
  constructor(desk) {
    this.desk = desk;
    this.text = "";
    this.clear();
    this.element = h("div", { class: "wb-markdown" });
    // Without the parser, the text is shown as it was written.
    loadMarkdown(desk.channel).then(
      (parse) => this.takeParser(parse),
      () => {},
    );
  }

  clear() {
    /** Where the last block begins in the text, and how many elements stand before it. */
    this.last = { offset: 0, elements: 0 };
  }

  takeParser(parse) {
    this.parse = parse;
    const { text } = this;
    this.clear();
    this.element.replaceChildren();
    this.draw(text);
  }

  /** @param {string} text */
  show(text) {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) this.clear();
    this.text = text;
    this.draw(text);
  }

  draw(text) {
    if (!this.parse) return this.element.replaceChildren(h("p", { class: "wb-prose" }, text));
    const { offset, elements } = this.last;
    const { children } = this.parse(text.slice(offset));
    while (this.element.childNodes.length > elements) this.element.lastChild.remove();
    this.element.append(...this.blocks(children.slice(0, -1)));
    const last = children.at(-1);
    if (!last) return undefined;
    this.last = { offset: offset + last.position.start.offset, elements: this.element.childNodes.length };
    return this.element.append(...this.blocks([last]));
  }

  /** @param {Parsed[]} nodes */
  blocks(nodes = []) {
    return nodes.map((node) => this.block(node));
  }

  block(node) {
    const element = BLOCKS[node.type]?.(node, this);
    return element ?? h("p", {}, ...inline([node], this));
  }
}

/** @type {Record<string, (node: Parsed, at: Markdown) => HTMLElement>} */
const BLOCKS = {
  paragraph: ({ children }, at) =>
    children.length === 1 && children[0].isDouble && children[0].type === "inlineMath"
      ? formula(children[0].value, true, at)
      : h("p", {}, ...inline(children, at)),
  heading: ({ children, depth }, at) =>
    h("p", { class: HEADINGS, role: "heading", "aria-level": Math.min(depth + 3, 6) }, ...inline(children, at)),
  blockquote: ({ children }, at) => h("blockquote", { class: "wb-markdown-quote" }, ...at.blocks(children)),
  thematicBreak: () => h("hr", { class: "wb-markdown-rule" }),
  code,
  math: ({ value }, at) => formula(value, true, at),
  html: ({ value }) => h("p", { class: "wb-prose" }, value),
  list: ({ ordered, start, children }, at) =>
    h(
      ordered ? "ol" : "ul",
      { class: "wb-bullets", start: ordered && start !== 1 ? start : null },
      ...items(children, at),
    ),
  table: ({ children, align }, at) => table(children, align ?? [], at),
};

function items(nodes, at) {
  return nodes.map(({ checked, children }) => {
    const mark = typeof checked === "boolean" ? (checked ? "☑ " : "☐ ") : null;
    // The only paragraph of an item is its line; further blocks stand below it.
    const content = children.map((node, index) =>
      index === 0 && node.type === "paragraph" ? h("span", {}, ...inline(node.children, at)) : at.block(node),
    );
    return h("li", {}, mark, ...content);
  });
}

function table([head, ...rows], align, at) {
  const cells = ({ children }, tag) =>
    children.map((cell, place) => h(tag, { "data-align": align[place] ?? null }, ...inline(cell.children, at)));
  return h(
    "div",
    { class: "wb-markdown-scroll", tabindex: 0, role: "group", "aria-label": "Table" },
    h(
      "table",
      { class: "wb-markdown-table" },
      h("thead", {}, h("tr", {}, ...cells(head, "th"))),
      h("tbody", {}, ...rows.map((row) => h("tr", {}, ...cells(row, "td")))),
    ),
  );
}

/** A block of code, coloured when the highlighter has come, with what can be done with it. */
function code({ value, lang }, { desk }) {
  const element = codeBlock(value, "Copy the code", desk.announce, cellButtons(value, desk));
  const language = languageNamed(lang ?? "");
  if (language)
    loadHighlighter(desk.channel).then(
      (highlight) => {
        const lines = highlight(value.split("\n"), language);
        if (lines) element.querySelector("pre").replaceChildren(...coloured(lines));
      },
      () => {}, // it stays plain
    );
  return element;
}

/** Buttons that write code into the notebook, where there is one. */
function cellButtons(source, { cells, lastCell, announce }) {
  if (!cells?.notebook) return [];
  const insert = () => {
    cells.insert(source);
    announce("The code is in a new cell.");
  };
  const replace = () => {
    const isDone = cells.replace(source, lastCell?.id ?? null);
    announce(isDone ? "The cell has this code now. Undo in the notebook brings it back." : CLICK_FIRST);
    if (!isDone) replacing.title = CLICK_FIRST;
  };
  const replacing = button("Replace cell", "wb-button", replace, "Replace the cell that you were in with the code");
  return [button("Insert", "wb-button", insert, "Insert the code as a new cell"), replacing];
}

/** A formula, which is its source until it can be drawn. */
function formula(source, isBlock, { desk }) {
  const element = h(isBlock ? "div" : "span", { class: isBlock ? "wb-formula" : null }, h("code", {}, source));
  loadMath(desk.channel).then(
    (draw) => {
      const drawn = draw(source, isBlock);
      if (drawn) element.replaceChildren(drawn);
    },
    () => {}, // it stays its source
  );
  return element;
}

/** @param {Parsed[]} nodes @param {Markdown} at @returns {Node[]} */
function inline(nodes = [], at) {
  return nodes.map((node) => INLINE[node.type]?.(node, at) ?? plain(node, at));
}

/** @type {Record<string, (node: Parsed, at: Markdown) => Node>} */
const INLINE = {
  text: ({ value }) => textNode(value),
  inlineCode: ({ value }) => h("code", {}, value),
  inlineMath: ({ value }, at) => formula(value, false, at),
  strong: ({ children }, at) => h("strong", {}, ...inline(children, at)),
  emphasis: ({ children }, at) => h("em", {}, ...inline(children, at)),
  delete: ({ children }, at) => h("del", {}, ...inline(children, at)),
  break: () => h("br"),
  link: ({ url, children }, at) => link(url, inline(children, at)),
  image: ({ url, alt }) => link(url, [textNode(alt || url)]),
};

function plain({ value, children, label, identifier }, at) {
  return children ? h("span", {}, ...inline(children, at)) : textNode(value ?? label ?? identifier ?? "");
}

/** A link shows where it leads, because its words may say something else. */
function link(url, content) {
  if (!LINKED.test(url)) return h("span", { title: url }, ...content);
  return h("a", { class: "wb-link", href: url, title: url, target: "_blank", rel: "noopener noreferrer" }, ...content);
}
