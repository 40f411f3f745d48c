/** Gets the highlighter from the kernel when a diff first needs it; the panels of a page share it. */

/* global HIGHLIGHT_VERSION -- set by build.mjs: panels of another version on the same page have another highlighter */
const LOADED = Symbol.for(`workbench.highlighter.${HIGHLIGHT_VERSION}`);

/** @typedef {(lines: string[], language: string) => import("../lib/highlight.js").Word[][]|null} Highlight */

/**
 * @param {import("./channel.js").Channel} channel
 * @returns {Promise<Highlight>} rejects when it cannot be loaded; the next call tries again
 */
export function loadHighlighter(channel) {
  globalThis[LOADED] ??= load(channel).catch((error) => {
    delete globalThis[LOADED];
    throw error;
  });
  return globalThis[LOADED];
}

/** A bundle that anywidget has loaded from a Blob cannot import relative paths; another Blob it can. */
async function load(channel) {
  const source = await channel.asset("highlight");
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    return (await import(address)).highlight;
  } finally {
    URL.revokeObjectURL(address);
  }
}
