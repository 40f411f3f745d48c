/** The prompt of a definition: its text, and a preview of the whole system prompt as an agent gets it. */

import { textarea } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { DraftForm } from "./draft_form.js";
import { codeBlock, labelled } from "../lib/blocks.js";
import { plural } from "../lib/format.js";

export class PromptView {
  /** @param {any} desk @param {string} agentTarget @param {any} definition @param {import("./pane.js").Navigation} on */
  constructor(desk, agentTarget, definition, on) {
    const control = textarea(definition.prompt, 18, { required: true });
    this.form = new DraftForm(
      desk,
      "Prompt",
      {
        prompt: { label: "The system prompt begins with this text; rules and references follow.", wide: true, control },
      },
      {
        requests: (changed) => [["agent_set_system_prompt", { agentTarget, ...changed }]],
        saved: () => {
          desk.announce("The prompt is saved.");
          on.changed();
        },
        draft: () => on.draft(),
      },
    );
    const heading = h("h4", { class: "wb-strong", tabindex: -1 }, "Prompt");
    this.element = h("div", { class: "wb-stack" }, heading, this.form.element);
  }

  get isChanged() {
    return this.form.isChanged;
  }

  focus() {
    this.form.focus();
  }

  update({ prompt }) {
    this.form.update({ prompt });
  }
}

/** The system prompt that a definition amounts to, as an agent gets it, and what comes with it only on request. */
export class PreviewView {
  /** @param {any} desk @param {any} definition */
  constructor(desk, definition) {
    this.desk = desk;
    this.heading = h("h4", { class: "wb-strong", tabindex: -1 }, "Preview");
    this.size = h("span", { class: "wb-muted" });
    this.text = h("div", { class: "wb-preview" });
    this.offered = h("div", { class: "wb-stack" });
    const about = h("p", { class: "wb-muted" }, "The system prompt that an agent of this definition gets.");
    this.element = h(
      "div",
      { class: "wb-stack" },
      h("div", { class: "wb-line" }, this.heading, this.size),
      about,
      this.text,
      this.offered,
    );
    this.update(definition);
  }

  get isChanged() {
    return false;
  }

  focus() {
    this.heading.focus();
  }

  update(definition) {
    const { systemPrompt, rules, references } = definition;
    const key = JSON.stringify([systemPrompt, rules, references]);
    if (key === this.drawn) return;
    this.drawn = key;
    setText(this.size, plural(systemPrompt.length, "character"));
    this.text.replaceChildren(codeBlock(systemPrompt, "Copy the system prompt", this.desk.announce));
    const entries = [...rules, ...references];
    this.offered.replaceChildren(
      ...list("The agent reads these with a tool when it needs them", entries, "agent"),
      ...list("Included only when you ask for them", entries, "manual"),
    );
  }
}

function list(label, entries, include) {
  const matching = entries.filter((entry) => entry.include === include);
  if (!matching.length) return [];
  const line = ({ name, description }) =>
    h("li", {}, h("span", {}, name), description ? h("span", { class: "wb-muted wb-grow wb-cut" }, description) : null);
  return [labelled(label, h("ul", { class: "wb-list" }, ...matching.map(line)))];
}
