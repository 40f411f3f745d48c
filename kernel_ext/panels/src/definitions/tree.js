/** All definitions, and below the one that is opened its places. */

import { Button, Icon, OpenerList, html, render } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { placeOf } from "./problems.js";
import { placesOf } from "./state.js";

/** What is opened. @typedef {{path: string|null, place: string, definition: any, drafts: (path: string) => Set<string>}} Opened */

export class Tree {
  /** @param {{open: (path: string, place: string) => void, close: () => void}} on */
  constructor(on) {
    this.on = on;
    this.element = h("div", { class: "wb-split-list wb-stack" });
  }

  /** @param {any[]} rows @param {Opened} opened @param {string[]} problems of directories that cannot be read */
  show(rows, opened, problems) {
    const line = (row) => html`<${Row} key=${row.id} ...${{ row, opened, on: this.on }} />`;
    const problem = (text) =>
      html`<div key=${text} class="wb-message"><${Icon} name="warning" /><span>${text}</span></div>`;
    render(
      html`<${OpenerList} class="wb-definitions" aria-label="Definitions" hidden=${!rows.length}>${rows.map(line)}<//>
        <div class="wb-stack">${problems.map(problem)}</div>`,
      this.element,
    );
  }

  /** Focus the line of a definition. @param {string} path */
  focus(path) {
    this.element.querySelector(`[data-row="${CSS.escape(path)}"]`)?.focus();
  }
}

function Row({ row, opened, on }) {
  const { id: path, name, mode, description = "" } = row;
  const isOpen = opened.path === path;
  const drafts = opened.drafts(path);
  const toggle = () => (isOpen ? on.close() : on.open(path, "overview"));
  const opener = { class: "wb-opener", label: name, title: path, "data-row": path, "aria-expanded": isOpen };
  return html`<li>
    <div class="wb-entry">
      <span class="wb-twisty ${isOpen ? "wb-turned" : ""}" aria-hidden="true" onClick=${toggle}>
        <${Icon} name="twisty" />
      </span>
      <${Button} ...${opener} onClick=${toggle} />
      <span class="wb-muted" hidden=${isOpen || !drafts.size}>unsaved</span>
      <span class="wb-muted wb-definition-mode">${mode}</span>
      <span class="wb-muted wb-grow wb-cut wb-definition-description">${description}</span>
    </div>
    ${isOpen && opened.definition && html`<${Places} ...${opened} drafts=${drafts} open=${(id) => on.open(path, id)} />`}
  </li>`;
}

function Places({ definition, place, drafts, open }) {
  const places = new Map(placesOf(definition).map((item) => [item.id, item]));
  const wrong = wrongPlaces(definition);
  const line = ({ id, label, level, note }) => {
    const isHere = isAt(place, id, places);
    const content = html`<span class="wb-cut">${label}</span>
      <span class="wb-place-mark" hidden=${!wrong.has(id)}>
        <${Icon} name="warning" /><span class="wb-sr">problem</span>
      </span>
      <span class="wb-muted">${drafts.has(id) ? "unsaved" : note}</span>`;
    const attributes = { "aria-current": isHere ? "true" : null, "data-level": level, onClick: () => open(id) };
    return html`<li key=${id}>
      <${Button} class="wb-place ${isHere ? "wb-active" : ""}" label=${content} ...${attributes} />
    </li>`;
  };
  return html`<ul class="wb-places">
    ${[...places.values()].map(line)}
  </ul>`;
}

/** The places with something to mend, or that are not trusted. @returns {Set<string>} */
function wrongPlaces({ problems, trust }) {
  const paths = problems.filter(({ severity }) => severity !== "hint").map(({ place }) => place);
  const untrusted = trust.needs.filter(({ trusted }) => !trusted).map(({ name }) => name);
  return new Set([...paths, ...untrusted].map(placeOf));
}

/** Whether a place is the one that is opened; a new rule is in the list of rules. */
function isAt(place, id, places) {
  return place === id || (!places.has(place) && place.split("/")[0] === id);
}
