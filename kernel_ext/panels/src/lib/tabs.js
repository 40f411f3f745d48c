/** Tabs as WAI-ARIA describes them: arrows, Home and End move the focus, and the focus selects. */

import { freshId, h, setAttribute, setText } from "./dom.js";

/** How long the pointer must have rested before a count may appear or go under it: what is aimed at does not move. */
const RESTED_MS = 600;
/** "7", "128", "12K" */
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 0 });

export class Tabs {
  /**
   * @param {{label: string, element: HTMLElement}[]} views
   * @param {() => void} onSelect
   */
  constructor(views, onSelect) {
    this.onSelect = onSelect;
    this.at = 0;
    this.aiming = null;
    this.tabs = views.map(({ label, element }, index) => this.tab(label, element, index));
    const on = {
      keydown: (event) => this.onKey(event),
      pointermove: () => this.onAim(),
      pointerleave: () => this.drawCounts(),
    };
    this.element = h(
      "div",
      { class: "wb-tabs", role: "tablist", "aria-label": "Views", on },
      ...this.tabs.map(({ tab }) => tab),
    );
    this.show(0);
  }

  tab(label, element, index) {
    const panel = h("div", { class: "wb-tabpanel", role: "tabpanel", id: freshId("view") }, element);
    const count = h("span", { class: "wb-badge", hidden: true });
    const tab = h(
      "button",
      {
        class: "wb-tab",
        type: "button",
        role: "tab",
        id: freshId("tab"),
        "aria-controls": panel.id,
        on: { click: () => this.select(index) },
      },
      label,
      count,
    );
    panel.setAttribute("aria-labelledby", tab.id);
    return { tab, panel, count, number: 0 };
  }

  /** The panels, to be placed under the tabs. */
  get panels() {
    return this.tabs.map(({ panel }) => panel);
  }

  /**
   * Show a number beside a tab's label, unless it is 0. It appears and goes when no pointer moves over the tabs, because
   * it moves those after it.
   * @param {boolean} [strong] it waits for the person
   */
  setCount(index, number, strong = false) {
    const tab = this.tabs[index];
    if (tab.number === number) return;
    tab.number = number;
    setText(tab.count, SHORT.format(number));
    setAttribute(tab.count, "title", number > 999 ? number.toLocaleString("en") : "");
    tab.count.classList.toggle("wb-badge-strong", strong);
    if (!this.aiming) tab.count.hidden = !number;
  }

  onAim() {
    clearTimeout(this.aiming);
    this.aiming = setTimeout(() => this.drawCounts(), RESTED_MS);
  }

  drawCounts() {
    clearTimeout(this.aiming);
    this.aiming = null;
    for (const { count, number } of this.tabs) count.hidden = !number;
  }

  /** @param {number} index */
  select(index) {
    this.show(index);
    this.onSelect();
  }

  show(index) {
    this.at = index;
    this.tabs.forEach(({ tab, panel }, place) => {
      setAttribute(tab, "aria-selected", place === index);
      tab.tabIndex = place === index ? 0 : -1;
      panel.hidden = place !== index;
    });
    this.tabs[index].tab.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  onKey(event) {
    const last = this.tabs.length - 1;
    const moves = {
      ArrowRight: (this.at + 1) % (last + 1),
      ArrowLeft: (this.at + last) % (last + 1),
      Home: 0,
      End: last,
    };
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.select(moves[event.key]);
    this.tabs[this.at].tab.focus();
  }
}
