/** Admission rules: agents that match one are admitted without a decision. */

import { ACCESS, GrantFields, TOOLS } from "../agents/grant.js";
import { button, field, form, formButtons, input, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { sessionPath } from "../projects/lookup.js";
import { section, TableWatch } from "./section.js";

const ORIGINS = { here: "You, on this machine only", anywhere: "Anywhere" };
const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
];

export class Rules {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.list = h("ul", { class: "wb-entries" });
    this.opener = button("New rule…", "wb-button", () => this.open());
    const on = { submit: () => this.add(), escape: () => this.close() };
    this.form = form({ class: "wb-box wb-stack wb-roomy", hidden: true }, on);
    this.rows = new TableWatch(
      () => desk.store.tables.rules,
      (rows) => this.draw(rows),
    );
    this.element = section(
      "Admission rules",
      "An agent that matches a rule is admitted without asking you. Its history names the rule.",
      this.list,
      this.form,
      this.requests.errorBox,
      this.opener,
    );
  }

  update() {
    this.rows.update();
    this.fields?.refresh();
  }

  draw(rows) {
    this.list.replaceChildren(...rows.map((rule) => this.entry(rule)));
    this.list.hidden = !rows.length;
  }

  entry(rule) {
    const { name, pattern, loopback_only: local, grants } = rule;
    const remove = (event) => this.remove(name, event.currentTarget);
    const text = ` ${local ? "that run as you on this machine" : "from anywhere"}, ${this.grantText(grants)}`;
    return h(
      "li",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-name wb-cut" }, name),
      h("span", { class: "wb-grow wb-wrap" }, "admits ", h("code", {}, pattern), text),
      button("Remove", "wb-link wb-quiet", remove, `Remove the rule ${name}`),
    );
  }

  /** "as reviewer, read only, in Lab / Day 1" */
  grantText(grants) {
    const { tables } = this.desk.store;
    const team = grants.team_id && (tables.teams.get(grants.team_id)?.name ?? grants.team_id);
    const kind = [grants.persona_id, grants.role].filter(Boolean);
    const parts = [
      kind.length ? `as ${kind.join(", ")}` : null,
      grants.tool && TOOLS[grants.tool].toLowerCase(),
      grants.access_level && `sees the work of ${ACCESS[grants.access_level].toLowerCase()}`,
      grants.session_id && `in ${sessionPath(tables, grants.session_id) ?? grants.session_id}`,
      team && `team ${team}`,
      grants.definition && `definition ${this.definitionName(grants.definition)}`,
      grants.definitions && "manages definitions",
      grants.expires_in_seconds && `for ${wholeDuration(grants.expires_in_seconds)}`,
    ].filter(Boolean);
    return parts.join(", ") || "as requested";
  }

  definitionName(wanted) {
    const rows = [...this.desk.store.tables.definitions.values()];
    return rows.find(({ definition_id: id }) => id === wanted)?.name ?? wanted;
  }

  open() {
    this.name = input("", { maxlength: 64, required: true, placeholder: "night shift" });
    this.pattern = input("", { maxlength: 200, required: true, placeholder: "worker-*" });
    this.origin = select(Object.entries(ORIGINS), "here");
    this.fields = new GrantFields(this.desk.store.tables, {}, "As requested");
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Add rule");
    const own = [
      field("Name of the rule", this.name),
      field("Names of agents, with * and ?", this.pattern),
      field("From", this.origin),
    ];
    this.form.replaceChildren(
      h("div", { class: "wb-fields" }, ...own),
      this.fields.element,
      formButtons(this.submit, () => this.close()),
    );
    this.form.hidden = false;
    this.opener.hidden = true;
    this.name.focus();
  }

  close() {
    this.requests.clearError();
    this.form.hidden = true;
    this.fields = null;
    this.opener.hidden = false;
    this.opener.focus();
  }

  async add() {
    const args = {
      name: this.name.value.trim(),
      pattern: this.pattern.value.trim(),
      loopback_only: this.origin.value === "here",
      grants: this.fields.choices(),
    };
    if (!(await this.requests.run("add_admission_rule", args, this.submit, "Adding…"))) return;
    this.desk.announce(`The rule ${args.name} was added.`);
    this.close();
  }

  async remove(name, pressed) {
    const outcome = await this.requests.run("remove_admission_rule", { name }, pressed, "Removing…");
    if (outcome) this.desk.announce(`The rule ${name} was removed.`);
  }
}

/** "8 h", in the largest unit that divides it. */
function wholeDuration(seconds) {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one && seconds % one === 0) ?? ["s", 1];
  return `${(seconds / size).toLocaleString("en")} ${unit}`;
}
