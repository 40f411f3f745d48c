/** What components are written with. As in `lib/dom.js`, text is inert, and JupyterLab's keys are kept from controls. */

import htm from "htm";
import { h as create, render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { moveBetweenRows } from "../lib/controls.js";
import { FOCUSABLE, SHOWN, freshId } from "../lib/dom.js";
import { shapeOf } from "../lib/icons.js";
import { inert } from "../lib/inert.js";
import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";

export { render } from "preact";
export { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

/** Makes elements and components of a template: html`<p class="wb-empty">${text}</p>`. */
export const html = htm.bind(element);

function element(type, props, ...children) {
  if (typeof type !== "string") return create(type, props, ...children);
  const attributes = { ...props };
  for (const name of SHOWN) if (name in attributes) attributes[name] = safe(attributes[name]);
  if (FOCUSABLE.has(type) || "tabindex" in attributes) attributes["data-lm-suppress-shortcuts"] = "true";
  return create(type, attributes, ...children.map(safe));
}

function safe(child) {
  if (Array.isArray(child)) return child.map(safe);
  return typeof child === "string" ? inert(child) : child;
}

/** What draws components in an element, until a view ends. @param {HTMLElement} place @param {AbortSignal} signal @returns {(tree: any) => void} */
export function drawnIn(place, signal) {
  signal.addEventListener("abort", () => render(null, place), { once: true });
  return (tree) => signal.aborted || render(tree, place);
}

/**
 * A part of a tab, under its heading. @param {{title: string, about?: string, children: any}} props
 * `heading`, a reference, makes the heading focusable; `section` is one to the whole part
 */
export function Section({ title, about, heading, section, children }) {
  const id = useOnce(() => freshId("section"));
  return html`<section ref=${section} class="wb-section wb-stack" aria-labelledby=${id}>
    <div>
      <h3 class="wb-heading" id=${id} ...${heading && { ref: heading, tabindex: -1 }}>${title}</h3>
      ${about && html`<p class="wb-muted">${about}</p>`}
    </div>
    ${children}
  </section>`;
}

/** A button; a disabled one keeps the focus. @param {{label: any, name?: string, disabled?: boolean, onClick?: (event) => void}} props */
export function Button({ label, name, disabled = false, onClick, type = "button", ...more }) {
  const click = (event) => (disabled ? event.preventDefault() : onClick?.(event));
  const attributes = { class: "wb-button", ...more, "aria-label": name, "aria-disabled": disabled || undefined };
  return html`<button ...${attributes} type=${type} onClick=${click}>${label}</button>`;
}

/** An icon of `lib/icons.js`. */
export function Icon({ name }) {
  const { shape, paths } = shapeOf(name);
  const path = ({ d, fill }) => html`<path d=${d} class=${fill ? "wb-fill" : "wb-stroke"} />`;
  return html`<svg viewBox="0 0 16 16" aria-hidden="true" class="wb-icon wb-icon-${shape}">${paths.map(path)}</svg>`;
}

/** The dot of a state. */
export function Dot({ state }) {
  return html`<span class="wb-dot" data-state=${state} aria-hidden="true" />`;
}

/** An element that a class makes and draws, such as the error of a `RequestRunner`. */
export function Embedded({ element: own }) {
  const place = useRef(null);
  useLayoutEffect(() => place.current.replaceChildren(own), [own]);
  return html`<div ref=${place} style="display: contents" />`;
}

/** What is made once for a component. @template T @param {() => T} make @returns {T} */
export function useOnce(make) {
  return useState(make)[0];
}

/** The requests of a component. @returns {RequestRunner} */
export function useRequests(desk) {
  return useOnce(() => new RequestRunner(desk));
}

/** What has the focus in a list keeps it when it is moved; when it is gone, something else gets it. @param {{current: HTMLElement|null}} list @param {() => void} elsewhere */
export function useFocusKept(list, elsewhere) {
  const focused = list.current?.contains(document.activeElement) ? document.activeElement : null;
  useLayoutEffect(() => {
    if (!focused || document.activeElement !== document.body) return;
    if (focused.isConnected) focused.focus();
    else elsewhere();
  });
}

/** A list of things that can be opened: arrows move between them. When the one with the focus is gone, `onGone` is called. @param {{onGone?: (list: HTMLElement) => void, children: any}} props */
export function OpenerList({ onGone = () => {}, children, ...attributes }) {
  const list = useRef(null);
  useFocusKept(list, () => onGone(list.current));
  const onKeyDown = (event) => moveBetweenRows(event, list.current);
  return html`<ul ref=${list} ...${attributes} onKeyDown=${onKeyDown}>
    ${children}
  </ul>`;
}

/** A box to tick. @param {{name: string, checked: boolean, onChange: (on: boolean) => void}} props */
export function Checkbox({ name, onChange, ...more }) {
  const change = (event) => onChange(event.target.checked);
  return html`<input class="wb-check" type="checkbox" aria-label=${name} ...${more} onChange=${change} />`;
}

/**
 * Do some work again and again while an element is visible, at once when it has come, and when `runNow` is called.
 * @param {number} ms @param {() => Promise<unknown>} work @param {(error: Error) => void} onError
 */
export function usePolling(ms, work, onError) {
  const ref = useRef(null);
  const latest = useRef(work);
  const polling = useRef(null);
  latest.current = work;
  useLayoutEffect(() => {
    const ended = new AbortController();
    polling.current = new VisiblePolling(ref.current, ms, () => latest.current(), onError, ended.signal);
    return () => ended.abort();
  }, []);
  return { ref, runNow: () => polling.current?.runNow() };
}
