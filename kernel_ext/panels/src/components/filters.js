/** What a table is filtered by: kinds with their counts, choices, and text. */

import { Chips as ChipRow } from "../lib/chips.js";
import { Embedded, html, useLayoutEffect, useOnce, useRef, useState } from "./ui.js";

/** Kinds with their counts, of which one is chosen. @param {{name: string, chips: import("../lib/chips.js").Chip[], chosen: string|null, onChoose: (key: string|null) => void}} props */
export function Chips({ name, chips, chosen, onChoose }) {
  const latest = useRef(onChoose);
  latest.current = onChoose;
  const row = useOnce(() => new ChipRow(name, (key) => latest.current(key)));
  useLayoutEffect(() => row.update(chips, chosen));
  return html`<${Embedded} element=${row.element} />`;
}

/** A choice; a value that is not among the options is the first of them. @param {{name: string, options: [string, string][], value: string, onChoose: (value: string) => void}} props */
export function Choice({ name, options, value, onChoose }) {
  const present = options.some(([id]) => id === value) ? value : options[0][0];
  const onChange = (event) => onChoose(event.target.value);
  return html`<select class="wb-input wb-narrow" aria-label=${name} value=${present} onChange=${onChange}>
    ${options.map(([id, label]) => html`<option key=${id} value=${id}>${label}</option>`)}
  </select>`;
}

/** A text, which filters once it is typed. @param {{name: string, placeholder: string, value: string, onChoose: (value: string) => void}} props */
export function TextFilter({ name, placeholder, value, onChoose }) {
  const [typed, setTyped] = useState(value);
  useLayoutEffect(() => setTyped(value), [value]);
  return html`<input
    class="wb-input wb-narrow"
    type="text"
    maxlength="200"
    spellcheck=${false}
    autocomplete="off"
    aria-label=${name}
    placeholder=${placeholder}
    value=${typed}
    onInput=${(event) => setTyped(event.target.value)}
    onChange=${(event) => onChoose(event.target.value.trim())}
  />`;
}
