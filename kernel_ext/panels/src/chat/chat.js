/** The chat: conversations with models, one of them opened beside the list, and a form for a new one. */

import { button, moveBetweenRows, searchField } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { age, plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
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
    this.desk = { store, channel, announce };
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
    const keys = { keydown: (event) => moveBetweenRows(event, this.list) };
    this.list = h("ul", { class: "wb-conversations", "aria-label": "Conversations", on: keys });
    this.rows = new KeyedList(this.list, (key) => this.row(key));
    const left = h("div", { class: "wb-split-list" }, this.list);
    this.split = h("div", { class: "wb-split" }, left, this.conversation.element);
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

  row(id) {
    const name = button("", "wb-opener", () => this.open(id));
    const state = h("span", { class: "wb-label wb-cut" });
    const element = h("li", { class: "wb-entry" }, name, state);
    return { elements: [element], name, state };
  }

  /** Bring everything up to date. @param {boolean} [enabled] whether messages can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const all = this.conversations;
    const matching = all.filter((one) => one.id === this.opened || this.matches(one));
    setText(this.summary, all.length ? plural(all.length, "conversation") : "");
    this.search.hidden = all.length <= FEW && !this.text;
    this.empty.hidden = all.length > 0 || !this.store.loaded.has("conversations");
    this.rows.show(
      matching.map(({ id }) => id),
      (row, id) => this.drawRow(row, this.store.tables.conversations.get(id), now),
    );
    this.form?.refresh();
    this.drawOpened(now);
  }

  drawRow({ elements: [element], name, state }, conversation, now) {
    const { id, title, answer_id: answering, updated_at: at } = conversation;
    setText(name, title || "New conversation");
    const draft = this.conversation.composer.hasDraft(id) ? "draft" : null;
    setText(state, [draft, answering ? "answering…" : age(at, now)].filter(Boolean).join(" · "));
    element.classList.toggle("wb-active", id === this.opened);
    setAttribute(name, "aria-expanded", id === this.opened);
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
    const row = this.rows.items.get(this.opened);
    this.opened = null;
    this.update();
    row?.name.focus();
  }

  onDeleted(title) {
    this.opened = null;
    this.update();
    this.desk.announce(`${title || "The conversation"} is deleted.`);
    this.newButton.focus();
  }

  openForm() {
    this.form = new ConversationForm(this.desk, null, (made) => this.closeForm(made));
    this.formBox.replaceChildren(this.form.element);
    this.form.focus();
  }

  closeForm(made) {
    this.form = null;
    this.formBox.replaceChildren();
    this.newButton.focus();
    if (made) this.open(made.id);
  }
}
