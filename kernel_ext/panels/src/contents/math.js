/**
 * Formulas in LaTeX, as MathML, which browsers draw with fonts of their own. No markup is made of what KaTeX does not know,
 * and no link, picture or class of the page comes from a formula.
 * It is a bundle of its own, because the bundle of the desk is sent with every widget: see `link/assets.js`.
 */

import katex from "katex";

const OPTIONS = { output: "mathml", throwOnError: true, trust: false, strict: "ignore", maxSize: 20, maxExpand: 300 };
const LONGEST = 20_000;

/**
 * A formula as an element. @param {string} text @param {boolean} isBlock whether it stands by itself
 * @returns {HTMLElement|null} null: it is none
 */
export function formula(text, isBlock) {
  if (text.length > LONGEST) return null;
  const element = document.createElement("span");
  try {
    katex.render(text, element, { ...OPTIONS, displayMode: isBlock });
  } catch {
    return null;
  }
  return element;
}
