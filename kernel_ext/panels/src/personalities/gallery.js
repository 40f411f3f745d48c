/** All personalities as cards, own ones first: to search, to open, and to publish one more. */

import { Chips } from "../components/filters.js";
import { Button, Embedded, Icon, OpenerList, html, render, useMemo, useOnce } from "../components/ui.js";
import { errorContent } from "../lib/blocks.js";
import { button, searchField } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { isOwn } from "../network/peers.js";
import { PublishForm } from "./publish_form.js";
import { FRESHNESS, byOwnership, freshnessText, matches, ownerBadge } from "./state.js";

const STEP = 60;
/** With so many personalities or fewer there is no text filter. */
const FEW = 6;
/** Filters: their labels, and which personalities match. */
const FILTERS = {
  own: ["Yours", isOwn],
  others: ["Of other nodes", (row) => !isOwn(row)],
  tools: ["With tools", ({ tools }) => tools.length > 0],
};
const ABOUT = "A personality is what an agent publishes about itself: its traits, and tools that others can call. ";

export class Gallery {
  /** @param {any} desk @param {{open: (name: string) => void, network: () => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    this.filters = { key: null, text: "" };
    this.limit = STEP;
    /** @type {PublishForm|null} */
    this.form = null;
    this.search = searchField("Filter personalities", "Filter personalities by name, owner, trait or tool", {
      input: () => this.filter({ text: this.search.value.trim().toLowerCase() }),
    });
    this.publishButton = button("Publish…", "wb-button", () => this.openForm());
    this.element = h("div", { class: "wb-stack" });
  }

  /** The rows of personalities, sorted once for each version; the row without an id holds an error. @returns {any[]} */
  get rows() {
    const { version, tables } = this.desk.store;
    if (this.sorted?.version !== version) {
      const rows = [...tables.personalities.values()].filter(({ id }) => id !== "").sort(byOwnership);
      this.sorted = { version, rows };
    }
    return this.sorted.rows;
  }

  /** Whether there are enough to search. */
  get isSearchable() {
    return this.rows.length > FEW || Boolean(this.filters.text);
  }

  /** Those that match the filters. @returns {any[]} */
  get matching() {
    const { key, text } = this.filters;
    return this.rows.filter((row) => (!key || FILTERS[key][1](row)) && matches(row, text));
  }

  summary() {
    const { rows } = this;
    const own = rows.filter(isOwn).length;
    const all = plural(rows.length, "personality", "personalities");
    return rows.length ? all + (own ? `, ${own} of them yours` : "") : "";
  }

  /** @param {boolean} [enabled] whether requests can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const { rows, matching, form, on } = this;
    const { loaded, tables } = this.desk.store;
    const error = tables.personalities.get("")?.error;
    const chips = Object.entries(FILTERS).map(([key, [label, test]]) => ({
      key,
      label,
      count: rows.filter(test).length,
    }));
    const filters = {
      name: "Filter personalities",
      chips: [{ key: null, label: "All", count: rows.length }, ...chips],
      chosen: this.filters.key,
      onChoose: (key) => this.filter({ key }),
    };
    const isEmpty = !rows.length && !error && loaded.has("personalities");
    const joined = Boolean(tables.network.get("network")?.joined);
    const more = () => {
      this.limit += STEP;
      this.update();
    };
    const all = html`<${Button} class="wb-link" label="Show all" onClick=${() => this.clear()} />`;
    const card = (row) => html`<${Card} key=${row.id} ...${{ row, now, open: on.open }} />`;
    const list = {
      class: "wb-personalities",
      "aria-label": "Personalities",
      hidden: !matching.length,
      onGone: (cards) => (cards.querySelector(".wb-opener") ?? this.publishButton).focus(),
    };
    form?.update(enabled);
    render(
      html`${form && html`<${Embedded} element=${form.element} />`} ${error && html`<${Problem} error=${error} />`}
        ${isEmpty && html`<${Empty} joined=${joined} join=${on.network} publish=${() => this.openForm()} />`}
        ${rows.length > 1 && html`<${Chips} ...${filters} />`}
        ${rows.length > 0 && !matching.length && html`<p class="wb-empty">${"No personality matches the filters. "}${all}</p>`}
        <${OpenerList} ...${list}>${matching.slice(0, this.limit).map(card)}<//>
        ${matching.length > this.limit && html`<${Button} label="Show more" onClick=${more} />`}`,
      this.element,
    );
  }

  filter(change) {
    Object.assign(this.filters, change);
    this.limit = STEP;
    this.update();
    const count = Math.min(this.matching.length, STEP);
    this.desk.announce(`${plural(count, "personality", "personalities")} shown.`);
  }

  clear() {
    this.search.value = "";
    this.filter({ key: null, text: "" });
    this.search.focus();
  }

  /** Give the card of a personality the focus. @param {string} name */
  focus(name) {
    (this.element.querySelector(`[data-row="${CSS.escape(name)}"]`) ?? this.publishButton).focus();
  }

  openForm() {
    if (!this.form) {
      this.form = new PublishForm(this.desk, (published) => this.closeForm(published));
      this.update();
    }
    this.form.focus();
  }

  closeForm(published) {
    this.form = null;
    this.update();
    this.publishButton.focus();
    if (!published) return;
    this.desk.announce(published.is_published ? `${published.name} is published.` : `${published.name} is saved.`);
    this.on.open(published.name);
  }
}

