/**
 * The parser of Markdown, as models write it: GitHub's flavour, with formulas between dollars or LaTeX's own brackets. It makes a tree, of which `markdown.js` makes elements;
 * no markup in the text becomes markup on the page.
 * It is a bundle of its own, because the bundle of the desk is sent with every widget: see `link/assets.js`.
 */

import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { mathFromMarkdown } from "mdast-util-math";
import { gfm } from "micromark-extension-gfm";
import { math } from "micromark-extension-math";

/** Code, which stays; or a formula in LaTeX's brackets. */
const BRACKETS = /(```[\s\S]*?(?:```|$)|`[^`\n]*`)|\\\[([\s\S]+?)\\\]|\\\(([^\n]+?)\\\)/g;

/** @param {string} text @returns {import("mdast").Root} */
export function parse(text) {
  // As long as before: places in the tree are places in the text.
  const dollars = text.replace(BRACKETS, (whole, code, block, inline) => code ?? `$$$$${block ?? inline}$$$$`);
  const extensions = { extensions: [gfm(), math()], mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown()] };
  const tree = fromMarkdown(dollars, extensions);
  moneyStays(tree, dollars);
  return tree;
}

/** "$5 and $6" is no formula: as in pandoc, one has no space within its dollars, and no digit follows it. */
function moneyStays(node, text) {
  for (const child of node.children ?? []) {
    if (child.type === "inlineMath") {
      const { start, end } = child.position;
      const whole = text.slice(start.offset, end.offset);
      const isFormula = whole.startsWith("$$") || (/^\$\S/.test(whole) && /\S\$$/.test(whole));
      if (!isFormula || (!whole.startsWith("$$") && /\d/.test(text[end.offset] ?? "")))
        Object.assign(child, { type: "text", value: whole });
      child.isDouble = whole.startsWith("$$");
    } else moneyStays(child, text);
  }
}
