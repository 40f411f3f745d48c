/** Asking the kernel for one thing at a time, and showing in place what was refused. */

import { requestId } from "./channel.js";
import { enable } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { errorContent } from "../lib/message.js";

export class Asker {
  /** @param {{channel: import("./channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.sending = false;
    /** The request to send again when no answer came. */
    this.unanswered = null;
    this.problem = h("div", { class: "wb-message wb-error", id: freshId("problem"), hidden: true });
  }

  /** Send a request. The same one asked again after silence keeps its id: it is done only once. */
  async send(op, args) {
    const asked = JSON.stringify([op, args]);
    if (this.unanswered?.asked !== asked) this.unanswered = { asked, id: requestId() };
    try {
      const outcome = await this.desk.channel.request(this.unanswered.id, op, args);
      this.unanswered = null;
      return outcome;
    } catch (error) {
      if (error.code !== "NO_ANSWER") this.unanswered = null;
      throw error;
    }
  }

  /**
   * Send what a button asks for; the button says so meanwhile.
   * @returns {Promise<any>} the outcome, or null when it was refused: then the problem is shown
   */
  async ask(op, args, pressed = null, busy = "Working…") {
    if (this.sending) return null;
    this.sending = true;
    this.clear();
    const label = pressed?.textContent;
    if (pressed) pressed.textContent = busy;
    enable(false, pressed);
    try {
      return await this.send(op, args);
    } catch (error) {
      this.show(error);
      return null;
    } finally {
      this.sending = false;
      if (pressed) pressed.textContent = label;
      enable(true, pressed);
    }
  }

  /** @param {import("./channel.js").CodedError} error */
  show(error) {
    this.problem.replaceChildren(...errorContent(error));
    this.problem.hidden = false;
    this.desk.announce(error.message);
  }

  clear() {
    this.problem.hidden = true;
  }
}
