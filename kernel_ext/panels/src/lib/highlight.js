/**
 * The highlighter: source text as words with the classes of their colours. No markup is made of the text.
 * It is a bundle of its own, because the bundle of the desk is sent with every widget: see `link/assets.js`.
 */

import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const lowlight = createLowlight({
  bash,
  cpp,
  go,
  ini,
  javascript,
  json,
  markdown,
  python,
  r,
  rust,
  sql,
  typescript,
  xml,
  yaml,
});
const LONGEST = 200_000;
const LONGEST_LINE = 2_000;

/** A piece of a line; `style` is the class of its colour, or "". @typedef {{text: string, style: string}} Word */

/**
 * Highlight consecutive lines of a file.
 * @param {string[]} lines
 * @param {string} language one of `lib/languages.js`
 * @returns {Word[][]|null} null: it would take too long
 */
export function highlight(lines, language) {
  const text = lines.join("\n");
  if (text.length > LONGEST || lines.some((line) => line.length > LONGEST_LINE)) return null;
  const highlighted = [[]];
  walk(lowlight.highlight(language, text), "", (word, style) => {
    word.split("\n").forEach((part, at) => {
      if (at) highlighted.push([]);
      if (part) highlighted.at(-1).push({ text: part, style });
    });
  });
  return highlighted;
}

function walk(node, style, put) {
  if (node.type === "text") put(node.value, style);
  else for (const child of node.children) walk(child, node.properties?.className?.join(" ") ?? style, put);
}
