/** One turn: what the person wrote, or an answer with its text, what the model thinks, and its calls of tools. */

import { errorContent } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { dollars } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Markdown } from "../contents/markdown.js";
import { ToolCard } from "./tool_card.js";

const ENDINGS = {
  stopped: "You stopped this answer.",
  interrupted: "Workbench ended before the answer did.",
};

export class TurnView {
  /** @param {any} desk @param {"user"|"assistant"} role @param {(button: HTMLElement) => void} onRetry */
  constructor(desk, role, onRetry) {
    this.desk = desk;
    this.role = role;
    /** Its parts on screen, in their order. */
    this.parts = [];
    this.who = h("div", { class: "wb-label" }, role === "user" ? "You" : "");
    this.content = h("div", { class: "wb-stack" });
    this.note = h("div", { class: "wb-message", hidden: true });
    this.usage = h("span", { class: "wb-label" });
    this.retry = button("Try again", "wb-link", () => onRetry(this.retry));
    this.end = h("div", { class: "wb-line wb-turn-end" }, this.usage, this.retry);
    const parts = [this.who, this.content, this.note, this.end];
    this.element = h("li", { class: `wb-chat-turn wb-from-${role}` }, ...parts);
    this.elements = [this.element];
  }

  /** @param {import("./transcript.js").Turn} turn @param {boolean} isLast whether it is the last of the conversation */
  show(turn, isLast) {
    this.turn = turn;
    turn.parts.forEach((part, at) => this.showPart(part, at));
    for (const { element } of this.parts.splice(turn.parts.length)) element.remove();
    if (this.role === "user") {
      this.end.hidden = true;
      return;
    }
    const { state, model, definition } = turn;
    setText(this.who, definition ?? model ?? "Answer");
    this.drawNote(turn);
    setText(this.usage, state === "running" ? "" : usageText(turn));
    this.retry.hidden = !isLast || state === "running";
    this.end.hidden = this.retry.hidden && !this.usage.textContent;
  }

  showPart(part, at) {
    const before = this.parts[at];
    if (before?.type === part.type) return before.show(part);
    const view = {
      type: part.type,
      ...MAKE[part.type === "text" && this.role === "user" ? "plain" : part.type](this.desk),
    };
    if (before) before.element.replaceWith(view.element);
    else this.content.append(view.element);
    this.parts[at] = view;
    return view.show(part);
  }

  drawNote({ state, parts, notice, remark, error_code: code, error }) {
    const key = JSON.stringify([state, parts.length, notice, remark, code, error]);
    if (key === this.drawnNote) return;
    this.drawnNote = key;
    const text =
      notice ?? remark ?? ENDINGS[state] ?? (state === "running" && !parts.length ? "Waiting for the model…" : null);
    const isError = state === "failed";
    this.note.hidden = !isError && text === null;
    this.note.classList.toggle("wb-error", isError);
    const mark = state === "running" ? "in_progress" : "cancelled";
    const content = isError ? errorContent({ code, message: error ?? "The answer failed." }) : [icon(mark), text];
    this.note.replaceChildren(...content.filter(Boolean));
  }

  /** Bring up to date what is not part of the turn: the questions about its tools. */
  update(enabled, now) {
    for (const { card } of this.parts) card?.update(enabled, now);
  }

  /** The call that waits for the person's decision. @returns {ToolCard|undefined} */
  get waiting() {
    return this.parts.find(({ card }) => card?.isWaiting)?.card;
  }

  stop() {
    for (const { card } of this.parts) card?.stop();
  }
}

/** How each part is made: its element, and what shows it. */
const MAKE = {
  plain: () => {
    const element = h("p", { class: "wb-prose" });
    return { element, show: ({ text }) => setText(element, text) };
  },
  text: (desk) => {
    const markdown = new Markdown(desk);
    return { element: markdown.element, show: ({ text }) => markdown.show(text) };
  },
  thinking: () => {
    const text = h("p", { class: "wb-prose wb-muted" });
    const summary = h("summary", { class: "wb-muted", tabindex: 0 }, "Thinking");
    return { element: h("details", { class: "wb-thinking" }, summary, text), show: (part) => setText(text, part.text) };
  },
  notice: () => {
    const text = h("span", {});
    const element = h("p", { class: "wb-message" }, icon("hint"), text);
    return { element, show: (part) => setText(text, part.text) };
  },
  tool: (desk) => {
    const card = new ToolCard(desk);
    return { element: card.element, card, show: (part) => card.show(part) };
  },
};

/** "1,204 tokens in (1,000 cached), 88 out · $0.0031 · first word after 0.8 s"; what the provider did not report is left out. */
function usageText({ model, cost_usd: cost, first_token_seconds: first, ...tokensOf }) {
  const { input_tokens: read, output_tokens: written, cached_tokens: cached, thinking_tokens: thought } = tokensOf;
  const number = (value) => value.toLocaleString("en");
  const part = (value, word) => (value ? ` (${number(value)} ${word})` : "");
  const tokens = [
    read && `${number(read)} tokens in${part(cached, "cached")}`,
    written && `${number(written)} out${part(thought, "thinking")}`,
  ]
    .filter(Boolean)
    .join(", ");
  const wait = first >= 0.1 ? `first word after ${first.toFixed(1)} s` : null;
  const price = typeof cost === "number" ? dollars(cost) : null;
  return [model, tokens, price, wait].filter(Boolean).join(" · ");
}