function Problem({ error }) {
  const box = useMemo(() => h("div", { class: "wb-message wb-error" }, ...errorContent(error)), [error.message]);
  return html`<${Embedded} element=${box} />`;
}

/** What a personality is, and how the first ones come here. */
function Empty({ joined, join, publish }) {
  const link = (label, onClick) => html`<${Button} class="wb-link" label=${label} onClick=${onClick} />`;
  const others = joined
    ? "Those of other nodes appear here as they are received. "
    : html`${"To see those of other projects, "}${link("join a network", join)}${". "}`;
  return html`<div class="wb-empty wb-stack">
    <p>${ABOUT}${others}${link("Publish one of your agents…", publish)}</p>
  </div>`;
}

/** One personality: what the agent says about itself, what it can do, where it comes from, and how fresh it is. */
function Card({ row, now, open }) {
  const id = useOnce(() => freshId("personality"));
  const { id: name, version, traits, tools, highlights, provenance } = row;
  const { text = "" } = highlights.find((trait) => trait.name === "description") ?? {};
  const [offered, about] = [true, false].map((isTool) => highlights.filter((trait) => trait.is_callable === isTool));
  const chips = about.filter((trait) => trait.name !== "description").map(traitChip);
  const [owner, badge] = ownerBadge(provenance);
  return html`<li class="wb-personality wb-frame wb-stack" aria-labelledby=${id}>
    <div class="wb-personality-head">
      <${Icon} name="registration" />
      <${Button} class="wb-opener" id=${id} data-row=${name} label=${name} onClick=${() => open(name)} />
      <span class="wb-muted wb-cut">${version}</span>
      <span class="wb-source wb-push" ...${badge}>${owner}</span>
    </div>
    ${text && html`<p class="wb-personality-about" title=${text}>${text}</p>`}
    ${withMore("wb-traits", chips, traits - tools.length - about.length, "trait")}
    ${withMore("wb-trait-tools", offered.map(toolLine), tools.length - offered.length, "tool")}
    <div class="wb-label wb-cut" title=${FRESHNESS[provenance.freshness]}>${freshnessText(row, now)}</div>
  </li>`;
}

function withMore(className, items, left, noun) {
  const more = left > 0 && html`<li class="wb-label">and ${plural(left, `more ${noun}`)}</li>`;
  return (
    (items.length > 0 || more) &&
    html`<ul class=${className}>
      ${items}${more}
    </ul>`
  );
}

function traitChip({ name, text }) {
  const title = `${name}: ${text}`;
  return html`<li key=${title} class="wb-trait" title=${title}>
    <span class="wb-muted">${name}</span><span class="wb-cut">${text}</span>
  </li>`;
}

function toolLine({ name, text }) {
  return html`<li key=${name} title=${text || null}>
    <${Icon} name="tool" /><code class="wb-cut">${name}</code
    >${text && html`<span class="wb-muted wb-cut">${text}</span>`}
  </li>`;
}
