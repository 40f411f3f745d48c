/** A second question before something that cannot simply be undone. */

import { button, form, input } from "./controls.js";
import { h } from "./dom.js";

/** Ask in a box, under the button that opened it, which has the focus again when the question is cancelled. */
export function askIn(box, opener, words, onConfirm) {
  const cancel = () => {
    box.replaceChildren();
    opener.focus();
  };
  const confirm = new Confirm(words, onConfirm, cancel);
  box.replaceChildren(confirm.element);
  confirm.focus();
}

export class Confirm {
  /**
   * @param {object} words
   * @param {string} words.label of the button that does it
   * @param {string} words.consequence what happens then
   * @param {string} [words.reason] placeholder of the field for a reason; without it there is no field
   * @param {boolean} [words.danger] whether something may be lost
   * @param {string} [words.cancel] label of the other button
   * @param {HTMLElement} [words.control] a control that comes first
   * @param {(reason: string, button: HTMLElement) => Promise<unknown>} onConfirm
   * @param {() => void} onCancel
   */
  constructor({ label, consequence, reason, danger = true, cancel = "Cancel", control = null }, onConfirm, onCancel) {
    this.control = control;
    this.reason = reason
      ? input("", { class: "wb-input wb-grow", maxlength: 1000, placeholder: reason, "aria-label": "Reason" })
      : null;
    this.submit = h("button", { class: `wb-button ${danger ? "wb-danger" : "wb-primary"}`, type: "submit" }, label);
    this.element = form(
      { class: "wb-confirm wb-stack" },
      { submit: () => onConfirm(this.reason?.value.trim() ?? "", this.submit), escape: onCancel },
      h("p", { class: "wb-muted" }, consequence),
      h("div", { class: "wb-line" }, control, this.reason, this.submit, button(cancel, "wb-button", onCancel)),
    );
  }

  focus() {
    (this.control ?? this.reason ?? this.submit).focus();
  }
}
