/** DOM elements from plain data. Text always becomes text nodes: nothing an agent says is ever markup. */

const SVG = "http://www.w3.org/2000/svg";
const FOCUSABLE = new Set(["button", "input", "select"]);
let serial = 0;

/** An id that no other element of the page has. @returns {string} */
export function freshId(prefix) {
  serial += 1;
  return `wb-${prefix}-${serial}`;
}

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `class`, `on` (listeners by event), properties such as
 *   `hidden` or `value`, everything else an attribute; null and undefined are left out.
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  // JupyterLab's one-letter shortcuts match the focused element itself, so it is there that they
  // are turned off: `b` would insert a cell and `d d` delete one.
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) element.dataset.lmSuppressShortcuts = "true";
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name === "on") listen(element, value);
    else if (typeof value === "boolean" || name === "value") element[name] = value;
    else element.setAttribute(name === "class" ? "class" : name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(node));
  return element;
}

/** Replace what an element holds, only when the text differs. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A message in which `code` stands between backticks, as nodes. @param {string} message @returns {Node[]} */
export function prose(message) {
  return message.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : node(part)));
}

/** Set or remove an attribute, only when it differs. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/**
 * A picture of 16 by 16 made of paths; decoration only, the word beside it says the same.
 * @param {{d: string, fill?: boolean}[]} paths
 * @param {string} [className]
 * @returns {SVGElement}
 */
export function picture(paths, className = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `wb-icon ${className}`.trim());
  for (const { d, fill } of paths) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    path.setAttribute("class", fill ? "wb-fill" : "wb-stroke");
    svg.append(path);
  }
  return svg;
}

/** An element of a drawing. @param {Record<string, any>} [attributes] @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function listen(element, listeners) {
  for (const [event, handler] of Object.entries(listeners)) element.addEventListener(event, handler);
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}
