/** Projects with their sessions and teams: created, renamed, moved, deleted, restored. */

import { ActionButton, TextField, useQuestion } from "../components/action_form.js";
import { Button, Embedded, html, render } from "../components/ui.js";
import { useFocusKept, useLayoutEffect, useOnce, useRef, useRequests, useState } from "../components/ui.js";
import { freshId, h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { sessionOptions, sessionsOf, sortedByName, teamsOf } from "./lookup.js";

const CHILD = { project: "session", session: "team" };
const PARENT_ID = { session: "project_id", team: "session_id" };
const DELETED_WITH = {
  project: "Its sessions, teams and contexts are deleted with it.",
  session: "Its teams and contexts are deleted with it.",
  team: "Its members stay, without a team.",
};
const TOP = "top";
const EMPTY = html`<p class="wb-empty">
  No projects yet. Agents in the same session of a project share their contexts; an agent in no session sees only its
  own.
</p>`;

export class Projects {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   */
  constructor(store, channel, announce) {
    this.desk = { store, channel, announce };
    this.element = h("div", {});
  }

  /** Bring it up to date. */
  update() {
    render(html`<${View} desk=${this.desk} />`, this.element);
  }
}

function View({ desk }) {
  const id = useOnce(() => freshId("projects"));
  const requests = useRequests(desk);
  const [changes, setChanges] = useState(0);
  const { question, where, ask } = useQuestion();
  const list = useRef(null);
  const opener = useRef(null);
  useFocusKept(list, () => opener.current.firstChild.focus());
  const onDone = (_, end) => {
    end();
    desk.announce("Done.");
    setChanges((before) => before + 1);
  };
  const button = (place, label, words, more) => {
    const onClick = (event) => {
      requests.clearError();
      ask(event, { where: place, onDone, ...words });
    };
    return html`<${Button} label=${label} onClick=${onClick} ...${more} />`;
  };
  const asked = (place) =>
    html`<div>${where === place && html`${question}<${Embedded} element=${requests.errorBox} />`}</div>`;
  const { projects, free } = entriesOf(desk.store.tables);
  const line = (entry) => html`<${Entry} key=${keyOf(entry)} ...${{ ...entry, desk, requests, button, asked }} />`;
  const isEmpty = desk.store.version !== null && !projects.length && !free.length;
  return html`<section class="wb-section wb-stack" aria-labelledby=${id}>
      <div class="wb-toolbar">
        <h3 class="wb-heading wb-grow" id=${id}>Projects, sessions and teams</h3>
        <div ref=${opener} class="wb-line">
          ${button(TOP, "New project…", created(requests, "project"))}
          ${button(TOP, "New team…", created(requests, "team"))}
        </div>
      </div>
      ${asked(TOP)} ${isEmpty && EMPTY}
      <ul ref=${list} class="wb-entries" aria-labelledby=${id}>
        ${projects.map(line)} ${free.length > 0 && html`<li class="wb-entry wb-muted">Teams in no session</li>`}
        ${free.map(line)}
      </ul>
    </section>
    <${Deleted} desk=${desk} changes=${changes} />`;
}

/** A project, a session or a team, and what can be done with it. */
function Entry({ noun, row, level, facts, desk, requests, button, asked }) {
  const { name, description } = row;
  const place = keyOf({ noun, row });
  const action = (label, words) => button(place, label, words, { class: "wb-link wb-quiet", name: `${label} ${name}` });
  const child = CHILD[noun];
  return html`<li class="wb-level-${level}">
    <div class="wb-entry">
      <span class="wb-entry-kind">${noun}</span>
      <span class="wb-entry-name wb-cut" title=${description || name}>${name}</span>
      <span class="wb-muted wb-grow wb-cut">${[...facts, description].filter(Boolean).join(" · ")}</span>
      <span class="wb-entry-actions">
        ${child ? action(`New ${child}…`, created(requests, child, row)) : action("Move…", moved(requests, row, desk))}
        ${action("Rename…", renamed(requests, noun, row))} ${action("Delete…", deleted(requests, noun, row))}
      </span>
    </div>
    ${asked(place)}
  </li>`;
}

function keyOf({ noun, row }) {
  return `${noun}:${row.id}`;
}

/** All that is listed: projects with what is in them, and teams that are in no session. */
function entriesOf(tables) {
  const team = (level) => (row) => ({ noun: "team", row, level, facts: [plural(row.agents, "agent")] });
  const session = (row) => {
    const facts = [plural(row.agents, "agent"), plural(row.contexts, "context")];
    return [{ noun: "session", row, level: 2, facts }, ...teamsOf(tables, row.id).map(team(3))];
  };
  const project = (row) => {
    const facts = [plural(row.sessions, "session")];
    return [{ noun: "project", row, level: 1, facts }, ...sessionsOf(tables, row.id).flatMap(session)];
  };
  const projects = sortedByName(tables.projects).flatMap(project);
  return { projects, free: teamsOf(tables, null).map(team(2)) };
}

function created(requests, noun, parent = null) {
  const place = parent ? { [PARENT_ID[noun]]: parent.id } : {};
  const field = parent ? `Name of the ${noun} in ${parent.name}` : `Name of the ${noun}`;
  const act = (name) => requests.run(`create_${noun}`, { name, ...place });
  return { label: `Create ${noun}`, control: nameField(field), act };
}

function renamed(requests, noun, { id, name }) {
  const act = (value) => requests.run(`update_${noun}`, { [`${noun}_id`]: id, name: value });
  return { label: "Rename", control: nameField(`New name of ${name}`, name), act };
}

function nameField(field, value = "") {
  return html`<${TextField} name=${field} value=${value} maxlength="200" required />`;
}

function moved(requests, { id, name, session_id: session }, { store }) {
  const option = ([key, label]) => html`<option value=${key} selected=${key === (session ?? "")}>${label}</option>`;
  const group = ([label, sessions]) => html`<optgroup label=${label}>${sessions.map(option)}</optgroup>`;
  const control = html`<select class="wb-input wb-grow" aria-label="Session for ${name}">
    ${option(["", "No session"])} ${sessionOptions(store.tables).map(group)}
  </select>`;
  const act = (chosen) => requests.run("move_team", { team_id: id, session_id: chosen || null });
  return { label: "Move", working: "Moving…", control, note: "Its members move with it.", act };
}

function deleted(requests, noun, { id, name }) {
  const consequence = `${DELETED_WITH[noun]} You can restore it below.`;
  const act = () => requests.run(`delete_${noun}`, { [`${noun}_id`]: id });
  return { label: `Delete ${name}`, working: "Deleting…", consequence, act };
}

const NOUNS = ["project", "session", "team", "agent"];

/** @param {{desk: any, changes: number}} props how often something was deleted or restored */
function Deleted({ desk, changes }) {
  const id = useOnce(() => freshId("deleted"));
  const requests = useRequests(desk);
  const [entries, setEntries] = useState(null);
  const load = async () => {
    const rows = [];
    for (const noun of NOUNS) {
      const page = await requests.run(`list_${noun}s`, { deleted: true, limit: 500 });
      if (!page) return;
      rows.push(...page[`${noun}s`].map((row) => ({ noun, id: row.id ?? row.agent_id, name: row.name })));
    }
    setEntries(rows);
  };
  useLayoutEffect(() => void (entries && load()), [changes]);
  const entry = ({ noun, id, name }) => {
    const act = () => requests.run(`restore_${noun}`, { [`${noun}_id`]: id });
    const onDone = () => {
      desk.announce(`${name} was restored.`);
      load();
    };
    return html`<${DeletedEntry} key="${noun}:${id}" ...${{ noun, name, act, onDone }} />`;
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

function DeletedEntry({ noun, name, act, onDone }) {
  const restore = { label: "Restore", name: `Restore ${name}`, act, onDone };
  return html`<li class="wb-entry">
    <span class="wb-entry-kind">${noun}</span>
    <span class="wb-entry-name wb-cut">${name}</span>
    <${ActionButton} class="wb-link wb-quiet wb-push" ...${restore} />
  </li>`;
}
