/** Sentences with an icon before them. */

import { h, prose } from "./dom.js";
import { icon } from "./icons.js";

/** @param {string} name of the icon @param {...(Node|string)} content @returns {HTMLElement} */
export function message(name, ...content) {
  return h("div", { class: "wb-message" }, icon(name), h("span", {}, ...content));
}

/** What stands in an error's message: its code, and what to do. @param {{code?: string, message: string}} error @returns {Node[]} */
export function errorContent({ code, message: text }) {
  return [icon("warning"), h("code", {}, code ?? "ERROR"), h("span", {}, ...prose(text))];
}
