/** Items of a list on screen, one for each key: made once, moved only when their place changes, so that focus is kept. */

/** @typedef {{elements: HTMLElement[]}} Item its elements, which stand beside each other */

export class KeyedList {
  /**
   * @param {HTMLElement} parent
   * @param {(key: any) => Item} make
   * @param {{onRemove?: (item: Item, hadFocus: boolean) => void}} [on]
   */
  constructor(parent, make, { onRemove = () => {} } = {}) {
    this.parent = parent;
    this.make = make;
    this.onRemove = onRemove;
    /** @type {Map<any, Item>} in the order on screen */
    this.items = new Map();
  }

  /** Show these keys, in this order. @param {any[]} keys @param {(item: Item, key: any) => void} draw */
  show(keys, draw) {
    const kept = new Set(keys);
    for (const [key, item] of this.items) if (!kept.has(key)) this.remove(key, item);
    const before = this.items;
    this.items = new Map();
    let last = null;
    for (const key of keys) {
      const item = before.get(key) ?? this.make(key);
      this.items.set(key, item);
      this.place(item, last);
      last = item.elements.at(-1);
    }
    for (const key of keys) draw(this.items.get(key), key);
  }

  place({ elements }, last) {
    const [first] = elements;
    if (first.parentNode && first.previousElementSibling === last) return;
    if (last) last.after(...elements);
    else this.parent.prepend(...elements);
  }

  remove(key, item) {
    const hadFocus = item.elements.some((element) => element.contains(document.activeElement));
    this.items.delete(key);
    for (const element of item.elements) element.remove();
    this.onRemove(item, hadFocus);
  }
}
