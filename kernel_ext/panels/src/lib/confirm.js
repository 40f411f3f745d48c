/** One more question before something is done that cannot simply be undone. */

import { button, form, input } from "./controls.js";
import { h } from "./dom.js";

export class Confirm {
  /**
   * @param {{label: string, why: string, reason?: string, danger?: boolean, keep?: string, before?: HTMLElement}} words
   *   what the button says, what follows from it, and, if a reason may be given, what stands in its empty field;
   *   what the other button says, and a control that comes first
   * @param {(reason: string, pressed: HTMLElement) => Promise<unknown>} act
   * @param {() => void} onClose
   */
  constructor({ label, why, reason, danger = true, keep = "Cancel", before = null }, act, onClose) {
    this.before = before;
    this.onClose = onClose;
    this.reason = reason
      ? input("", { class: "wb-input wb-grow", maxlength: 1000, placeholder: reason, "aria-label": "Reason" })
      : null;
    this.really = h("button", { class: `wb-button ${danger ? "wb-danger" : "wb-primary"}`, type: "submit" }, label);
    this.element = form(
      { class: "wb-confirm wb-stack" },
      { submit: () => act(this.reason?.value.trim() ?? "", this.really), escape: onClose },
      h("p", { class: "wb-muted" }, why),
      h("div", { class: "wb-line" }, before, this.reason, this.really, button(keep, "wb-button", onClose)),
    );
  }

  focus() {
    (this.before ?? this.reason ?? this.really).focus();
  }
}
