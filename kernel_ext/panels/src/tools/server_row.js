/** One MCP server in the list: its state, what it offers and what is wrong with it, and what can be done with it. */

import { Facts, labelled, message } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button, enable } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { plural, shortList } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { RequestRunner } from "../link/request_runner.js";
import { ServerForm } from "./server_form.js";

/** Labels and icons by state. */
const STATES = {
  ready: ["Ready", "completed"],
  starting: ["Starting", "in_progress"],
  failed: ["Down", "failed"],
  stopped: ["Stopped", "pending"],
  disabled: ["Switched off", "cancelled"],
  untrusted: ["Waits for your trust", "shield"],
  refused: ["Refused", "cancelled"],
  invalid: ["Invalid", "warning"],
};

export class ServerRow {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.opener = button("", "wb-opener", () => this.toggle());
    this.opener.setAttribute("aria-expanded", "false");
    this.state = h("span", { class: "wb-state wb-server-state" });
    this.target = h("code", { class: "wb-muted wb-grow wb-cut" });
    this.count = h("span", { class: "wb-muted" });
    const link = (label, onClick) => button(label, "wb-link wb-quiet", onClick);
    this.restart = link("Restart", () => this.run("restart_tool_server", {}, this.restart, "Restarting…"));
    this.toggleUse = link("", () => this.switch());
    this.edit = link("Edit…", () => this.openForm());
    this.remove = link("Remove…", () => this.askRemove());
    const actions = [this.restart, this.toggleUse, this.edit, this.remove];
    const line = [
      this.opener,
      this.state,
      this.target,
      this.count,
      h("span", { class: "wb-entry-actions" }, ...actions),
    ];
    this.problem = h("div", {});
    this.box = h("div", {});
    this.facts = new Facts();
    this.log = h("div", {});
    this.below = h("div", { class: "wb-stack wb-server-details", hidden: true }, this.facts.element, this.log);
    const parts = [this.problem, this.box, this.requests.errorBox, this.below];
    this.element = h(
      "li",
      {},
      h("div", { class: "wb-entry wb-server" }, ...line),
      h("div", { class: "wb-stack" }, ...parts),
    );
    this.elements = [this.element];
  }

  /** @param {any} server @param {boolean} enabled whether requests can be sent */
  show(server, enabled) {
    const { name, state, target, tools } = server;
    const isOther = server !== this.server;
    this.server = server;
    this.enabled = enabled;
    this.drawActions();
    if (!isOther) return;
    const [label, mark] = STATES[state] ?? [state, "question"];
    setText(this.opener, name);
    this.state.replaceChildren(icon(mark), h("span", {}, label));
    setText(this.target, target);
    this.target.title = target;
    setText(this.count, state === "ready" ? plural(tools.length, "tool") : "");
    this.drawProblem();
    this.drawDetails();
  }

  drawActions() {
    const { name, state } = this.server;
    enable(this.enabled && !this.requests.busy, this.restart, this.toggleUse, this.edit, this.remove);
    const isOff = state === "disabled";
    this.restart.hidden = isOff || state === "untrusted" || state === "refused" || state === "invalid";
    if (!this.requests.busy) setText(this.toggleUse, isOff ? "Switch on" : "Switch off");
    const named = {
      restart: "Restart",
      toggleUse: isOff ? "Switch on" : "Switch off",
      edit: "Edit…",
      remove: "Remove…",
    };
    for (const [part, label] of Object.entries(named)) setAttribute(this[part], "aria-label", `${label} ${name}`);
  }

  drawProblem() {
    const { problem, state, warnings = [] } = this.server;
    const where = state === "untrusted" ? " The question is in the inbox." : "";
    const texts = [...(problem ? [`${problem}${where}`] : []), ...warnings];
    this.problem.replaceChildren(...texts.map((text) => message("warning", text)));
  }

  drawDetails() {
    const { about, confined, restarts, tools, left_out: left, tool_problems: problems, log } = this.server;
    this.facts.update([
      ["Server", about],
      ["Program", confined === null ? null : confined ? "confined" : "not confined"],
      ["Restarts", restarts],
      ["Tools", tools.length > 0 && shortList(tools, 30)],
      ["Left out", left > 0 && `${plural(left, "tool")}: ${problems.join("; ")}`],
    ]);
    const text = h("pre", { class: "wb-log wb-pre", tabindex: 0 }, log);
    this.log.replaceChildren(...(log ? [labelled("Standard error", text)] : []));
  }

  toggle() {
    const open = this.below.hidden;
    this.below.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
  }

  async run(op, more, pressed, label) {
    const { name } = this.server;
    const running = this.requests.run(op, { name, ...more }, pressed, label);
    this.drawActions();
    const outcome = await running;
    this.drawActions();
    if (outcome?.state) this.desk.announce(`${name}: ${STATES[outcome.state]?.[0] ?? outcome.state}.`);
    return outcome;
  }

  switch() {
    const enabled = this.server.state === "disabled";
    return this.run("update_tool_server", { enabled }, this.toggleUse, enabled ? "Starting…" : "Stopping…");
  }

  openForm() {
    const form = new ServerForm(this.desk, this.server, () => {
      this.box.replaceChildren();
      this.edit.focus();
    });
    this.box.replaceChildren(form.element);
    form.focus();
  }

  askRemove() {
    const { name } = this.server;
    const words = {
      label: `Remove ${name}`,
      consequence: "Its configuration is removed, and its tools can be called no more.",
    };
    askIn(this.box, this.remove, words, async (_, pressed) => {
      if (await this.run("remove_tool_server", {}, pressed, "Removing…")) this.desk.announce(`${name} is removed.`);
    });
  }
}
