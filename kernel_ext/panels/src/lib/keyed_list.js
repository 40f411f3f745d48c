/** Items of a list on screen, one for each key: made once, moved only when their place changes, so that focus is kept. */

/** @typedef {{elements: HTMLElement[]}} Item its elements, which stand beside each other */

export class KeyedList {
  /**
   * @param {HTMLElement} parent
   * @param {(key: any) => Item} make
   * @param {{keep?: (key: any, item: Item) => boolean, onRemove?: (item: Item, hadFocus: boolean) => void}} [on]
   *   `keep`: whether an item stays although its key is no longer shown
   */
  constructor(parent, make, { keep = () => false, onRemove = () => {} } = {}) {
    this.parent = parent;
    this.make = make;
    this.keep = keep;
    this.onRemove = onRemove;
    /** @type {Map<any, Item>} in the order on screen */
    this.items = new Map();
  }

  /** Show these keys, in this order. @param {any[]} keys @param {(item: Item, key: any) => void} draw */
  show(keys, draw) {
    const order = this.withKept(keys);
    const wanted = new Set(order);
    for (const [key, item] of this.items) if (!wanted.has(key)) this.remove(key, item);
    const before = this.items;
    this.items = new Map();
    let last = null;
    for (const key of order) {
      const item = before.get(key) ?? this.make(key);
      this.items.set(key, item);
      this.place(item, last);
      last = item.elements.at(-1);
    }
    for (const key of keys) draw(this.items.get(key), key);
  }

  /** The keys with those that are kept, each behind the one it stands behind now. */
  withKept(keys) {
    const order = [...keys];
    const shown = new Set(keys);
    let previous = -1;
    for (const [key, item] of this.items) {
      if (shown.has(key)) previous = order.indexOf(key);
      else if (this.keep(key, item)) order.splice((previous += 1), 0, key);
    }
    return order;
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
