/** Gets a bundle from the kernel when it is first needed; the panels of a page share it. */

/* global HIGHLIGHT_VERSION, MARKDOWN_VERSION, MATH_VERSION, NOTEBOOK_VERSION -- set by build.mjs: panels of another version have other bundles */
const VERSIONS = {
  highlight: HIGHLIGHT_VERSION,
  markdown: MARKDOWN_VERSION,
  math: MATH_VERSION,
  notebook: NOTEBOOK_VERSION,
};

/** @typedef {(lines: string[], language: string) => import("../lib/highlight.js").Word[][]|null} Highlight */

/**
 * Load the highlighter. It rejects when it cannot be loaded; the next call tries again.
 * @param {import("./channel.js").Channel} channel @returns {Promise<Highlight>}
 */
export async function loadHighlighter(channel) {
  return (await load(channel, "highlight")).highlight;
}

/** Load the parser of Markdown, in the same way. @param {import("./channel.js").Channel} channel @returns {Promise<(text: string) => any>} */
export async function loadMarkdown(channel) {
  return (await load(channel, "markdown")).parse;
}

/** Load what draws formulas, in the same way. @param {import("./channel.js").Channel} channel @returns {Promise<(text: string, isBlock: boolean) => HTMLElement|null>} */
export async function loadMath(channel) {
  return (await load(channel, "math")).formula;
}

/** Load what draws the cells of a notebook, in the same way. @param {import("./channel.js").Channel} channel */
export async function loadNotebook(channel) {
  return (await load(channel, "notebook")).drawCells;
}

function load(channel, name) {
  const key = Symbol.for(`workbench.${name}.${VERSIONS[name]}`);
  globalThis[key] ??= imported(channel, name).catch((error) => {
    delete globalThis[key];
    throw error;
  });
  return globalThis[key];
}

/** A bundle that anywidget has loaded from a Blob cannot import relative paths; another Blob it can. */
async function imported(channel, name) {
  const source = await channel.asset(name);
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    return await import(address);
  } finally {
    URL.revokeObjectURL(address);
  }
}
