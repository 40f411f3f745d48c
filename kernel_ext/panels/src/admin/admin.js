/** Administration: who comes in by a rule, who may act at all, what tools may touch, how busy it is, how to connect. */

import { Asker } from "../link/asker.js";
import { codeBlock } from "../lib/blocks.js";
import { button, checkbox, download, field, form, input, select } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { amount } from "../lib/format.js";
import { ACCESS, GrantFields } from "../agents/grant.js";
import { sessionName } from "../projects/places.js";

const POLL_MS = 2_000;
const RESOURCES = ["agents", "teams", "contexts", "sessions", "projects", "events"];
const ORIGINS = { here: "This machine only", anywhere: "Anywhere" };

export class Admin {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    const desk = { store, channel, announce };
    this.rules = new Rules(desk);
    this.allowlist = new Allowlist(desk);
    this.tools = new Tools(desk);
    this.performance = new Performance(desk, signal);
    this.connecting = new Connecting(desk);
    const parts = [this.rules, this.allowlist, this.tools, this.connecting, this.performance, new Exporting(desk)];
    this.element = h("div", {}, ...parts.map((part) => part.element));
  }

  /** Bring it up to date. Called only while it is shown. */
  update() {
    for (const part of [this.rules, this.allowlist, this.tools]) part.update();
    this.performance.wake();
    this.connecting.load();
  }

  /** It is no longer looked at. */
  rest() {
    this.performance.rest();
  }
}

/** A section under a heading. */
function section(title, about, ...content) {
  const id = freshId("section");
  const heading = h("h3", { class: "wb-heading", id }, title);
  const attributes = { class: "wb-section wb-stack", "aria-labelledby": id };
  return h(
    "section",
    attributes,
    about ? h("div", {}, heading, h("p", { class: "wb-muted" }, about)) : heading,
    ...content,
  );
}

/** Rows that are drawn anew only when they changed. */
class Rows {
  constructor(table, draw) {
    this.table = table;
    this.draw = draw;
    this.drawn = null;
  }

  update() {
    const rows = [...this.table().values()];
    if (this.drawn && rows.length === this.drawn.length && rows.every((row, at) => row === this.drawn[at])) return;
    this.drawn = rows;
    this.draw(rows);
  }
}

class Rules {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.list = h("ul", { class: "wb-entries" });
    this.opener = button("New rule…", "wb-button", () => this.open());
    this.form = form(
      { class: "wb-box wb-stack wb-roomy", hidden: true },
      { submit: () => this.add(), escape: () => this.close() },
    );
    this.rows = new Rows(
      () => desk.store.tables.rules,
      (rows) => this.draw(rows),
    );
    this.element = section(
      "Admission rules",
      "An agent that fits a rule is admitted without asking you; the rule's name stays in its history.",
      this.list,
      this.form,
      this.asker.problem,
      h("div", { class: "wb-line" }, this.opener),
    );
  }

  update() {
    this.rows.update();
    this.fields?.refresh();
  }

  draw(rows) {
    const made = rows.map((rule) => {
      const remove = button(
        "Remove",
        "wb-link wb-quiet",
        (event) => this.remove(rule, event.currentTarget),
        `Remove the rule ${rule.name}`,
      );
      const origin = rule.loopback_only ? "from this machine" : "from anywhere";
      return h(
        "li",
        { class: "wb-entry" },
        h("span", { class: "wb-entry-name wb-cut" }, rule.name),
        h(
          "span",
          { class: "wb-grow wb-cut" },
          "admits ",
          h("code", {}, rule.pattern),
          ` ${origin}, ${this.words(rule.grants)}`,
        ),
        remove,
      );
    });
    this.list.replaceChildren(...made);
    this.list.hidden = !made.length;
  }

  words(grants) {
    const { tables } = this.desk.store;
    const said = [
      grants.persona_id,
      grants.role,
      grants.tool,
      grants.access_level && `sees ${ACCESS[grants.access_level].toLowerCase()}`,
      grants.session_id && `in ${sessionName(tables, grants.session_id) ?? grants.session_id}`,
      grants.team_id && `team ${tables.teams.get(grants.team_id)?.name ?? grants.team_id}`,
      grants.expires_in_seconds && `for ${duration(grants.expires_in_seconds)}`,
    ].filter(Boolean);
    return said.length ? `as ${said.join(", ")}` : "as proposed";
  }

  open() {
    this.name = input("", { maxlength: 64, required: true, placeholder: "night shift" });
    this.pattern = input("", { maxlength: 200, required: true, placeholder: "worker-*" });
    this.origin = select(Object.entries(ORIGINS), "here");
    this.fields = new GrantFields(this.desk.store.tables, {}, "As proposed");
    this.really = h("button", { class: "wb-button wb-primary", type: "submit" }, "Add rule");
    this.form.replaceChildren(
      h(
        "div",
        { class: "wb-fields" },
        field("Name of the rule", this.name),
        field("Names of agents, with * and ?", this.pattern),
        field("From", this.origin),
      ),
      this.fields.element,
      h(
        "div",
        { class: "wb-line" },
        this.really,
        button("Cancel", "wb-button", () => this.close()),
      ),
    );
    this.form.hidden = false;
    this.opener.hidden = true;
    this.name.focus();
  }

  close() {
    this.asker.clear();
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
    if (!(await this.asker.ask("add_admission_rule", args, this.really, "Adding…"))) return;
    this.desk.announce(`The rule ${args.name} holds from now on.`);
    this.close();
  }

  async remove(rule, pressed) {
    if (await this.asker.ask("remove_admission_rule", { name: rule.name }, pressed, "Removing…"))
      this.desk.announce(`The rule ${rule.name} is removed.`);
  }
}

