/** Elements from plain data. Text always becomes inert text nodes: nothing an agent writes is ever markup. */

import { inert } from "./inert.js";

const SVG = "http://www.w3.org/2000/svg";
/** Attributes that are shown or read out. */
export const SHOWN = new Set(["title", "aria-label", "placeholder"]);
/** Elements that can have the focus. */
export const FOCUSABLE = new Set(["button", "input", "select", "textarea"]);
let serial = 0;

/** An id that no other element of the page has. @param {string} prefix @returns {string} */
export function freshId(prefix) {
  serial += 1;
  return `wb-${prefix}-${serial}`;
}

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `class`, `on` (listeners by event), properties such as `hidden` or `value`,
 *   everything else an attribute; null and undefined are left out
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  // JupyterLab looks for this attribute on the focused element itself. Without it, typing `b` on a button would insert
  // a cell, and `d d` would delete one.
  if (FOCUSABLE.has(tag) || "tabindex" in attributes) element.dataset.lmSuppressShortcuts = "true";
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name === "on") listen(element, value);
    else if (typeof value === "boolean" || name === "value") element[name] = value;
    else element.setAttribute(name, shown(name, value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map(node));
  return element;
}

/** A text node. @param {string} text @returns {Text} */
export function textNode(text) {
  return document.createTextNode(inert(text));
}

/** Set an element's text, only when it differs: a selection in it is kept. */
export function setText(element, text) {
  const safe = inert(String(text));
  if (element.textContent !== safe) element.textContent = safe;
}

/** Set an attribute, only when it differs; null and undefined remove it. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== shown(name, value)) element.setAttribute(name, shown(name, value));
}

/**
 * Show nodes in place of others. Where they have the same form, those that are there stay and only what differs is
 * changed: they keep the focus, the pointer, a selection, and their listeners, which have to do the same.
 * @param {Element} holder @param {...Element} elements
 * @returns {boolean} whether they stayed
 */
export function renew(holder, ...elements) {
  const stay =
    holder.childNodes.length === elements.length &&
    elements.every((element, at) => isAlike(holder.childNodes[at], element));
  if (stay) elements.forEach((element, at) => adopt(holder.childNodes[at], element));
  else holder.replaceChildren(...elements);
  return stay;
}

function isAlike(one, other) {
  if (one.nodeName !== other.nodeName || one.childNodes.length !== other.childNodes.length) return false;
  return [...one.childNodes].every((child, at) => isAlike(child, other.childNodes[at]));
}

function adopt(one, other) {
  if (one instanceof Text) {
    if (one.data !== other.data) one.data = other.data;
    return;
  }
  for (const { name } of [...one.attributes].filter(({ name }) => !other.hasAttribute(name) && name !== "tabindex"))
    one.removeAttribute(name);
  for (const { name, value } of other.attributes) setAttribute(one, name, value);
  one.childNodes.forEach((child, at) => adopt(child, other.childNodes[at]));
}

/** A message with `code` between backticks, as nodes. @param {string} message @returns {Node[]} */
export function prose(message) {
  return message.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : node(part)));
}

/** An element of a drawing. @param {string} tag @param {Record<string, any>} [attributes] @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function listen(element, listeners) {
  for (const [event, handler] of Object.entries(listeners)) element.addEventListener(event, handler);
}

function shown(name, value) {
  return SHOWN.has(name) ? inert(String(value)) : String(value);
}

function node(child) {
  return child instanceof Node ? child : textNode(String(child));
}
