/** Undo: for ten seconds after a change a message with a button, which takes it back if nothing has happened since. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "./request_runner.js";

const OFFERED_MS = 10_000;
const EVENT = "wb-undo";

/**
 * Offer to undo what was just done from an element of the desk.
 * @param {HTMLElement} element
 * @param {{text: string, op?: string, args: object}} done what was done, and the operation that undoes it
 */
export function offerUndo(element, { text, op = "undo", args }) {
  element.dispatchEvent(new CustomEvent(EVENT, { bubbles: true, detail: { text, op, args } }));
}

/** The message at the lower edge of the desk. It is announced; Ctrl+Z is the same as its button. */
export class UndoToast {
  /** @param {{channel: import("./channel.js").Channel, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.text = h("span", { class: "wb-grow" });
    this.button = button("Undo", "wb-button", () => this.undo());
    this.element = h("div", { class: "wb-undo", role: "group", "aria-label": "Undo", hidden: true });
    this.element.append(this.text, this.button);
    signal.addEventListener("abort", () => clearTimeout(this.timer), { once: true });
  }

  /** Listen to all that happens in the desk. @param {HTMLElement} region */
  listenTo(region) {
    region.addEventListener(EVENT, ({ detail }) => this.offer(detail));
    region.addEventListener("keydown", (event) => this.onKey(event));
  }

  offer(done) {
    this.done = done;
    setText(this.text, done.text);
    this.button.hidden = false;
    this.show(OFFERED_MS);
    this.desk.announce(`${done.text} You can undo it for ten seconds.`);
  }

  /** Show it for a while. The focus does not get lost with it. @param {number} ms */
  show(ms) {
    clearTimeout(this.timer);
    this.element.hidden = false;
    this.timer = setTimeout(() => this.hide(), ms);
  }

  hide() {
    clearTimeout(this.timer);
    this.done = null;
    const focused = this.element.contains(document.activeElement);
    this.element.hidden = true;
    if (focused) this.element.closest(".wb-desk")?.querySelector("[role=tab][aria-selected=true]")?.focus();
  }

  async undo() {
    const { done } = this;
    if (!done || this.requests.busy) return;
    clearTimeout(this.timer);
    const undone = await this.requests.run(done.op, done.args, this.button, "Undoing…");
    if (this.done !== done) return;
    if (undone) {
      this.hide();
      this.desk.announce("Undone.");
      return;
    }
    this.done = null; // it was refused: the reason stays for a while
    this.button.hidden = true;
    setText(this.text, this.requests.error?.message ?? "It could not be undone.");
    this.show(OFFERED_MS);
  }

  onKey(event) {
    const isUndo = event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!isUndo || !this.done || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    event.stopPropagation();
    this.undo();
  }
}
