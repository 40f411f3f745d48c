/** What there is of scarce things, which agents hold it, and which tasks wait for it. */

import { DataTable } from "../components/data_table.js";
import { Embedded, Section, html, usePolling, useRequests, useState } from "../components/ui.js";

const POLL_MS = 5_000;
const COUNTED = new Set(["cpu", "memory"]);
const COLUMNS = [
  { key: "what", label: "What", value: ({ id }) => id },
  { key: "there", label: "There", value: ({ amount }) => amount, cell: ({ there }) => there },
  { key: "held", label: "Held by", ...named((row) => row.held_by) },
  { key: "waiting", label: "Waiting", ...named((row) => row.awaited_by) },
  { key: "problem", label: "Problem", wide: true, optional: problemOf, value: problemOf, title: problemOf },
];

function problemOf({ problem }) {
  return problem;
}

/** Names one of a machine without a clone with that: `elsewhere:gpu nvidia0`. */
function nameOf({ machine, device, name }) {
  const what = device ?? name;
  return machine.startsWith("elsewhere:") ? `${machine} ${what}` : what;
}

/** @param {(row: any) => string} text */
function named(text) {
  return { value: text, cell: (row) => text(row) || "–", title: text };
}

/** Nothing is shown of processors and memory that nobody needs. @param {{desk: any}} props */
export function Leases({ desk }) {
  const requests = useRequests(desk);
  const [read, setRead] = useState(null);
  const work = async () => {
    setRead(await requests.send("list_resources", {}));
    requests.clearError();
  };
  const { ref } = usePolling(POLL_MS, work, (error) => requests.showError(error));
  const rows = (read?.resources ?? [])
    .filter(({ name, held_by, waiting }) => !COUNTED.has(name) || held_by || waiting.length)
    .map((one) => ({ ...one, id: nameOf(one) }));
  return html`<div ref=${ref}>
    ${
      rows.length > 0 &&
      html`<${Section} title="Scarce things">
        <${DataTable} class="wb-by-need wb-leases" aria-label="Scarce things" rows=${rows} columns=${COLUMNS} />
        ${read.waiting.map((task) => html`<p key=${task.task_id} class="wb-muted">Task ${task.task_id} waits for ${task.waits_for}.</p>`)}
      <//>`
    }
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}
