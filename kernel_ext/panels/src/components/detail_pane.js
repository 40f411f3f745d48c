/** A list with one thing of it opened beside it. Escape and a button close that. */

import { freshId } from "../lib/dom.js";
import { Button, html, useLayoutEffect, useOnce, useRef } from "./ui.js";

/** @param {{pane: any, onClose: () => void, children: any}} props the pane is null while nothing is opened */
export function Split({ pane, onClose, children }) {
  const onKeyDown = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !pane) return;
    event.preventDefault();
    onClose();
  };
  return html`<div class="wb-split ${pane ? "wb-open" : ""}" onKeyDown=${onKeyDown}>
    <div class="wb-split-list wb-stack">${children}</div>
    ${pane}
  </div>`;
}

/**
 * What is opened. Its title has the focus when it comes; give it a key, so that another thing is another pane.
 * @param {{title: string, noun: string, mark?: any, onClose: () => void, pane?: {current: HTMLElement}, class?: string, children: any}} props
 */
export function DetailPane({ title, noun, mark, onClose, pane, class: className = "", children }) {
  const id = useOnce(() => freshId(noun));
  const heading = useRef(null);
  useLayoutEffect(() => heading.current.focus(), []);
  return html`<section ref=${pane} class="wb-pane wb-stack wb-roomy ${className}" aria-labelledby=${id}>
    <div class="wb-pane-head">
      <span class="wb-mark">${mark}</span>
      <h4 ref=${heading} class="wb-pane-title" id=${id} tabindex="-1">${title}</h4>
      <${Button} class="wb-close" label="×" name="Close the ${noun}" onClick=${onClose} />
    </div>
    ${children}
  </section>`;
}

/** Facts with their names; those without a value are left out. @param {{facts: [string, any][]}} props */
export function FactList({ facts }) {
  const fact = ([name, value]) => html`<li key=${name}><span class="wb-muted">${name}</span><span>${value}</span></li>`;
  return html`<ul class="wb-facts">
    ${facts.filter(([, value]) => value).map(fact)}
  </ul>`;
}
