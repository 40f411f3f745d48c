/** One more question before something is done that cannot simply be undone. */

import { button, form, input } from "./controls.js";
import { h } from "./dom.js";

export class Confirm {
  /**
   * @param {{label: string, why: string, reason?: string, danger?: boolean}} words what the button says, what
   *   follows from it, and, if a reason may be given, what stands in its empty field
   * @param {(reason: string, pressed: HTMLElement) => Promise<unknown>} act
   * @param {() => void} onClose
   */
  constructor({ label, why, reason, danger = true }, act, onClose) {
    this.onClose = onClose;
    this.reason = reason ? input("", { class: "wb-input wb-grow", maxlength: 1000, placeholder: reason, "aria-label": "Reason" }) : null;
    this.really = h("button", { class: `wb-button ${danger ? "wb-danger" : "wb-primary"}`, type: "submit" }, label);
    this.element = form(
      { class: "wb-confirm" },
      { submit: () => act(this.reason?.value.trim() ?? "", this.really), escape: onClose },
      h("p", { class: "wb-muted" }, why),
      h("div", { class: "wb-line" }, this.reason, this.really, button("Cancel", "wb-button", onClose)),
    );
  }

  focus() {
    (this.reason ?? this.really).focus();
  }
}
