/** A form for a new conversation, or for what an existing one uses: its model, tools and limits. */

import { field, form, formButtons, input, select, setOptions } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { inOrder } from "../lib/sorting.js";
import { RequestRunner } from "../link/request_runner.js";

/** What the model may call, as one choice. */
const TOOLS = {
  tools: { label: "Functions of notebooks, and MCP servers", names: ["*"] },
  operations: { label: "These, and the operations of Workbench", names: ["*", "workbench"] },
  none: { label: "No tools", names: [] },
};
const LIMITS = {
  turns: { label: "Answers", step: 1 },
  tokens: { label: "Tokens", step: 1 },
  cost_usd: { label: "US dollars", step: "any" },
  seconds: { label: "Seconds for an answer", step: "any" },
  steps: { label: "Requests for an answer", step: 1 },
};
const FIELD_OF_ERROR = {
  MODEL_REQUIRED: "model",
  PROVIDER_UNKNOWN: "model",
  DEFINITION_NOT_FOUND: "definition",
};

export class ConversationForm {
  /**
   * @param {any} desk
   * @param {any|null} conversation null: a new one
   * @param {(conversation: any|null) => void} onDone null: it was cancelled
   */
  constructor(desk, conversation, onDone) {
    this.conversation = conversation;
    this.tables = desk.store.tables;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.models = h("datalist", { id: freshId("models") });
    this.offerModels();
    this.controls = this.make(this.tables, conversation);
    const label = conversation ? "Save" : "Begin";
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, label);
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-confirm wb-stack wb-roomy", "aria-label": conversation ? "Settings" : "New conversation" },
      { submit: () => this.run(), escape: cancel },
      h("div", { class: "wb-fields wb-fields-3" }, ...this.fields()),
      this.limitFields(),
      this.models,
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  /** Offer models to choose from; others can be typed. */
  async offerModels() {
    try {
      const { models } = await this.requests.send("list_models", {});
      this.models.replaceChildren(...models.map(({ name }) => h("option", { value: name })));
    } catch {
      // They are typed from memory.
    }
  }

  make(tables, conversation) {
    const present = conversation ? toolsOf(conversation.tools) : "tools";
    const others = present ? [] : [["", `Chosen: ${conversation.tools.join(", ")}`]];
    return {
      title: input(conversation?.title ?? "", { maxlength: 200, placeholder: "The beginning of the first message" }),
      definition: select(definitionOptions(tables), ""),
      model: input(conversation?.model ?? "", {
        maxlength: 200,
        list: this.models.id,
        placeholder: "That of the definition; or provider:model",
      }),
      tools: select([...others, ...Object.entries(TOOLS).map(([key, { label }]) => [key, label])], present),
      ...Object.fromEntries(
        Object.entries(LIMITS).map(([name, { step }]) => {
          const value = conversation?.limits[name] ?? "";
          return [name, input(String(value), { type: "number", min: 0, step, placeholder: "No limit" })];
        }),
      ),
    };
  }

  fields() {
    const { title, definition, model, tools } = this.controls;
    return [
      this.conversation ? field("Title", title) : field("Definition", definition),
      field("Model", model),
      field("Tools", tools),
    ];
  }

  limitFields() {
    const fields = Object.entries(LIMITS).map(([name, { label }]) => field(label, this.controls[name]));
    const summary = h("summary", { class: "wb-muted", tabindex: 0 }, "Limits");
    const isOpen = Object.keys(LIMITS).some((name) => this.controls[name].value);
    const content = h("div", { class: "wb-fields wb-limits" }, ...fields);
    return h("details", { open: isOpen }, summary, content);
  }

  /** Bring the definitions up to date. */
  refresh() {
    setOptions(this.controls.definition, [["", definitionOptions(this.tables)]]);
  }

  focus() {
    (this.conversation ? this.controls.title : this.controls.definition).focus();
  }

  /** What was chosen, as the operations take it. */
  choices() {
    const { title, definition, model, tools } = this.controls;
    const limits = Object.keys(LIMITS).map((name) => [name, this.controls[name].value]);
    return {
      ...(this.conversation ? { title: title.value } : { definition: definition.value || null }),
      model: model.value.trim() || null,
      ...(tools.value && { tools: TOOLS[tools.value].names }),
      limits: Object.fromEntries(limits.filter(([, value]) => value).map(([name, value]) => [name, Number(value)])),
    };
  }

  async run() {
    const id = this.conversation?.id;
    const [op, target] = id ? ["update_conversation", { conversation_id: id }] : ["create_conversation", {}];
    this.mark(null);
    const outcome = await this.requests.run(op, { ...target, ...this.choices() }, this.submit, "Saving…");
    if (outcome) this.onDone(outcome);
    else this.mark(this.requests.error);
  }

  /** Mark the field that an error is about. */
  mark(error) {
    for (const control of Object.values(this.controls)) control.removeAttribute("aria-invalid");
    const path = String(error?.details?.problems?.[0]?.field ?? "").split(".");
    const wrong = FIELD_OF_ERROR[error?.code] ?? path.find((name) => name in this.controls);
    if (!wrong) return;
    this.controls[wrong].setAttribute("aria-invalid", "true");
    this.controls[wrong].focus();
  }
}

/** The choice that has these names, or "". @param {string[]} names */
function toolsOf(names) {
  const key = JSON.stringify([...names].sort());
  return Object.keys(TOOLS).find((choice) => JSON.stringify(TOOLS[choice].names) === key) ?? "";
}

/** @param {import("../link/store.js").Tables} tables @returns {[string, string][]} path and name */
function definitionOptions({ definitions }) {
  const options = [...definitions.values()].filter(({ name }) => name).map(({ id, name }) => [id, name]);
  return [["", "None: a model alone"], ...options.sort(([, one], [, other]) => inOrder(one, other))];
}
