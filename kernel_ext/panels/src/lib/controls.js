/** Buttons, fields, choices and forms. Each has a name for screen readers, and none loses the focus when it is disabled. */

import { freshId, h, setAttribute, setText } from "./dom.js";

const COPIED_MS = 2_000;

/** A button. @param {string} [name] for screen readers, where the label is not enough */
export function button(label, className, onClick, name) {
  const click = (event) => event.currentTarget.getAttribute("aria-disabled") !== "true" && onClick(event);
  return h("button", { class: className, type: "button", "aria-label": name, on: { click } }, label);
}

/** Enable or disable buttons; a disabled one keeps the focus. @param {boolean} on @param {...(HTMLElement|null)} buttons */
export function enable(on, ...buttons) {
  for (const element of buttons) element?.setAttribute("aria-disabled", String(!on));
}

/** A line of text to type. @param {string} value @param {Record<string, any>} [attributes] */
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

/** Lines of text to type. @param {string} value @param {number} rows @param {Record<string, any>} [attributes] */
export function textarea(value, rows, attributes = {}) {
  const shared = { class: "wb-input wb-area", value, rows, spellcheck: "false", autocomplete: "off" };
  return h("textarea", { ...shared, ...attributes });
}

/** A field that filters as a person types. @param {string} placeholder @param {string} name @param {Record<string, Function>} on */
export function searchField(placeholder, name, on) {
  return h("input", { class: "wb-input wb-search", type: "search", placeholder, "aria-label": name, on });
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
 * Replace the options of a choice, when they differ. A value that is no longer among them becomes the first.
 * @param {HTMLSelectElement} element
 * @param {[string, Iterable<[string, string]>][]} groups label of a group ("" for none) and its options
 */
export function setOptions(element, groups, value = element.value) {
  const lists = groups.map(([label, options]) => [label, [...options]]);
  const key = JSON.stringify(lists);
  if (element.dataset.options !== key) {
    element.dataset.options = key;
    element.replaceChildren(...lists.flatMap(([label, options]) => group(label, options)));
  }
  element.value = value;
  if (element.selectedIndex < 0) element.selectedIndex = 0;
}

function group(label, options) {
  const elements = options.map(([id, name]) => h("option", { value: id }, name));
  return label ? [h("optgroup", { label }, ...elements)] : elements;
}

/** A control with its label above it. */
export function field(label, control) {
  control.id = freshId("field");
  return h("div", { class: "wb-field" }, h("label", { for: control.id }, label), control);
}

/**
 * A form. Enter in a text field submits it by hand: inside a notebook browsers do not.
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

/** The last line of a form: its submit button, and one that cancels. */
export function formButtons(submit, onCancel, ...before) {
  return h("div", { class: "wb-line" }, ...before, submit, button("Cancel", "wb-button", onCancel));
}

/** A checkbox. @param {string} label @param {(on: boolean) => void} onChange @param {boolean} [visible] false: the label is only for screen readers */
export function checkbox(label, onChange, visible = true) {
  const box = h("input", {
    class: "wb-check",
    type: "checkbox",
    "aria-label": visible ? null : label,
    on: { change: () => onChange(box.checked) },
  });
  const element = visible ? h("label", { class: "wb-check-label" }, box, h("span", {}, label)) : box;
  return { box, element };
}

/** A button that copies a text. @param {() => string} text @param {string} name @param {(text: string) => void} announce */
export function copyButton(text, name, announce) {
  const element = button("Copy", "wb-button", copy, name);
  async function copy() {
    const done = await copied(text());
    setText(element, done ? "Copied" : "Select it and press Ctrl+C");
    announce(done ? "Copied." : "The browser did not allow copying. Select the text and press Ctrl+C.");
    setTimeout(() => setText(element, "Copy"), COPIED_MS);
  }
  return element;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // not in a secure context, or not allowed
  }
}

/** Save a text as a file on the person's computer. */
export function download(filename, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: filename }).click();
  setTimeout(() => URL.revokeObjectURL(address), COPIED_MS);
}

/** In a table whose rows can be opened, arrows, Home and End move between the rows. @param {KeyboardEvent} event */
export function moveBetweenRows(event, body) {
  if (event.ctrlKey || event.altKey || event.metaKey || !event.target.matches(".wb-opener")) return;
  const openers = [...body.querySelectorAll(".wb-opener")];
  const at = openers.indexOf(event.target);
  const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: openers.length - 1 }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  openers[target]?.focus();
}

/** A choice between a few views of the same things: buttons joined to one. */
export class Segments {
  /**
   * @param {Record<string, string>} labels by key
   * @param {string} name for screen readers
   * @param {(key: string) => void} onChoose
   */
  constructor(labels, name, onChoose) {
    this.buttons = Object.fromEntries(
      Object.entries(labels).map(([key, label]) => [key, button(label, "wb-segment", () => onChoose(key))]),
    );
    this.element = h(
      "div",
      { class: "wb-segments", role: "group", "aria-label": name },
      ...Object.values(this.buttons),
    );
  }

  /** @param {string} chosen */
  show(chosen) {
    for (const [key, element] of Object.entries(this.buttons)) setAttribute(element, "aria-pressed", key === chosen);
  }

  /** @param {string} key @param {string} label */
  setLabel(key, label) {
    setText(this.buttons[key], label);
  }
}
