/** Deleted projects, sessions, teams and agents, which can be restored. Read when the list is opened. */

import { ActionButton } from "../components/action_form.js";
import { Button, Embedded, html, useLayoutEffect, useOnce, useRequests, useState } from "../components/ui.js";
import { freshId } from "../lib/dom.js";

const NOUNS = ["project", "session", "team", "agent"];

/** @param {{desk: any, changes: number}} props how often something was deleted or restored */
export function Deleted({ desk, changes }) {
  const id = useOnce(() => freshId("deleted"));
  const requests = useRequests(desk);
  const [entries, setEntries] = useState(null);
  const load = async () => {
    const found = [];
    for (const noun of NOUNS) {
      const page = await requests.run(`list_${noun}s`, { deleted: true, limit: 500 });
      if (!page) return;
      found.push(...page[`${noun}s`].map((row) => ({ noun, id: row.id ?? row.agent_id, name: row.name })));
    }
    setEntries(found);
  };
  useLayoutEffect(() => void (entries && load()), [changes]);
  const entry = ({ noun, id, name }) => {
    const act = () => requests.run(`restore_${noun}`, { [`${noun}_id`]: id });
    const onDone = () => {
      desk.announce(`${name} was restored.`);
      load();
    };
    return html`<${Entry} key="${noun}:${id}" ...${{ noun, name, act, onDone }} />`;
  };
  const list = entries?.length ? entries.map(entry) : html`<li class="wb-empty">Nothing was deleted.</li>`;
  const press = () => (entries ? setEntries(null) : load());
  return html`<section class="wb-section wb-stack" aria-labelledby=${id}>
    <div class="wb-toolbar">
      <h3 class="wb-heading wb-grow" id=${id}>Deleted</h3>
      <${Button} label=${entries ? "Hide" : "Show"} aria-describedby=${id} onClick=${press} />
    </div>
    <${Embedded} element=${requests.errorBox} />
    ${
      entries &&
      html`<ul class="wb-entries">
        ${list}
      </ul>`
    }
  </section>`;
}

function Entry({ noun, name, act, onDone }) {
  const restore = { label: "Restore", name: `Restore ${name}`, act, onDone };
  return html`<li class="wb-entry">
    <span class="wb-entry-kind">${noun}</span>
    <span class="wb-entry-name wb-cut">${name}</span>
    <${ActionButton} class="wb-link wb-quiet wb-push" ...${restore} />
  </li>`;
}
