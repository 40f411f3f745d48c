/** What tools take and return, to be read: JSON, and the blocks of MCP. All of it is shown, none of it is obeyed. */

import { codeBlock } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { byteSize, plural } from "../lib/format.js";

/** Longer texts are cut at first. */
const LONG = 8_000;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @typedef {(text: string) => void} Announce */

/** A text of any length. @param {string} text @param {string} name of the button that copies it @param {Announce} announce */
export function longText(text, name, announce) {
  if (text.length <= LONG) return codeBlock(text, name, announce);
  const box = h("div", { class: "wb-stack" });
  const all = button(`Show all ${plural(text.length, "character")}`, "wb-link", () =>
    box.replaceChildren(codeBlock(text, name, announce)),
  );
  box.append(codeBlock(`${text.slice(0, LONG)}…`, name, announce), all);
  return box;
}

/** Any value as JSON, or a text as it is. @param {unknown} value @param {string} name @param {Announce} announce */
export function valueBlock(value, name, announce) {
  return longText(typeof value === "string" ? value : JSON.stringify(value, null, 2), name, announce);
}

/**
 * A tool's result: a value, blocks of MCP, or both.
 * @param {{content?: any[], structured?: unknown}|any[]|string|null} result @param {Announce} announce
 * @returns {HTMLElement[]}
 */
export function resultBlocks(result, announce) {
  if (result === null || result === undefined) return [];
  if (pictures(result).length) return /** @type {any[]} */ (result).map((part) => block(part, announce));
  if (!Array.isArray(result.content)) return [valueBlock(result, "Copy the result", announce)];
  const { content, structured } = result;
  const isSaid = structured !== null && structured !== undefined;
  const blocks = content.filter((part) => !(isSaid && isSame(part, structured))).map((part) => block(part, announce));
  return isSaid ? [valueBlock(structured, "Copy the result", announce), ...blocks] : blocks;
}

/** Whether a block of text only repeats the structured result, as MCP asks servers to do. */
function isSame({ type, text }, structured) {
  if (type !== "text") return false;
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(structured) || text === structured?.result;
  } catch {
    return text === structured?.result;
  }
}

function block(part, announce) {
  if (part.type === "text") return longText(part.text, "Copy the text", announce);
  if (isPicture(part)) return picture(part);
  if (part.type === "resource_link") return note(`${part.title ?? part.name ?? "Resource"}: ${part.uri}`);
  if (part.type === "resource" && typeof part.resource?.text === "string") {
    const { uri, text } = part.resource;
    return h("div", {}, h("div", { class: "wb-label wb-wrap" }, uri), longText(text, "Copy the resource", announce));
  }
  const data = part.data ?? part.resource?.blob;
  if (typeof data !== "string") return valueBlock(part, "Copy the result", announce);
  return note(`${part.mimeType ?? part.resource?.mimeType ?? part.type}, ${byteSize((data.length * 3) / 4)}`);
}

/** The blocks of a result that are pictures. @param {unknown} result @returns {any[]} */
export function pictures(result) {
  return Array.isArray(result) ? result.filter((part) => isPicture(part)) : [];
}

function isPicture(part) {
  return part?.type === "image" && PICTURES.has(part.mimeType) && typeof part.data === "string";
}

/** A picture, with what is said of it where it cannot be seen. */
export function picture({ mimeType, data }) {
  const size = Math.floor((data.length * 3) / 4) - (data.endsWith("==") ? 2 : Number(data.endsWith("=")));
  return h("img", {
    class: "wb-picture",
    src: `data:${mimeType};base64,${data}`,
    alt: `a picture of ${size.toLocaleString("en")} bytes, ${mimeType}`,
  });
}

function note(text) {
  return h("p", { class: "wb-muted wb-wrap" }, text);
}
