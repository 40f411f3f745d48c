/**
 * Undo: for ten seconds after a change a message with a button, which takes it back if nothing has happened since. Under
 * the pointer or the focus the message stays longer, as long as the kernel would still undo the change.
 */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { RequestRunner } from "./request_runner.js";

const OFFERED_MS = 10_000;
/** How much longer it stays under the pointer or the focus: a second less than the kernel gives for it. */
const HELD_MS = 4_000;
const EVENT = "wb-undo";

/**
 * Offer to undo what was just done from an element of the desk.
 * @param {HTMLElement} element
 * @param {{text: string, changes: {subject: string, kind: string}[]}} done what was done, and the events that it made
 */
export function offerUndo(element, { text, changes }) {
  element.dispatchEvent(new CustomEvent(EVENT, { bubbles: true, detail: { text, changes } }));
}

/** The message at the lower edge of the desk. It is announced; Ctrl+Z is the same as its button. */
export class UndoToast {
  /** @param {{channel: import("./channel.js").Channel, announce: (text: string) => void}} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.text = h("span", { class: "wb-grow" });
    this.button = button("Undo", "wb-button", () => this.undo());
    const left = () => this.isOver && !this.isHeld && this.hide();
    const on = { pointerleave: left, focusout: () => requestAnimationFrame(left) };
    this.element = h("div", { class: "wb-undo", role: "group", "aria-label": "Undo", hidden: true, on });
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
    this.isOver = false;
    this.element.hidden = false;
    this.timer = setTimeout(() => this.end(), ms);
  }

  get isHeld() {
    return this.element.matches(".wb-undo:hover, .wb-undo:focus-within");
  }

  /** Its time is over. */
  end() {
    if (!this.isHeld) return this.hide();
    this.isOver = true;
    this.timer = setTimeout(() => this.hide(), HELD_MS);
    return undefined;
  }

  hide() {
    clearTimeout(this.timer);
    this.done = null;
    this.isOver = false;
    const focused = this.element.contains(document.activeElement);
    this.element.hidden = true;
    if (focused) this.element.closest(".wb-desk")?.querySelector("[role=tab][aria-selected=true]")?.focus();
  }

  async undo() {
    const { done } = this;
    if (!done || this.requests.busy) return;
    clearTimeout(this.timer);
    const refused = await this.undoAll(done.changes);
    if (this.done !== done) return;
    if (!refused.length) {
      this.hide();
      this.desk.announce("Undone.");
      return;
    }
    this.done = null; // the reason stays for a while
    this.button.hidden = true;
    const count = done.changes.length;
    const some = count > 1 ? `${refused.length} of ${plural(count, "change")} could not be undone. ` : "";
    setText(this.text, `${some}${refused[0].message}`);
    this.show(OFFERED_MS);
  }

  /** Undo changes one after the other, the last one first. @returns {Promise<Error[]>} why some were refused */
  async undoAll(changes) {
    const refused = [];
    for (const change of [...changes].reverse()) {
      if (!(await this.requests.run("undo", change, this.button, "Undoing…"))) refused.push(this.requests.error);
    }
    return refused;
  }

  onKey(event) {
    const isUndo = event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!isUndo || !this.done || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    event.stopPropagation();
    this.undo();
  }
}
