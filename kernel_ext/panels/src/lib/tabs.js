/** Tabs as WAI-ARIA describes them: arrows, Home and End move the focus, and the focus selects. */

import { freshId, h, setAttribute, setText } from "./dom.js";

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
    this.tabs = views.map(({ label, element }, index) => this.tab(label, element, index));
    this.element = h(
      "div",
      { class: "wb-tabs", role: "tablist", "aria-label": "Views", on: { keydown: (event) => this.onKey(event) } },
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
    return { tab, panel, count };
  }

  /** The panels, to be placed under the tabs. */
  get panels() {
    return this.tabs.map(({ panel }) => panel);
  }

  /** Show a number beside a tab's label, unless it is 0: its room stays, so that no tab moves. @param {boolean} [strong] it waits for the person */
  setCount(index, number, strong = false) {
    const { count } = this.tabs[index];
    setText(count, SHORT.format(number));
    setAttribute(count, "title", number > 999 ? number.toLocaleString("en") : "");
    count.hidden = false;
    count.classList.toggle("wb-badge-none", number === 0);
    count.classList.toggle("wb-badge-strong", strong);
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
