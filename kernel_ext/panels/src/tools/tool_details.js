/** One tool, opened: what it says about itself, whether agents may call it, and a form to try it. */

import { Facts, labelled } from "../lib/blocks.js";
import { enable } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { resultBlocks, valueBlock } from "../contents/values.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { ParameterForm } from "./parameter_form.js";
import { PermissionChoice } from "./permission_choice.js";
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
    const found = await this.reader.send("get_tool", { name: this.tool.name });
    this.reader.clearError();
    this.draw(found);
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
  const found = error?.details?.problems ?? [];
  return Object.fromEntries(found.map(({ field, reason }) => [field.split(".")[0], reason]));
}
