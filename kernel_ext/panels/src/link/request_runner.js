/** The requests of one part of the panel: one at a time, with a place that shows what went wrong. */

import { errorContent } from "../lib/blocks.js";
import { enable } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { requestId } from "./channel.js";

export class RequestRunner {
  /** @param {{channel: import("./channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.busy = false;
    /** The request that was not answered, to be repeated under its id. */
    this.unanswered = null;
    /** The last error. @type {import("./channel.js").CodedError|null} */
    this.error = null;
    this.errorBox = h("div", { class: "wb-message wb-error", id: freshId("error"), hidden: true });
  }

  /** Send a request. One that was not answered keeps its id when it is sent again: it is run only once. */
  async send(op, args) {
    const key = JSON.stringify([op, args]);
    if (this.unanswered?.key !== key) this.unanswered = { key, id: requestId() };
    const sent = this.unanswered;
    try {
      const outcome = await this.desk.channel.request(sent.id, op, args);
      this.forget(sent);
      return outcome;
    } catch (error) {
      if (error.code !== "NO_ANSWER") this.forget(sent);
      throw error;
    }
  }

  /** A request was answered; another one may have been sent meanwhile. */
  forget(sent) {
    if (this.unanswered === sent) this.unanswered = null;
  }

  /**
   * Send a request for a button, which shows `label` until the answer comes.
   * @returns {Promise<any>} the result, or null after an error, which is shown
   */
  async run(op, args, button = null, label = "Working…") {
    if (this.busy) return null;
    this.busy = true;
    this.clearError();
    const before = button?.textContent;
    if (button) button.textContent = label;
    enable(false, button);
    try {
      return await this.send(op, args);
    } catch (error) {
      this.showError(error);
      return null;
    } finally {
      this.busy = false;
      if (button) button.textContent = before;
      enable(true, button);
    }
  }

  /** Show an error in place. The same one is announced once. @param {Error & {code?: string}} error */
  showError(error) {
    const isSame = this.error?.message === error.message;
    this.error = error;
    this.errorBox.hidden = false;
    if (isSame) return;
    this.errorBox.replaceChildren(...errorContent(error));
    this.desk.announce(error.message);
  }

  clearError() {
    this.error = null;
    this.errorBox.hidden = true;
  }
}
