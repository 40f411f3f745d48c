/** Whether agents and the models of conversations may call a tool: always, after asking the person, or never. */

import { h, setText } from "../lib/dom.js";
import { Segments } from "../lib/segments.js";
import { RequestRunner } from "../link/request_runner.js";

const CHOICES = { always: "Always", ask: "Ask me", never: "Never" };

export class PermissionChoice {
  /** @param {any} desk @param {any} tool its row */
  constructor(desk, tool) {
    this.desk = desk;
    this.tool = tool;
    this.requests = new RequestRunner(desk);
    this.segments = new Segments(CHOICES, `Permission to call ${tool.name}`, (permission) => this.choose(permission));
    this.note = h("span", { class: "wb-muted" });
    // Agents are granted the operations of Workbench with their role and level.
    const who = tool.kind === "operation" ? "Models of conversations" : "Agents and models of conversations";
    this.element = h(
      "div",
      { class: "wb-stack" },
      h("div", { class: "wb-label" }, `${who} may call it`),
      h("div", { class: "wb-line" }, this.segments.element, this.note),
      this.requests.errorBox,
    );
    this.update();
  }

  /** Show what is decided, or what holds if nothing is. */
  update() {
    const decided = decidedAbout(this.desk.store.tables.permissions, this.tool);
    this.segments.show(decided?.permission ?? (this.tool.read_only ? "always" : "ask"));
    const changed = "It has changed since: you are asked again.";
    setText(this.note, decided ? (decided.changes.length ? changed : "") : "You have decided nothing about it yet.");
  }

  async choose(permission) {
    const { name } = this.tool;
    const outcome = await this.requests.run("set_tool_permission", { name, permission });
    if (!outcome) return;
    this.segments.show(permission);
    setText(this.note, "");
    this.desk.announce(`${name}: ${CHOICES[permission].toLowerCase()}.`);
  }
}

/** What is decided about a tool as it is offered here, or else about all tools of its name. */
function decidedAbout(permissions, { name, offered_by: offerer }) {
  return permissions.get(`${name} ${offerer}`) ?? permissions.get(`${name} `);
}
