/** One conversation, opened: its head, its turns as they come, and where the person writes. */

import { askIn } from "../lib/confirm.js";
import { button, download } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { dollars, plural } from "../lib/format.js";
import { KeyedList } from "../lib/keyed_list.js";
import { RequestRunner } from "../link/request_runner.js";
import { Composer } from "./composer.js";
import { ConversationForm } from "./conversation_form.js";
import { Following } from "./following.js";
import { TurnView } from "./turn.js";

/** So near to its end the transcript follows what comes. */
const NEAR_PX = 40;
const EXPORTS = { markdown: "Markdown", notebook: "Notebook" };
const REMOVAL = {
  consequence: "Its messages are deleted, and an answer that is being made is stopped. Calls of tools stay recorded.",
};

export class Conversation {
  /** @param {any} desk @param {{close: () => void, deleted: (title: string) => void}} on @param {AbortSignal} signal */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.on = on;
    this.requests = new RequestRunner(desk);
    const id = freshId("conversation");
    this.title = h("h4", { class: "wb-pane-title wb-cut", id, tabindex: -1 });
    this.facts = h("span", { class: "wb-muted wb-grow wb-cut" });
    this.box = h("div", {});
    this.earlier = button("Show earlier messages", "wb-link", () => this.showEarlier());
    this.list = h("ol", { class: "wb-turns" });
    this.empty = h("p", { class: "wb-empty", hidden: true }, "Nothing is written yet.");
    const scroll = { class: "wb-transcript", role: "log", tabindex: 0, "aria-label": "Messages" };
    this.scroll = h("div", scroll, this.earlier, this.empty, this.list);
    this.composer = new Composer(desk, () => {
      this.isAtEnd = true;
      this.following.now();
    });
    this.element = h("section", { class: "wb-conversation wb-stack", "aria-labelledby": id, hidden: true });
    this.following = new Following(desk, this.element, () => this.draw(), signal);
    this.views = new KeyedList(this.list, (key) => this.view(key), { onRemove: (view) => view.stop() });
    const errors = [this.requests.errorBox, this.following.requests.errorBox];
    this.element.append(this.head(), this.box, ...errors, this.scroll, this.composer.element);
  }

  head() {
    const link = (label, onClick) => button(label, "wb-link wb-quiet", onClick);
    this.settings = link("Settings…", () => this.openSettings());
    this.remove = link("Delete…", () => this.askDelete());
    const exports = Object.entries(EXPORTS).map(([format, label]) =>
      button(label, "wb-link wb-quiet", () => this.export(format), `Save as ${label}`),
    );
    const close = button("×", "wb-close", this.on.close, "Close the conversation");
    const actions = h("div", { class: "wb-line" }, ...exports, this.settings, this.remove);
    return h("div", { class: "wb-pane-head" }, this.title, this.facts, actions, close);
  }

  view(id) {
    const { role } = this.following.transcript.turn(id);
    return new TurnView(this.desk, role, (pressed) => this.retry(id, pressed));
  }

  /** Show a conversation. @param {any} row */
  show(row) {
    const isOther = row.id !== this.row?.id;
    this.row = row;
    this.element.hidden = false;
    if (isOther) {
      this.views.show([], () => {});
      this.box.replaceChildren();
      this.requests.clearError();
      this.isAtEnd = true;
      this.following.begin(row.id);
      this.composer.begin(row.id);
    }
  }

  hide() {
    this.row = null;
    this.element.hidden = true;
    this.following.begin(null);
  }

  /** Bring up to date what does not come with the frames. @param {any} row @param {boolean} enabled @param {number} now in ms */
  update(row, enabled, now) {
    const hasBegun = row.answer_id && row.answer_id !== this.row.answer_id;
    this.row = row;
    this.enabled = enabled;
    setText(this.title, row.title || "New conversation");
    setText(this.facts, factsOf(row));
    this.updateViews(enabled, now);
    if (hasBegun) this.following.now();
  }

  updateViews(enabled, now) {
    const views = [...this.views.items.values()];
    for (const view of views) view.update(enabled, now);
    const isAnswering = Boolean(this.following.transcript.running);
    const waiting = isAnswering ? views.map((view) => view.waiting).find(Boolean) : undefined;
    this.composer.update(enabled, isAnswering, waiting);
  }

  draw() {
    const { transcript } = this.following;
    const { scroll } = this;
    const isAtEnd = this.isAtEnd || scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < NEAR_PX;
    const last = transcript.turns.at(-1)?.id;
    this.views.show(
      transcript.turns.map(({ id }) => id),
      (view, id) => view.show({ ...transcript.turn(id), definition: this.row?.definition }, id === last),
    );
    this.earlier.hidden = transcript.before === null;
    this.empty.hidden = transcript.turns.length > 0;
    this.updateViews(this.enabled, Date.now());
    if (isAtEnd) scroll.scrollTop = scroll.scrollHeight;
    this.isAtEnd = false;
  }

  async showEarlier() {
    const { scroll } = this;
    const below = scroll.scrollHeight - scroll.scrollTop;
    try {
      await this.following.readEarlier();
    } catch (error) {
      return this.requests.showError(error);
    }
    scroll.scrollTop = scroll.scrollHeight - below; // the turns in view stay where they are
    return scroll.focus();
  }

  async retry(id, pressed) {
    const args = { conversation_id: this.row.id, turn_id: id };
    await this.requests.run("retry_answer", args, pressed, "Asking again…");
    this.isAtEnd = true;
    this.following.now();
  }

  openSettings() {
    const form = new ConversationForm(this.desk, this.row, () => {
      this.box.replaceChildren();
      this.settings.focus();
    });
    this.box.replaceChildren(form.element);
    form.focus();
  }

  askDelete() {
    const { title } = this.row;
    askIn(this.box, this.remove, { ...REMOVAL, label: "Delete the conversation" }, async (_, pressed) => {
      const outcome = await this.requests.run("delete_conversation", { conversation_id: this.row.id }, pressed);
      if (outcome) this.on.deleted(title);
    });
  }

  async export(format) {
    const file = await this.requests.run("export_conversation", { conversation_id: this.row.id, format });
    if (file) download(file.filename, file.media_type, file.content);
  }

  focus() {
    this.composer.focus();
  }
}

function factsOf({ definition, model, usage }) {
  const { input_tokens: read, output_tokens: written, cost_usd: cost } = usage;
  const tokens = read === null && written === null ? null : plural((read ?? 0) + (written ?? 0), "token");
  const price = cost === null ? null : dollars(cost);
  return [definition, model, tokens, price].filter(Boolean).join(" · ");
}
