/** Source text as coloured words, line by line. Pure: no markup is made of what is read. */

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

const ENDINGS = {
  bash: "sh bash zsh",
  cpp: "c h cc cpp cxx hh hpp",
  go: "go",
  ini: "ini cfg toml conf",
  javascript: "js mjs cjs jsx",
  json: "json ipynb geojson",
  markdown: "md markdown",
  python: "py pyi pyx",
  r: "r rmd",
  rust: "rs",
  sql: "sql",
  typescript: "ts tsx mts",
  xml: "xml html htm svg xhtml",
  yaml: "yaml yml",
};
const LANGUAGES = new Map(
  Object.entries(ENDINGS).flatMap(([language, endings]) => endings.split(" ").map((ending) => [ending, language])),
);
const WHOLE_NAMES = new Map([
  ["makefile", "bash"],
  ["dockerfile", "bash"],
  [".bashrc", "bash"],
  [".gitconfig", "ini"],
  [".editorconfig", "ini"],
]);
const LONGEST = 200_000;
const LONGEST_LINE = 2_000;

/** A piece of a line. @typedef {{text: string, kind: string}} Word `kind` is the class of its colour, or "" */

/** The language of a file by its name, or null. @param {string} path */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return WHOLE_NAMES.get(name) ?? LANGUAGES.get(name.slice(name.lastIndexOf(".") + 1)) ?? null;
}

/**
 * Lines as words with colours; what is too long stays as it is.
 * @param {string[]} lines @param {string|null} language
 * @returns {Word[][]}
 */
export function coloured(lines, language) {
  const text = lines.join("\n");
  if (!language || text.length > LONGEST || lines.some((line) => line.length > LONGEST_LINE)) {
    return lines.map((line) => [{ text: line, kind: "" }]);
  }
  const made = [[]];
  walk(lowlight.highlight(language, text), "", (word, kind) => {
    word.split("\n").forEach((part, at) => {
      if (at) made.push([]);
      if (part) made.at(-1).push({ text: part, kind });
    });
  });
  return made;
}

function walk(node, kind, put) {
  if (node.type === "text") put(node.value, kind);
  else for (const child of node.children) walk(child, node.properties?.className?.join(" ") ?? kind, put);
}
