/** One tool, opened: what it says about itself, whether agents may call it, and a form to try it. */

import { Facts, labelled } from "../lib/blocks.js";
import { Segments, enable } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { resultBlocks, valueBlock } from "../contents/values.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { ParameterForm } from "./parameter_form.js";
import { KINDS } from "./state.js";

export class ToolDetails {
  /** @param {any} tool its row @param {any} desk */
  constructor(tool, desk) {
    this.tool = tool;
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    const onError = (error) => this.reader.showError(error);
    this.reading = new Refresh(() => this.read(), onError);
    this.about = h("p", { class: "wb-prose" });
    this.facts = new Facts();
    this.permission = new PermissionChoice(desk, tool);
    this.schemas = h("details", {}, h("summary", { class: "wb-muted", tabindex: 0 }, "Schemas"));
    this.form = h("div", {});
    this.run = h("button", { class: "wb-button wb-primary", type: "submit" }, "Run");
    this.outcome = h("div", { class: "wb-stack", "aria-live": "polite" });
    this.element = h(
      "div",
      { class: "wb-tool-columns" },
      h("div", { class: "wb-stack wb-roomy" }, this.about, this.facts.element, this.permission.element, this.schemas),
      h("div", { class: "wb-stack wb-roomy" }, this.reader.errorBox, this.tryForm()),
    );
    this.reading.now();
  }

  tryForm() {
    const submit = (event) => {
      event.preventDefault();
      this.call();
    };
    const keydown = (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.stopPropagation(); // JupyterLab would run the cell
      this.call();
    };
    const line = h("div", { class: "wb-line" }, this.run);
    const parts = [h("div", { class: "wb-label" }, "Try it"), this.form, line, this.requests.errorBox, this.outcome];
    const attributes = { class: "wb-stack", "aria-label": `Try ${this.tool.name}`, on: { submit, keydown } };
    return h("form", attributes, ...parts);
  }

  async read() {
    const tool = await this.reader.send("get_tool", { name: this.tool.name });
    this.reader.clearError();
    this.draw(tool);
  }

  /** Draw what the row does not have. What was typed stays unless the parameters have changed. */
  draw({ description, parameters, result, version, idempotent, open_world: openWorld }) {
    setText(this.about, description);
    this.more = { version, idempotent, openWorld };
    this.drawFacts();
    const key = JSON.stringify([parameters, result]);
    if (key === this.drawnSchemas) return;
    const typed = this.drawnSchemas ? this.parameters?.values() : null;
    this.drawnSchemas = key;
    this.parameters = new ParameterForm(parameters, typed);
    this.form.replaceChildren(this.parameters.element);
    this.drawRun();
    const { announce } = this.desk;
    this.schemas.replaceChildren(
      this.schemas.firstChild,
      labelled("Arguments", valueBlock(parameters, "Copy the schema of the arguments", announce)),
      ...(result ? [labelled("Result", valueBlock(result, "Copy the schema of the result", announce))] : []),
    );
  }

  drawFacts() {
    const { kind, server, read_only: reads, destructive } = this.tool;
    const { version, idempotent, openWorld } = this.more ?? {};
    const hints = [
      reads ? "only reads" : destructive ? "may delete or overwrite" : "changes something",
      !reads && idempotent && "the same call again changes nothing more",
      openWorld && "reaches beyond this project",
    ];
    this.facts.update([
      ["Kind", KINDS[kind] ?? kind],
      ["Server", server],
      ["It says that it", hints.filter(Boolean).join(", ")],
      ["Version", version],
    ]);
  }

  /** @param {any} tool its row @param {boolean} enabled whether requests can be sent */
  update(tool, enabled) {
    if (tool !== this.tool) this.reading.now();
    this.tool = tool;
    this.enabled = enabled;
    this.permission.update();
    this.drawRun();
  }

