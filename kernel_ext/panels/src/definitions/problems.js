/** What is wrong with a definition, or missing in it: all of it in its overview, elsewhere what is about that place. */

import { button } from "../lib/controls.js";
import { h, prose } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { SECTIONS } from "./state.js";

/** How bad it is: the icon, and the word for screen readers. */
const SEVERITIES = { error: ["failed", "Error: "], warning: ["warning", "Warning: "], hint: ["hint", "Hint: "] };

/** The place of the tree that a problem is about. @param {string} path such as `rules.cite` or `mcpServers.github.TOKEN` @returns {string} */
export function placeOf(path) {
  const [first, name] = path.split(".");
  const section = first === "mcpServers" ? "servers" : first;
  if (section === "prompt") return section;
  if (!(section in SECTIONS)) return "overview"; // metadata, settings, or a file
  return name === undefined ? section : `${section}/${name}`;
}

export class Problems {
  /** @param {(place: string) => void} open */
  constructor(open) {
    this.open = open;
    this.element = h("ul", { class: "wb-stack wb-problems", "aria-label": "Problems" });
  }

  /** @param {{severity: string, place: string, message: string}[]} problems errors first @param {string} place that is shown */
  show(problems, place) {
    const visible = problems.filter((problem) => place === "overview" || placeOf(problem.place) === place);
    const key = JSON.stringify([place, visible]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.hidden = !visible.length;
    this.element.replaceChildren(...visible.map((problem) => this.line(problem, place)));
  }

  line({ severity, place: path, message }, place) {
    const [name, word] = SEVERITIES[severity];
    const target = placeOf(path);
    const where = target === place ? null : button(path, "wb-link", () => this.open(target), `Open ${path}`);
    const text = h("span", {}, h("span", { class: "wb-sr" }, word), where, where ? " " : null, ...prose(message));
    return h("li", { class: "wb-message" }, icon(name), text);
  }
}
