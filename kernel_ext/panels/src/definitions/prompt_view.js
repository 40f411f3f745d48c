/** The prompt of a definition: what the system prompt begins with. */

import { textarea } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { DraftForm } from "./draft_form.js";

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
