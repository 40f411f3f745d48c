/** Where a person writes. What was typed stays until it is sent, in each conversation by itself. */

import { button, enable, form, textarea } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

const HINT = "Enter sends, Shift+Enter starts a new line.";
const ANSWERING = "The answer is being made. You can write the next message meanwhile.";
const WAITING = "The answer waits for your decision about a tool.";
const MOST_LINES = 12;

export class Composer {
  /** @param {any} desk @param {() => void} onSent a question was asked, or an answer stopped */
  constructor(desk, onSent) {
    this.onSent = onSent;
    this.requests = new RequestRunner(desk);
    this.stopping = new RequestRunner(desk);
    /** What was typed and not sent, by the id of the conversation. @type {Map<string, string>} */
    this.drafts = new Map();
    /** @type {string|null} */
    this.id = null;
    this.text = textarea("", 2, {
      class: "wb-input wb-area wb-composer-text",
      "aria-label": "Message",
      placeholder: "Write a message",
      maxlength: 200_000,
      spellcheck: "true",
      on: { input: () => this.onInput(), keydown: (event) => this.onKey(event) },
    });
    this.send = h("button", { class: "wb-button wb-primary", type: "submit" }, "Send");
    this.stop = button("Stop", "wb-button", () => this.stopAnswer(), "Stop the answer");
    this.hint = h("span", { class: "wb-label wb-grow" }, HINT);
    this.decide = button(
      "Decide",
      "wb-button wb-primary",
      () => this.waiting.focus(),
      "Go to the question about the tool",
    );
    this.decide.hidden = true;
    const line = h("div", { class: "wb-line" }, this.hint, this.decide, this.stop, this.send);
    const errors = [this.requests.errorBox, this.stopping.errorBox];
    const on = { submit: () => this.submit() };
    this.element = form({ class: "wb-composer wb-stack", "aria-label": "Write" }, on, this.text, line, ...errors);
    this.stop.hidden = true;
  }

  /** Write in another conversation. @param {string|null} id */
  begin(id) {
    if (id === this.id) return;
    this.id = id;
    this.text.value = this.drafts.get(id) ?? "";
    this.requests.clearError();
    this.stopping.clearError();
    this.grow();
  }

  /**
   * @param {boolean} enabled whether messages can be sent
   * @param {boolean} isAnswering whether an answer is being made
   * @param {{focus: () => void}} [waiting] the call that waits for the person's decision meanwhile
   */
  update(enabled, isAnswering, waiting) {
    this.enabled = enabled;
    this.isAnswering = isAnswering;
    this.waiting = waiting;
    const gone = [!isAnswering && this.stop, !waiting && this.decide];
    const hadFocus = gone.includes(document.activeElement);
    this.stop.hidden = !isAnswering;
    this.decide.hidden = !waiting;
    if (hadFocus) this.text.focus();
    if (!this.requests.busy) enable(this.canSend, this.send);
    enable(enabled, this.stop);
    setText(this.hint, waiting ? WAITING : isAnswering ? ANSWERING : HINT);
  }

  get canSend() {
    return Boolean(this.enabled && !this.isAnswering && this.text.value.trim());
  }

  /** Whether something is typed that was not sent. @param {string} id of a conversation */
  hasDraft(id) {
    return Boolean(this.drafts.get(id)?.trim());
  }

  focus() {
    this.text.focus();
  }

  onInput() {
    this.drafts.set(this.id, this.text.value);
    this.update(this.enabled, this.isAnswering, this.waiting);
    this.grow();
  }

  /** The field grows with its text. */
  grow() {
    const lines = this.text.value.split("\n").length;
    this.text.rows = Math.min(MOST_LINES, Math.max(2, lines));
  }

  onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would run the cell
    this.element.requestSubmit();
  }

  async submit() {
    if (!this.canSend || this.requests.busy) return;
    const { id } = this;
    const content = this.text.value;
    const outcome = await this.requests.run("ask", { conversation_id: id, content }, this.send, "Sending…");
    if (outcome && this.drafts.get(id) === content) this.clear(id);
    this.onSent();
    this.update(this.enabled, this.isAnswering, this.waiting);
  }

  /** What was sent is no draft any more; what was typed since then is. */
  clear(id) {
    this.drafts.delete(id);
    if (id === this.id) this.text.value = "";
    this.grow();
  }

  async stopAnswer() {
    await this.stopping.run("stop_answer", { conversation_id: this.id }, this.stop, "Stopping…");
    this.onSent();
  }
}
