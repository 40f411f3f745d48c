/** Makes text that workers wrote harmless to show: control characters and text direction are shown as escapes. */

// The same characters as in workbench/present/inert.py; tab and newline stay.
const ACTIVE =
  // eslint-disable-next-line no-control-regex -- these are what it is for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** Text without anything that a page obeys, escaped as in JSON. @param {string} text @returns {string} */
export function inert(text) {
  return text.replace(ACTIVE, escape);
}

function escape(character) {
  const quoted = JSON.stringify(character).slice(1, -1);
  if (quoted !== character) return quoted;
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