  drawRun() {
    if (!this.requests.busy) enable(this.enabled && !this.tool.problem && Boolean(this.parameters), this.run);
  }

  async call() {
    if (this.run.getAttribute("aria-disabled") === "true" || !this.parameters) return;
    const values = this.parameters.values();
    if (values === null) return;
    const began = Date.now();
    this.outcome.replaceChildren();
    const done = await this.requests.run(
      "call_tool",
      { name: this.tool.name, arguments: values },
      this.run,
      "Running…",
    );
    if (done) this.showOutcome(done, Date.now() - began);
    else this.parameters.mark(problemsOf(this.requests.error));
  }

  showOutcome({ result, is_error: isError }, ms) {
    const text = `${isError ? "The tool reports an error" : "Done"} after ${duration(ms)}.`;
    const head = h("div", { class: "wb-message" }, icon(isError ? "failed" : "completed"), h("span", {}, text));
    this.outcome.replaceChildren(head, ...resultBlocks(result, this.desk.announce));
    this.desk.announce(`${this.tool.name}: ${text}`);
  }

  /** Do not follow the tool any more. */
  stop() {
    this.reading.stop();
  }
}

/** What is wrong with which argument. @returns {Record<string, string>} */
function problemsOf(error) {
  const problems = error?.details?.problems ?? [];
  return Object.fromEntries(problems.map(({ field, reason }) => [field.split(".")[0], reason]));
}

const CHOICES = { always: "Always", ask: "Ask me", never: "Never" };

/** Whether agents and the models of conversations may call a tool: always, after asking the person, or never. */
class PermissionChoice {
  /** @param {any} desk @param {any} tool its row */
  constructor(desk, tool) {
    this.desk = desk;
    this.tool = tool;
    this.requests = new RequestRunner(desk);
    this.segments = new Segments(CHOICES, `Permission to call ${tool.name}`, (permission) => this.choose(permission));
    this.note = h("span", { class: "wb-muted" });
    this.narrowed = h("ul", { class: "wb-list", "aria-label": "Calls that run without asking" });
    // Agents are granted the operations of Workbench with their role and level.
    const who = tool.kind === "operation" ? "Models of conversations" : "Agents and models of conversations";
    this.element = h(
      "div",
      { class: "wb-stack" },
      h("div", { class: "wb-label" }, `${who} may call it`),
      h("div", { class: "wb-line" }, this.segments.element, this.note),
      this.narrowed,
      this.requests.errorBox,
    );
    this.update();
  }

  /** Show what is decided, or what holds if nothing is. */
  update() {
    const decided = decidedAbout(this.desk.store.tables.permissions, this.tool);
    this.segments.show(decided?.permission ?? (this.tool.read_only ? "always" : "ask"));
    const changed = "It has changed since: you are asked again.";
    const narrowed = narrowedAbout(this.desk.store.tables.permissions, this.tool);
    const none = narrowed.length ? "" : "You have decided nothing about it yet.";
    setText(this.note, decided ? (decided.changes.length ? changed : "") : none);
    this.narrowed.replaceChildren(...narrowed.map((text) => h("li", { class: "wb-muted wb-wrap" }, text)));
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

/** Which calls of a tool run without asking: those of a conversation, for a task, or with such arguments. */
function narrowedAbout(permissions, { name, offered_by: offerer }) {
  const isNarrowed = (row) => row.conversation_id || row.task_id || row.arguments;
  return [...permissions.values()]
    .filter((row) => row.tool === name && row.offered_by === offerer && isNarrowed(row))
    .map(({ conversation_id: conversation, task_id: task, arguments: such, changes }) => {
      const parts = [
        conversation && `in the conversation ${conversation}`,
        task && `for task ${task}`,
        such && `with ${JSON.stringify(such)}`,
      ];
      const outdated = changes.length ? " – no more, because it has changed" : "";
      return `Runs without asking ${parts.filter(Boolean).join(" ")}${outdated}`;
    });
}
