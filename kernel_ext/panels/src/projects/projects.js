/** Projects with their sessions and teams: created, renamed, moved, deleted, restored. */

import { Confirm } from "../lib/confirm.js";
import { button } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { Deleted } from "./deleted.js";
import { sessionsOf, sortedByName, teamsOf } from "./lookup.js";
import { MoveForm } from "./move_form.js";
import { NameForm } from "./name_form.js";

const LEVELS = { project: 1, session: 2, team: 3 };
const CHILD = { project: "session", session: "team" };
const PARENT_ID = { session: "project_id", team: "session_id" };
const DELETED_WITH = {
  project: "Its sessions, teams and contexts are deleted with it.",
  session: "Its teams and contexts are deleted with it.",
  team: "Its members stay, without a team.",
};

export class Projects {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   */
  constructor(store, channel, announce) {
    this.desk = { store, channel, announce };
    this.store = store;
    this.requests = new RequestRunner(this.desk);
    /** The form that is open, if any. The list is not redrawn meanwhile. */
    this.form = null;
    this.drawn = [];
    this.newProject = button("New project…", "wb-button", () => this.create("project", this.top));
    this.newTeam = button("New team…", "wb-button", () => this.create("team", this.top));
    this.deleted = new Deleted(this.desk);
    this.element = h("div", {}, this.section(), this.deleted.element);
  }

  section() {
    const id = freshId("projects");
    this.top = h("div", {});
    this.list = h("ul", { class: "wb-entries", "aria-labelledby": id });
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "No projects yet. Agents in the same session of a project share their contexts; an agent in no session sees only its own.",
    );
    const heading = h("h3", { class: "wb-heading wb-grow", id }, "Projects, sessions and teams");
    return h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h("div", { class: "wb-toolbar" }, heading, h("div", { class: "wb-line" }, this.newProject, this.newTeam)),
      this.top,
      this.requests.errorBox,
      this.empty,
      this.list,
    );
  }

  /** Bring the list up to date, unless a form is open in it. */
  update() {
    const { projects, sessions, teams } = this.store.tables;
    const rows = [...projects.values(), ...sessions.values(), ...teams.values()];
    const same = rows.length === this.drawn.length && rows.every((row, at) => row === this.drawn[at]);
    this.empty.hidden = this.store.version === null || rows.length > 0;
    if (same || this.form) return;
    this.drawn = rows;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.list.replaceChildren(...this.items());
    if (focused) (this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? this.newProject).focus();
  }

  items() {
    const { tables } = this.store;
    const free = teamsOf(tables, null);
    const heading = h("li", { class: "wb-entry wb-muted" }, "Teams in no session");
    return [
      ...sortedByName(tables.projects).flatMap((project) => [
        this.item("project", project, [plural(project.sessions, "session")]),
        ...sessionsOf(tables, project.id).flatMap((session) => this.sessionItems(session)),
      ]),
      ...(free.length ? [heading] : []),
      ...free.map((team) => this.item("team", team, [plural(team.agents, "agent")], 2)),
    ];
  }

  sessionItems(session) {
    const teams = teamsOf(this.store.tables, session.id);
    return [
      this.item("session", session, [plural(session.agents, "agent"), plural(session.contexts, "context")]),
      ...teams.map((team) => this.item("team", team, [plural(team.agents, "agent")])),
    ];
  }

  item(noun, row, facts, level = LEVELS[noun]) {
    const below = h("div", {});
    const action = (label, onClick) => {
      const made = button(label, "wb-link wb-quiet", onClick, `${label} ${row.name}`);
      made.dataset.key = `${noun}:${row.id}:${label}`;
      return made;
    };
    const child = CHILD[noun];
    const entry = h(
      "div",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-kind" }, noun),
      h("span", { class: "wb-entry-name wb-cut", title: row.description || row.name }, row.name),
      h("span", { class: "wb-muted wb-grow wb-cut" }, [...facts, row.description].filter(Boolean).join(" · ")),
      h(
        "span",
        { class: "wb-entry-actions" },
        child
          ? action(`New ${child}…`, () => this.create(child, below, row))
          : action("Move…", () => this.open(below, (done) => new MoveForm(this.desk, row, done))),
        action("Rename…", () => this.rename(noun, row, below)),
        action("Delete…", () => this.remove(noun, row, below)),
      ),
    );
    return h("li", { class: `wb-level-${level}` }, entry, below);
  }

  create(noun, where, parent = null) {
    const place = parent ? { [PARENT_ID[noun]]: parent.id } : {};
    const field = parent ? `Name of the ${noun} in ${parent.name}` : `Name of the ${noun}`;
    const request = (name) => [`create_${noun}`, { name, ...place }];
    this.open(where, (done) => new NameForm(this.desk, { label: `Create ${noun}`, field }, request, done));
  }

  rename(noun, row, where) {
    const words = { label: "Rename", value: row.name, field: `New name of ${row.name}` };
    const request = (name) => [`update_${noun}`, { [`${noun}_id`]: row.id, name }];
    this.open(where, (done) => new NameForm(this.desk, words, request, done));
  }

  remove(noun, row, where) {
    const consequence = `${DELETED_WITH[noun]} You can restore it below.`;
    const remove = async (done, pressed) => {
      const outcome = await this.requests.run(`delete_${noun}`, { [`${noun}_id`]: row.id }, pressed, "Deleting…");
      if (outcome) done(outcome);
    };
    this.open(where, (done) => {
      const words = { label: `Delete ${row.name}`, consequence };
      return new Confirm(
        words,
        (_, pressed) => remove(done, pressed),
        () => done(null),
      );
    });
  }

  /** Open a form in the list; the one that is open is closed. @param {(done: (outcome: any|null) => void) => {element: HTMLElement, focus: () => void}} make */
  open(where, make) {
    this.close();
    const opener = document.activeElement;
    const done = (outcome) => {
      this.close();
      if (outcome) {
        this.desk.announce("Done.");
        this.deleted.refresh();
      }
      if (opener?.isConnected) opener.focus();
      this.update();
    };
    this.form = make(done);
    where.replaceChildren(this.form.element);
    this.form.focus();
  }

  close() {
    this.requests.clearError();
    this.form?.element.remove();
    this.form = null;
  }
}
