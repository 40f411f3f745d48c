/** Buttons, fields and what they share: a focus that stays, a label that is read, a name for each. */

import { freshId, h, setText } from "./dom.js";

const COPIED_MS = 2_000;

/** A button that keeps its focus while it is off. @param {string} [name] what it is called if its label is not enough */
export function button(label, className, onClick, name) {
  const click = (event) => event.currentTarget.getAttribute("aria-disabled") !== "true" && onClick(event);
  return h("button", { class: className, type: "button", "aria-label": name, on: { click } }, label);
}

/** Turn buttons on or off without taking the focus from them. */
export function enable(on, ...buttons) {
  for (const one of buttons) one?.setAttribute("aria-disabled", String(!on));
}

/** A line of text to type. @param {Record<string, any>} [attributes] */
export function input(value, attributes = {}) {
  return h("input", {
    class: "wb-input",
    type: "text",
    value,
    spellcheck: "false",
    autocomplete: "off",
    ...attributes,
  });
}

/**
 * A choice.
 * @param {Iterable<[string, string]>} options value and label
 * @param {string} value
 */
export function select(options, value, attributes = {}) {
  const element = h("select", { class: "wb-input", ...attributes });
  setOptions(element, [["", options]], value);
  return element;
}

/**
 * Replace what can be chosen, when it differs; a choice that is gone falls back to the first.
 * @param {HTMLSelectElement} element
 * @param {[string, Iterable<[string, string]>][]} groups label of a group ("" for none) and its options
 */
export function setOptions(element, groups, value = element.value) {
  const wanted = groups.map(([label, options]) => [label, [...options]]);
  const key = JSON.stringify(wanted);
  if (element.dataset.options !== key) {
    element.dataset.options = key;
    element.replaceChildren(...wanted.flatMap(([label, options]) => group(label, options)));
  }
  element.value = value;
  if (element.selectedIndex < 0) element.selectedIndex = 0;
}

function group(label, options) {
  const made = options.map(([id, name]) => h("option", { value: id }, name));
  return label ? [h("optgroup", { label }, ...made)] : made;
}

/** A control under its label. */
export function field(label, control, className = "") {
  control.id = freshId("field");
  return h("div", { class: `wb-field ${className}`.trim() }, h("label", { for: control.id }, label), control);
}

/**
 * A form. Enter in a line of text is sent on by hand: inside a notebook browsers do not submit by themselves.
 * @param {Record<string, any>} attributes
 * @param {{submit: () => void, escape?: () => void}} on
 */
export function form(attributes, { submit, escape }, ...children) {
  const onSubmit = (event) => {
    event.preventDefault();
    submit();
  };
  const onKey = (event) => {
    if (event.key === "Escape" && escape) {
      event.stopPropagation();
      escape();
    } else if (event.key === "Enter" && event.target.matches("input:not([type=checkbox])")) {
      event.preventDefault();
      event.currentTarget.requestSubmit();
    }
  };
  return h("form", { ...attributes, on: { submit: onSubmit, keydown: onKey } }, ...children);
}

/** A box to tick with its label. @param {boolean} [shown] whether the label is seen, or only read aloud */
export function checkbox(label, onChange, shown = true) {
  const box = h("input", {
    class: "wb-check",
    type: "checkbox",
    "aria-label": shown ? null : label,
    on: { change: () => onChange(box.checked) },
  });
  const element = shown ? h("label", { class: "wb-check-label" }, box, h("span", {}, label)) : box;
  return { box, element };
}

/** A button that copies a text, and says so. @param {() => string} text */
export function copyButton(text, name, announce) {
  const element = button("Copy", "wb-button", copy, name);
  async function copy() {
    const done = await copied(text());
    setText(element, done ? "Copied" : "Select it and press Ctrl+C");
    announce(done ? "Copied." : "The page may not copy.");
    setTimeout(() => setText(element, "Copy"), COPIED_MS);
  }
  return element;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no secure context, or not allowed
  }
}

/** Let a person keep a text as a file. */
export function download(filename, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(address), COPIED_MS);
}

/** Arrows, Home and End go between the rows of a table that can be opened. @param {KeyboardEvent} event */
export function walkRows(event, body) {
  if (event.ctrlKey || event.altKey || event.metaKey || !event.target.matches(".wb-opener")) return;
  const openers = [...body.querySelectorAll(".wb-opener")];
  const at = openers.indexOf(event.target);
  const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: openers.length - 1 }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  openers[target]?.focus();
}