class Allowlist {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.list = h("ul", { class: "wb-pills" });
    this.said = h("span", {});
    this.id = input("", {
      class: "wb-input wb-narrow",
      maxlength: 64,
      required: true,
      placeholder: "Agent id",
      "aria-label": "Agent id to allow",
    });
    this.submit = h("button", { class: "wb-button", type: "submit" }, "Allow");
    this.rows = new Rows(
      () => desk.store.tables.allowlist,
      (rows) => this.draw(rows),
    );
    const line = form({ class: "wb-line" }, { submit: () => this.add() }, this.id, this.submit);
    this.element = section("Allowlist", this.said, this.list, line, this.asker.problem);
  }

  update() {
    this.rows.update();
  }

  draw(rows) {
    setText(
      this.said,
      rows.length
        ? "Only these agents may act."
        : "Empty: every admitted agent may act. The first id put here shuts all others out.",
    );
    this.list.hidden = !rows.length;
    this.list.replaceChildren(...rows.map((row) => this.pill(row)));
  }

  pill({ id, fixed }) {
    const remove = button(
      "×",
      "wb-link",
      (event) => this.run("disallow_agent", id, event.currentTarget),
      `Take ${id} off the allowlist`,
    );
    return h(
      "li",
      { class: "wb-pill", title: fixed ? "Named by the setting allowed_agents" : null },
      h("code", {}, id),
      fixed ? null : remove,
    );
  }

  async add() {
    if (await this.run("allow_agent", this.id.value.trim(), this.submit)) this.id.value = "";
  }

  async run(op, agent_id, pressed) {
    return this.asker.ask(op, { agent_id }, pressed, "…");
  }
}

class Tools {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.list = h("ul", { class: "wb-entries" });
    this.rows = new Rows(
      () => desk.store.tables.tools,
      (rows) => this.draw(rows),
    );
    this.element = section(
      "Tools",
      "What is switched off here nobody can use, whatever was granted.",
      this.list,
      this.asker.problem,
    );
  }

  update() {
    this.rows.update();
  }

  draw(rows) {
    this.list.replaceChildren(...rows.map((tool) => this.item(tool)));
  }

  item(tool) {
    const { box, element } = checkbox("Enabled", (on) => this.toggle(tool, on, box));
    box.checked = Boolean(tool.enabled);
    box.setAttribute("aria-label", `${tool.name} enabled`);
    return h(
      "li",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-name wb-cut" }, tool.name),
      h(
        "span",
        { class: "wb-muted wb-grow wb-cut", title: touches(tool.permissions) },
        `${tool.description} · ${touches(tool.permissions)}`,
      ),
      element,
    );
  }

  async toggle(tool, on, box) {
    const outcome = await this.asker.ask("update_agent_tool", { tool_id: tool.id, enabled: on });
    if (!outcome) box.checked = !on;
    else this.desk.announce(`${tool.name} is switched ${on ? "on" : "off"}.`);
  }
}

