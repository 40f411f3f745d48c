/** Projects, their sessions and the teams in them: to look at, to make, to name, to move and to delete. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { button, form, select, setOptions } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { counted } from "../lib/format.js";
import { Naming } from "./naming.js";
import { named, sessionGroups, sessionsOf, teamsOf } from "./places.js";

const NONE = "";
const LEVELS = { project: 1, session: 2, team: 3 };

export class Projects {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   */
  constructor(store, channel, announce) {
    this.desk = { store, channel, announce };
    this.store = store;
    this.asker = new Asker(this.desk);
    /** A form that is open in the tree: meanwhile the tree stays as it is. */
    this.form = null;
    this.drawn = [];
    const id = freshId("projects");
    this.newOne = button("New project…", "wb-button", () => this.create("project", this.top));
    this.newTeam = button("New team…", "wb-button", () => this.create("team", this.top));
    this.top = h("div", {});
    this.list = h("ul", { class: "wb-entries", "aria-labelledby": id });
    this.empty = h(
      "p",
      { class: "wb-empty" },
      "No projects yet. A session of a project is where agents share what they write; agents without one see only themselves.",
    );
    this.bin = new Bin(this.desk);
    this.element = h(
      "div",
      {},
      h(
        "section",
        { class: "wb-section wb-stack", "aria-labelledby": id },
        h(
          "div",
          { class: "wb-toolbar" },
          h("h3", { class: "wb-heading", id }, "Projects, sessions and teams"),
          h("span", { class: "wb-grow" }),
          this.newTeam,
          this.newOne,
        ),
        this.top,
        this.asker.problem,
        this.empty,
        this.list,
      ),
      this.bin.element,
    );
  }

  /** Bring the tree up to date, unless somebody is typing in it. */
  update() {
    const { projects, sessions, teams } = this.store.tables;
    const rows = [...projects.values(), ...sessions.values(), ...teams.values()];
    const same = rows.length === this.drawn.length && rows.every((row, at) => row === this.drawn[at]);
    this.empty.hidden = this.store.version === null || rows.length > 0;
    if (same || this.form) return;
    this.drawn = rows;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.list.replaceChildren(...this.items());
    if (focused) (this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? this.newOne).focus();
  }

  items() {
    const { tables } = this.store;
    const found = [];
    for (const project of named(tables.projects)) {
      found.push(this.item("project", project, [counted(project.sessions, "session")]));
      for (const session of sessionsOf(tables, project.id)) {
        found.push(
          this.item("session", session, [counted(session.agents, "agent"), counted(session.contexts, "context")]),
        );
        for (const team of teamsOf(tables, session.id))
          found.push(this.item("team", team, [counted(team.agents, "agent")]));
      }
    }
    const free = teamsOf(tables, null);
    if (free.length) found.push(h("li", { class: "wb-entry wb-muted" }, "Teams in no session"));
    return [...found, ...free.map((team) => this.item("team", team, [counted(team.agents, "agent")], 2))];
  }

  item(noun, row, facts, level = LEVELS[noun]) {
    const below = h("div", {});
    const act = (label, onClick) => {
      const made = button(label, "wb-link wb-quiet", onClick, `${label} ${row.name}`);
      made.dataset.key = `${noun}:${row.id}:${label}`;
      return made;
    };
    const child = { project: "session", session: "team" }[noun];
    return h(
      "li",
      { class: `wb-level-${level}` },
      h(
        "div",
        { class: "wb-entry" },
        h("span", { class: "wb-entry-kind" }, noun),
        h("span", { class: "wb-entry-name wb-cut", title: row.description || row.name }, row.name),
        h("span", { class: "wb-muted wb-grow wb-cut" }, [...facts, row.description].filter(Boolean).join(" · ")),
        h(
          "span",
          { class: "wb-entry-actions" },
          child
            ? act(`New ${child}…`, () => this.create(child, below, row))
            : act("Move…", () => this.move(row, below)),
          act("Rename…", () => this.rename(noun, row, below)),
          act("Delete…", () => this.remove(noun, row, below)),
        ),
      ),
      below,
    );
  }

  create(noun, where, parent = null) {
    const place = parent ? { [noun === "session" ? "project_id" : "session_id"]: parent.id } : {};
    const words = {
      label: `Create ${noun}`,
      what: parent ? `Name of the ${noun} in ${parent.name}` : `Name of the ${noun}`,
    };
    this.open(where, (done) => new Naming(this.desk, words, (name) => [`create_${noun}`, { name, ...place }], done));
  }

  rename(noun, row, where) {
    const words = { label: "Rename", value: row.name, what: `New name of ${row.name}` };
    this.open(
      where,
      (done) => new Naming(this.desk, words, (name) => [`update_${noun}`, { [`${noun}_id`]: row.id, name }], done),
    );
  }

  remove(noun, row, where) {
    const within = {
      project: "Its sessions, teams and contexts go with it.",
      session: "Its teams and contexts go with it.",
      team: "Its members stay, without a team.",
    }[noun];
    const words = { label: `Delete ${row.name}`, why: `${within} It can be restored below.` };
    const act = async (done, pressed) => {
      if (await this.asker.ask(`delete_${noun}`, { [`${noun}_id`]: row.id }, pressed)) done({});
    };
    this.open(
      where,
      (done) =>
        new Confirm(
          words,
          (_, pressed) => act(done, pressed),
          () => done(null),
        ),
    );
  }

  move(team, where) {
    this.open(where, (done) => new Moving(this.desk, team, done));
  }

  /** Open a form in the tree; one at a time. */
  open(where, make) {
    this.close();
    const opener = document.activeElement;
    const done = (outcome) => {
      this.close();
      if (outcome) {
        this.desk.announce("Done.");
        this.bin.stale();
      }
      if (opener?.isConnected) opener.focus();
      this.update();
    };
    this.form = make(done);
    where.replaceChildren(this.form.element);
    this.form.focus();
  }

  close() {
    this.asker.clear();
    this.form?.element.remove();
    this.form = null;
  }
}

