/** The inbox: a card for each pending approval, the oldest first. A card that is in use is never removed. */

import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { BulkDecision } from "./bulk_decision.js";
import { ApprovalCard } from "./card.js";
import { Decided } from "./decided.js";
import { Frame } from "../link/frame.js";
import { DesktopChoice } from "../link/notifier.js";

/** A decided card stays so long, and as long as the pointer is on it. */
const LINGER_MS = 4_000;

export class Inbox {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   * @param {{connect?: () => void, review?: (worktree: string) => void, ids?: Set<number>, heading?: string, empty?: (Node|string)[]}} options
   *   `connect` shows how to connect an agent; with `ids` there are only these approvals; words in place of the usual ones
   */
  constructor(store, channel, announce, signal, { connect, review, ids, heading = "Waiting for you", empty }) {
    this.desk = { store, channel, announce };
    this.store = store;
    this.signal = signal;
    this.ids = ids ?? null;
    this.review = review;
    /** @type {Map<number, ApprovalCard>} */
    this.cards = new Map();
    this.filled = false;
    const id = freshId("inbox");
    this.heading = h("h3", { class: "wb-heading", id, tabindex: -1 }, heading);
    this.count = h("span", { class: "wb-badge wb-badge-strong", hidden: true });
    this.list = h("ul", { class: "wb-cards", "aria-labelledby": id });
    this.empty = h("p", { class: "wb-empty" }, ...(empty ?? nothingWaits(connect)));
    this.bulk = new BulkDecision(this.desk, () => this.registrations());
    this.decided = new Decided(this.desk, signal);
    this.desktop = new DesktopChoice(announce);
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h("div", { class: "wb-toolbar" }, this.heading, this.count, ids ? null : this.desktop.element),
      this.empty,
      this.bulk.element,
      this.list,
      ids ? null : this.decided.element,
    );
    signal.addEventListener("abort", () => this.cards.forEach((card) => card.stop()), { once: true });
  }

  /** The pending approvals. @returns {Map<number, any>} */
  get rows() {
    const { approvals } = this.store.tables;
    if (!this.ids) return approvals;
    return new Map([...approvals].filter(([id]) => this.ids.has(id)));
  }

  /** How many approvals are pending. */
  get waiting() {
    return this.rows.size;
  }

  /** The cards that can be decided together. */
  registrations() {
    const isWaiting = ({ state, approval }) => state === "waiting" && approval.kind === "registration";
    return [...this.cards.values()].filter(isWaiting);
  }

  /** Bring the cards up to date. @param {boolean} enabled @param {number} now in ms */
  update(enabled, now) {
    this.enabled = enabled;
    const { rows } = this;
    const loaded = this.store.version !== null;
    const added = [...rows.values()].filter(({ id }) => !this.cards.has(id)).map((row) => this.add(row));
    for (const card of this.cards.values()) {
      if (rows.has(card.approval.id)) card.update(rows.get(card.approval.id));
      else this.onDecidedElsewhere(card);
      card.refresh(enabled);
      card.tick(now);
    }
    this.bulk.update(enabled);
    this.decided.update();
    this.desktop.update();
    if (this.filled && added.length) this.announceAdded(added);
    this.filled ||= loaded;
    setText(this.count, String(rows.size));
    this.count.hidden = rows.size === 0;
    this.empty.hidden = !loaded || this.cards.size > 0;
  }

  tick(now) {
    for (const card of this.cards.values()) card.tick(now);
  }

  add(row) {
    const card = new ApprovalCard(row, this.desk, {
      select: () => this.bulk.update(),
      review: this.review,
      settle: (settled) => this.linger(settled),
      dismiss: (dismissed) => this.remove(dismissed),
    });
    this.cards.set(row.id, card);
    this.list.append(card.element);
    return card;
  }

  /** The approval is no longer pending. What the person is doing with its card is not interrupted. */
  onDecidedElsewhere(card) {
    if (card.state !== "waiting") return;
    if (card.requests.error) card.settleWithError();
    else if (card.inUse) card.settle("It was decided elsewhere.", false);
    else this.remove(card);
  }

  /** Keep a decided card in its place for a while: nothing slides under the pointer. */
  linger(card) {
    const timer = setInterval(() => {
      if (card.element.matches(":hover")) return;
      clearInterval(timer);
      this.remove(card);
      if (this.rows.has(card.approval.id)) this.update(this.enabled, Date.now()); // its rejection was undone
    }, LINGER_MS);
    this.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  remove(card) {
    const focused = card.element.contains(document.activeElement);
    const next = card.element.nextElementSibling ?? card.element.previousElementSibling ?? this.heading;
    card.stop();
    card.element.remove();
    this.cards.delete(card.approval.id);
    this.empty.hidden = this.cards.size > 0;
    if (focused) next.focus(); // a card or the heading, not a button: pressing Enter once more must do nothing
  }

  announceAdded(cards) {
    const [{ name }] = cards;
    const text = cards.length === 1 ? `${name} is waiting` : `${plural(cards.length, "approval")} are waiting`;
    this.announce(`${text} for your decision.`);
  }

  announce(text) {
    this.desk.announce(text);
  }
}

function nothingWaits(connect) {
  const link = button("Connect an agent", "wb-link", connect);
  return ["Nothing is waiting for you. Agents that register and worktrees to integrate appear here. ", link, "."];
}

const WORDS = {
  heading: "This cell waits for your decision",
  empty: ["Everything is decided. The cell goes on."],
};

/** The approvals that a cell waits for, in its output: their cards, and nothing else of the desk. */
export class Question extends Frame {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {number[]} ids of the approvals
   * @param {AbortSignal} signal ends the view
   */
  constructor(store, channel, ids, signal) {
    super(store, channel);
    this.inbox = new Inbox(store, channel, (text) => this.announce(text), signal, { ids: new Set(ids), ...WORDS });
    const announced = h("div", { class: "wb-sr" }, this.status);
    this.element = this.region("Decision", this.banner, this.inbox.element, announced);
    this.start(signal);
  }

  drawViews(enabled, now) {
    this.inbox.update(enabled, now);
  }

  tick(now) {
    this.inbox.tick(now);
  }
}