class Performance {
  constructor(desk, signal) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.timer = null;
    this.numbers = h("ul", { class: "wb-numbers" });
    this.element = section("Performance", "", this.numbers, this.asker.problem);
    signal.addEventListener("abort", () => this.rest(), { once: true });
  }

  /** Read it again and again as long as somebody looks. */
  wake() {
    if (this.timer !== null) return;
    this.timer = setInterval(() => this.load(), POLL_MS);
    this.load();
  }

  rest() {
    clearInterval(this.timer);
    this.timer = null;
  }

  async load() {
    if (this.asker.sending || document.hidden) return;
    const found = await this.asker.ask("get_performance", {});
    if (!found) return this.rest();
    const entries = flat(found);
    if (this.numbers.childElementCount !== entries.length)
      this.numbers.replaceChildren(
        ...entries.map(([name]) =>
          h("li", {}, h("span", { class: "wb-number-value" }), h("span", { class: "wb-number-name" }, name)),
        ),
      );
    entries.forEach(([, value], at) =>
      setText(this.numbers.children[at].firstChild, typeof value === "number" ? amount(value) : String(value ?? "–")),
    );
    return undefined;
  }
}

class Connecting {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.loaded = false;
    this.content = h("div", {});
    this.element = section(
      "Connect an agent",
      "Give one of these to the agent. It registers, waits, and appears in the inbox.",
      this.content,
      this.asker.problem,
    );
  }

  async load() {
    if (this.loaded || this.asker.sending) return;
    this.loaded = true;
    const found = await this.asker.ask("connection_instructions", {});
    if (found) this.content.replaceChildren(...found.instructions.map((one) => this.way(one)));
  }

  way({ title, text }) {
    return h(
      "details",
      { class: "wb-instructions" },
      h("summary", { tabindex: 0 }, title),
      codeBlock(text, `Copy: ${title}`, this.desk.announce),
    );
  }
}

class Exporting {
  constructor(desk) {
    this.desk = desk;
    this.asker = new Asker(desk);
    this.resource = select(
      RESOURCES.map((name) => [name, name[0].toUpperCase() + name.slice(1)]),
      "agents",
      { class: "wb-input wb-narrow", "aria-label": "What to export" },
    );
    const as = (format) =>
      button(
        format.toUpperCase(),
        "wb-button",
        (event) => this.run(format, event.currentTarget),
        `Download as ${format.toUpperCase()}`,
      );
    this.element = section(
      "Export",
      "",
      h("div", { class: "wb-line" }, this.resource, as("csv"), as("json")),
      this.asker.problem,
    );
  }

  async run(format, pressed) {
    const made = await this.asker.ask("export", { resource: this.resource.value, format }, pressed, "…");
    if (!made) return;
    download(made.filename, made.content_type, made.content);
    this.desk.announce(`${made.filename} is downloaded.`);
  }
}

/** Numbers of any depth as a flat list of words and values. */
function flat(values, before = "") {
  return Object.entries(values).flatMap(([name, value]) => {
    const label = `${before}${name.replaceAll("_", " ")}`;
    return value !== null && typeof value === "object" ? flat(value, `${label} `) : [[label, value]];
  });
}

function touches({ read = [], write = [] } = {}) {
  const said = [read.length ? `reads ${read.join(", ")}` : null, write.length ? `writes ${write.join(", ")}` : null];
  return said.filter(Boolean).join("; ");
}

function duration(seconds) {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
  ];
  const [unit, size] = units.find(([, one]) => seconds >= one && seconds % one === 0) ?? ["s", 1];
  return `${(seconds / size).toLocaleString("en")} ${unit}`;
}
