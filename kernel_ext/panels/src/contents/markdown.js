/** Text that a model writes, as elements: made of what the parser finds, and never of markup in the text. */

import { codeBlock } from "../lib/blocks.js";
import { h, textNode } from "../lib/dom.js";

/** Addresses that a link may lead to. Nothing is ever loaded from an address that a model wrote. */
const LINKED = /^(https?|mailto):/i;
const HEADINGS = "wb-markdown-heading";

/** @typedef {{type: string, children?: Parsed[], value?: string, position?: any, [more: string]: any}} Parsed of the parser */

/** Text that grows. Of a text that has grown only its last block is made anew, so what is selected above stays. */
export class Markdown {
  /** @param {Promise<(text: string) => any>} parser @param {(text: string) => void} announce */
  constructor(parser, announce) {
    this.announce = announce;
    this.text = "";
    this.clear();
    this.element = h("div", { class: "wb-markdown" });
    // Without the parser, the text is shown as it was written.
    parser.then(
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
    const made = BLOCKS[node.type]?.(node, this);
    return made ?? h("p", {}, ...inline([node]));
  }
}

/** @type {Record<string, (node: Parsed, at: Markdown) => HTMLElement>} */
const BLOCKS = {
  paragraph: ({ children }) => h("p", {}, ...inline(children)),
  heading: ({ children, depth }) =>
    h("p", { class: HEADINGS, role: "heading", "aria-level": Math.min(depth + 3, 6) }, ...inline(children)),
  blockquote: ({ children }, at) => h("blockquote", { class: "wb-markdown-quote" }, ...at.blocks(children)),
  thematicBreak: () => h("hr", { class: "wb-markdown-rule" }),
  code: ({ value }, at) => codeBlock(value, "Copy the code", at.announce),
  html: ({ value }) => h("p", { class: "wb-prose" }, value),
  list: ({ ordered, start, children }, at) =>
    h(
      ordered ? "ol" : "ul",
      { class: "wb-bullets", start: ordered && start !== 1 ? start : null },
      ...items(children, at),
    ),
  table: ({ children, align }) => table(children, align ?? []),
};

function items(nodes, at) {
  return nodes.map(({ checked, children }) => {
    const mark = typeof checked === "boolean" ? (checked ? "☑ " : "☐ ") : null;
    // The only paragraph of an item is its line; further blocks stand below it.
    const content = children.map((node, index) =>
      index === 0 && node.type === "paragraph" ? h("span", {}, ...inline(node.children)) : at.block(node),
    );
    return h("li", {}, mark, ...content);
  });
}

function table([head, ...rows], align) {
  const cells = ({ children }, tag) =>
    children.map((cell, at) => h(tag, { "data-align": align[at] ?? null }, ...inline(cell.children)));
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

/** @param {Parsed[]} nodes @returns {Node[]} */
function inline(nodes = []) {
  return nodes.map((node) => INLINE[node.type]?.(node) ?? plain(node));
}

/** @type {Record<string, (node: Parsed) => Node>} */
const INLINE = {
  text: ({ value }) => textNode(value),
  inlineCode: ({ value }) => h("code", {}, value),
  strong: ({ children }) => h("strong", {}, ...inline(children)),
  emphasis: ({ children }) => h("em", {}, ...inline(children)),
  delete: ({ children }) => h("del", {}, ...inline(children)),
  break: () => h("br"),
  link: ({ url, children }) => link(url, inline(children)),
  image: ({ url, alt }) => link(url, [textNode(alt || url)]),
};

function plain({ value, children, label, identifier }) {
  return children ? h("span", {}, ...inline(children)) : textNode(value ?? label ?? identifier ?? "");
}

/** A link shows where it leads, because its words may say something else. */
function link(url, content) {
  if (!LINKED.test(url)) return h("span", { title: url }, ...content);
  return h("a", { class: "wb-link", href: url, title: url, target: "_blank", rel: "noopener noreferrer" }, ...content);
}
