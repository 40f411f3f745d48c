/**
 * The parser of Markdown, as models write it: GitHub's flavour. It makes a tree, of which `markdown.js` makes elements;
 * no markup in the text becomes markup on the page.
 * It is a bundle of its own, because the bundle of the desk is sent with every widget: see `link/assets.js`.
 */

import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** @param {string} text @returns {import("mdast").Root} */
export function parse(text) {
  return fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
}
