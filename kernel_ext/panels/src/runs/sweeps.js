/** The sweeps: how far each is, and its runs. */

import { Button, Embedded, html, useOnce } from "../components/ui.js";
import { copyButton } from "../lib/controls.js";
import { dateTime, plural } from "../lib/format.js";

const PARTS = ["completed", "running", "failed"];
const STATES = { running: "in_progress" };
const NONE = html`<p class="wb-empty">
  No sweeps yet. <code>%workbench sweep</code> runs a notebook with many parameters.
</p>`;

/** @param {{sweeps: any[], onOpen: (name: string) => void, announce: (text: string) => void}} props the newest first */
export function Sweeps({ sweeps, onOpen, announce }) {
  const line = (sweep) => html`<${Sweep} key=${sweep.id} ...${{ sweep, onOpen, announce }} />`;
  return html`${!sweeps.length && NONE}
    <ul class="wb-sweeps" aria-label="Sweeps">
      ${sweeps.map(line)}
    </ul>`;
}

function Sweep({ sweep, onOpen, announce }) {
  const { name, notebook, created_at: at, specification, failed, running } = sweep;
  const total = Number(specification.runs) || PARTS.reduce((sum, part) => sum + sweep[part], 0);
  const ended = PARTS.filter((part) => sweep[part]).map((part) => `${sweep[part].toLocaleString("en")} ${part}`);
  const width = (part) => `${total ? (100 * sweep[part]) / total : 0}%`;
  const meter = (part) =>
    html`<span class="wb-meter-part" data-state=${STATES[part] ?? part} style=${{ width: width(part) }} />`;
  return html`<li class="wb-sweep">
    <div class="wb-line">
      <${Button} class="wb-link wb-cut" label=${name} onClick=${() => onOpen(name)} />
      <span class="wb-muted wb-cut wb-grow">${notebook} · ${dateTime(at)}</span>
      <span class="wb-cut">${[plural(total, "run"), ...ended].join(", ")}</span>
    </div>
    <div class="wb-meter" aria-hidden="true">${PARTS.map(meter)}</div>
    ${failed > 0 && !running && html`<${Retry} name=${name} announce=${announce} />`}
  </li>`;
}

/** The command that runs again what failed; the name of a sweep has letters, digits, - and _. */
function Retry({ name, announce }) {
  const cell = `%workbench sweep --name ${name} --retry-failed`;
  const about = `Copy the command that runs again what failed of ${name}`;
  const copy = useOnce(() => copyButton(() => cell, about, announce));
  return html`<div class="wb-line">
    <span class="wb-muted">Run again what failed:</span><code>${cell}</code><${Embedded} element=${copy} />
  </div>`;
}