/** Where a team is to go. */
class Moving {
  constructor(desk, team, onDone) {
    this.asker = new Asker(desk);
    this.target = select([], NONE, { class: "wb-input wb-grow", "aria-label": `Session for ${team.name}` });
    setOptions(
      this.target,
      [["", [[NONE, "No session"]]], ...sessionGroups(desk.store.tables)],
      team.session_id ?? NONE,
    );
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Move");
    const submit = async () => {
      const args = { team_id: team.id, session_id: this.target.value || null };
      if (await this.asker.ask("move_team", args, this.submit)) onDone({});
    };
    this.element = form(
      { class: "wb-stack" },
      { submit, escape: () => onDone(null) },
      h(
        "div",
        { class: "wb-line" },
        this.target,
        this.submit,
        button("Cancel", "wb-button", () => onDone(null)),
      ),
      h("p", { class: "wb-muted" }, "Its members move along."),
      this.asker.problem,
    );
  }

  focus() {
    this.target.focus();
  }
}

/** What was deleted, to be brought back. It is read when it is opened. */
class Bin {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    const id = freshId("bin");
    this.opener = button("Show", "wb-button", () => (this.isOpen ? this.close() : this.load()));
    this.list = h("ul", { class: "wb-entries", hidden: true });
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h(
        "div",
        { class: "wb-toolbar" },
        h("h3", { class: "wb-heading", id }, "Deleted"),
        h("span", { class: "wb-grow" }),
        this.opener,
      ),
      this.asker.problem,
      this.list,
    );
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Something was deleted or restored. */
  stale() {
    if (this.isOpen) this.load();
  }

  close() {
    this.list.hidden = true;
    this.opener.textContent = "Show";
  }

  async load() {
    const nouns = ["project", "session", "team", "agent"];
    const pages = [];
    for (const noun of nouns) {
      const page = await this.asker.ask(`list_${noun}s`, { deleted: true, limit: 500 });
      if (!page) return;
      pages.push(...page[`${noun}s`].map((row) => this.item(noun, row.id ?? row.agent_id, row.name)));
    }
    this.list.replaceChildren(...(pages.length ? pages : [h("li", { class: "wb-empty" }, "Nothing was deleted.")]));
    this.list.hidden = false;
    this.opener.textContent = "Hide";
  }

  item(noun, id, name) {
    const restore = button(
      "Restore",
      "wb-link wb-quiet",
      async (event) => {
        if (!(await this.asker.ask(`restore_${noun}`, { [`${noun}_id`]: id }, event.currentTarget))) return;
        this.desk.announce(`${name} is back.`);
        this.load();
      },
      `Restore ${name}`,
    );
    return h(
      "li",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-kind" }, noun),
      h("span", { class: "wb-entry-name wb-cut wb-grow" }, name),
      restore,
    );
  }
}
