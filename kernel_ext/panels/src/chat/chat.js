/** The chat: conversations with models, one of them opened beside the list, and a form for a new one. */

import { Button, OpenerList, html, render } from "../components/ui.js";
import { button, searchField } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { age, plural } from "../lib/format.js";
import { Cells, LastCell } from "../link/cells.js";
import { Conversation } from "./conversation.js";
import { ConversationForm } from "./conversation_form.js";

/** With so many conversations or fewer there is no text filter. */
const FEW = 6;

export class Chat {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.store = store;
    const cells = new Cells(channel.model);
    this.desk = { store, channel, announce, cells, lastCell: new LastCell(cells, signal) };
    this.text = "";
    /** The id of the conversation that is opened, whose row may not have come yet. @type {string|null} */
    this.opened = null;
    /** The form for a new conversation, while it is open. @type {ConversationForm|null} */
    this.form = null;
    const id = freshId("chat");
    const on = { close: () => this.close(), deleted: (title) => this.onDeleted(title) };
    this.conversation = new Conversation(this.desk, on, signal);
    this.formBox = h("div", {});
    this.empty = h("p", { class: "wb-empty", hidden: true });
    const link = button("New conversation…", "wb-link", () => this.openForm());
    this.empty.append("No conversations yet. Talk to the agent of a definition, or to a model alone. ", link);
    this.list = h("div", { class: "wb-split-list" });
    this.split = h("div", { class: "wb-split" }, this.list, this.conversation.element);
    const parts = [this.toolbar(id), this.formBox, this.empty, this.split];
    this.element = h("section", { class: "wb-section wb-stack wb-chat", "aria-labelledby": id }, ...parts);
  }

  toolbar(id) {
    this.summary = h("span", { class: "wb-muted wb-grow" });
    this.search = searchField("Filter conversations", "Filter conversations by title or definition", {
      input: () => {
        this.text = this.search.value.trim().toLowerCase();
        this.update();
      },
    });
    this.newButton = button("New conversation…", "wb-button", () => this.openForm());
    const heading = h("h3", { class: "wb-heading", id }, "Chat");
    return h("div", { class: "wb-toolbar" }, heading, this.summary, this.search, this.newButton);
  }

  /** The conversations, the one that was continued last first. */
  get conversations() {
    const rows = [...this.store.tables.conversations.values()];
    return rows.sort((one, other) => (one.updated_at < other.updated_at ? 1 : -1));
  }

  /** How many answers are being made. */
  count() {
    return this.conversations.filter(({ answer_id: id }) => id).length;
  }

  /** Bring everything up to date. @param {boolean} [enabled] whether messages can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const all = this.conversations;
    const matching = all.filter((conversation) => conversation.id === this.opened || this.matches(conversation));
    setText(this.summary, all.length ? plural(all.length, "conversation") : "");
    this.search.hidden = all.length <= FEW && !this.text;
    this.empty.hidden = all.length > 0 || !this.store.loaded.has("conversations");
    const rows = matching.map((conversation) => this.row(conversation, now));
    render(html`<${OpenerList} class="wb-conversations" aria-label="Conversations">${rows}<//>`, this.list);
    this.form?.refresh();
    this.drawOpened(now);
  }

  row({ id, title, definition, model, answer_id: answering, updated_at: at }, now) {
    const isOpen = id === this.opened;
    const draft = this.conversation.composer.hasDraft(id) ? "draft" : null;
    const asks = [...this.store.tables.approvals.values()].some(({ payload }) => payload.conversation_id === id);
    const since = asks ? "waits for you" : answering ? "answering…" : age(at, now);
    const state = [definition ?? model, draft, since].filter(Boolean).join(" · ");
    const opener = { label: title || "New conversation", "data-row": id, "aria-expanded": isOpen };
    return html`<li key=${id} class="wb-entry ${isOpen ? "wb-active" : ""}">
      <${Button} class="wb-opener" ...${opener} onClick=${() => this.open(id)} />
      <span class="wb-label wb-cut">${state}</span>
    </li>`;
  }

  /** Its row may come after it was opened, and go while it is open. */
  drawOpened(now) {
    const row = this.store.tables.conversations.get(this.opened);
    this.split.classList.toggle("wb-open", Boolean(row));
    if (!row) {
      if (!this.conversation.element.hidden) this.conversation.hide();
      return;
    }
    this.conversation.show(row);
    this.conversation.update(row, this.enabled, now);
    if (this.isFocusWanted) this.conversation.focus();
    this.isFocusWanted = false;
  }

  matches({ title, definition }) {
    const text = `${title}\n${definition ?? ""}`.toLowerCase();
    return this.text.split(/\s+/).every((word) => text.includes(word));
  }

  open(id) {
    this.opened = id;
    this.isFocusWanted = true;
    this.update();
  }

  close() {
    const id = this.opened;
    this.opened = null;
    this.update();
    this.list.querySelector(`[data-row="${CSS.escape(id)}"]`)?.focus();
  }

  onDeleted(title) {
    this.opened = null;
    this.update();
    this.desk.announce(`${title || "The conversation"} is deleted.`);
    this.newButton.focus();
  }

  openForm() {
    this.form = new ConversationForm(this.desk, null, (conversation) => this.closeForm(conversation));
    this.formBox.replaceChildren(this.form.element);
    this.form.focus();
  }

  closeForm(conversation) {
    this.form = null;
    this.formBox.replaceChildren();
    this.newButton.focus();
    if (conversation) this.open(conversation.id);
  }
}
