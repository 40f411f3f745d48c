/** The language of a source file, by its name. Pure. */

const EXTENSIONS = {
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
const BY_EXTENSION = new Map(
  Object.entries(EXTENSIONS).flatMap(([language, endings]) => endings.split(" ").map((ending) => [ending, language])),
);
const BY_NAME = new Map([
  ["makefile", "bash"],
  ["dockerfile", "bash"],
  [".bashrc", "bash"],
  [".gitconfig", "ini"],
  [".editorconfig", "ini"],
]);

const BY_WORD = new Map([
  ["c++", "cpp"],
  ["html", "xml"],
  ["ipython", "python"],
  ["python3", "python"],
  ["shell", "bash"],
  ["console", "bash"],
]);

/** A language that the highlighter knows, by the word with which a block of code begins, or null. @param {string} word */
export function languageNamed(word) {
  const name = word.toLowerCase();
  return Object.hasOwn(EXTENSIONS, name) ? name : (BY_WORD.get(name) ?? BY_EXTENSION.get(name) ?? null);
}

/** A language that the highlighter knows, or null. @param {string} path */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return BY_NAME.get(name) ?? BY_EXTENSION.get(name.slice(name.lastIndexOf(".") + 1)) ?? null;
}
