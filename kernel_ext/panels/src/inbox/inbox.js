/** The approvals inbox: one card for each question, oldest first; a card in use is never torn away. */

import { Bulk } from "./bulk.js";
import { Card } from "./card.js";
import { freshId, h, setText } from "../lib/dom.js";
import { counted } from "../lib/format.js";

const LINGER_MS = 4_000;

export class Inbox {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.store = store;
    this.channel = channel;
    this.announce = announce;
    this.signal = signal;
    /** @type {Map<number, Card>} */
    this.cards = new Map();
    this.filled = false;
    const id = freshId("inbox");
    this.heading = h("h3", { class: "wb-heading", id, tabindex: -1 }, "Waiting for you");
    this.count = h("span", { class: "wb-badge wb-badge-strong", hidden: true });
    this.list = h("ul", { class: "wb-cards", "aria-labelledby": id });
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "Nobody is waiting. An agent that registers appears here at once; ",
      h("code", {}, "%workbench connect"),
      " says how agents connect.",
    );
    this.bulk = new Bulk({ store, channel, announce }, () => this.registrations());
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h("div", { class: "wb-toolbar" }, this.heading, this.count),
      this.empty,
      this.bulk.element,
      this.list,
    );
  }

  /** How many questions are open. */
  get waiting() {
    return this.store.tables.approvals.size;
  }

  /** The cards that can be decided together. */
  registrations() {
    return [...this.cards.values()].filter(
      ({ state, approval }) => state === "waiting" && approval.kind === "registration",
    );
  }

  /** Bring the cards up to date. @param {boolean} enabled @param {number} now in ms */
  update(enabled, now) {
    const rows = this.store.tables.approvals;
    const known = this.store.version !== null;
    const arrived = [...rows.values()].filter(({ id }) => !this.cards.has(id)).map((row) => this.add(row));
    for (const card of this.cards.values()) {
      if (rows.has(card.approval.id)) card.take(rows.get(card.approval.id));
      else this.leave(card);
      card.refresh(enabled);
      card.tick(now);
    }
    this.bulk.update(enabled);
    if (this.filled && arrived.length) this.tellArrived(arrived);
    this.filled ||= known;
    setText(this.count, String(rows.size));
    this.count.hidden = rows.size === 0;
    this.empty.hidden = !known || this.cards.size > 0;
  }

  tick(now) {
    for (const card of this.cards.values()) card.tick(now);
  }

  add(row) {
    const card = new Card(row, {
      channel: this.channel,
      announce: this.announce,
      tables: this.store.tables,
      onPicked: () => this.bulk.update(),
      onSettled: (settled) => this.linger(settled),
      onDismissed: (dismissed) => this.remove(dismissed),
    });
    this.cards.set(row.id, card);
    this.list.append(card.element);
    return card;
  }

  /** The question is no longer open. What the person does here right now is finished first. */
  leave(card) {
    if (card.state !== "waiting") return;
    if (!card.problem.hidden) card.settleWithProblem();
    else if (card.touched) card.settle("Decided elsewhere.", false);
    else this.remove(card);
  }

  /** Keep a settled card in its place for a while, so that nothing slides under the pointer. */
  linger(card) {
    const timer = setInterval(() => {
      if (card.element.matches(":hover")) return;
      clearInterval(timer);
      this.remove(card);
    }, LINGER_MS);
    this.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  remove(card) {
    const focused = card.element.contains(document.activeElement);
    const next = card.element.nextElementSibling ?? card.element.previousElementSibling ?? this.heading;
    card.element.remove();
    this.cards.delete(card.approval.id);
    this.empty.hidden = this.cards.size > 0;
    if (focused) next.focus(); // a card or the heading, never a button: a second Enter must do nothing
  }

  tellArrived(cards) {
    const waiting = cards.length === 1 ? `${cards[0].name} waits` : `${counted(cards.length, "question")} wait`;
    this.announce(`${waiting} for your decision.`);
  }
}
