/** The card of the pending approval about one thing, shown beside that thing: decided, it stays and shows what came of it. */

import { h } from "../lib/dom.js";
import { ApprovalCard } from "./card.js";

export class ApprovalSlot {
  /** @param {any} desk @param {() => void} onDismiss the card was dismissed, which had the focus */
  constructor(desk, onDismiss) {
    this.desk = desk;
    this.onDismiss = onDismiss;
    /** @type {ApprovalCard|null} */
    this.card = null;
    this.element = h("ul", { class: "wb-cards wb-frame wb-attention", "aria-label": "Approval" });
  }

  /**
   * @param {any} pending the approval, if there is one
   * @param {(id: number) => boolean} isEnabled whether the approval with this id can be decided now
   * @param {number} now in ms
   * @param {boolean} [isReplacing] whether it has gone because another one is about to come
   */
  show(pending, isEnabled, now, isReplacing = false) {
    if (pending && pending.id !== this.card?.approval.id) this.add(pending);
    const { card } = this;
    if (!card) return;
    if (pending) card.update(pending);
    else if (card.state === "waiting" && !isReplacing) onDecidedElsewhere(card);
    card.refresh(isEnabled(card.approval.id));
    card.tick(now);
  }

  add(approval) {
    this.clear();
    const dismiss = () => {
      this.clear();
      this.onDismiss();
    };
    this.card = new ApprovalCard(approval, this.desk, { dismiss });
    this.element.replaceChildren(this.card.element);
  }

  clear() {
    this.card?.stop();
    this.card = null;
    this.element.replaceChildren();
  }
}

function onDecidedElsewhere(card) {
  if (card.requests.error) card.settleWithError();
  else card.settle("It was decided elsewhere.", false);
}
