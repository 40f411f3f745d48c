/** The card of an agent that asks to be admitted. */

import { freshId, h } from "./dom.js";
import { brief } from "./format.js";

const ROLES = { worker: "Worker: takes tasks", planner: "Planner: also makes tasks" };
const TOOLS = { write: "Read and write", read: "Read only" };

/** @type {import("./card.js").Kind} */
export const registration = {
  icon: "registration",
  label: "registration",
  primary: "Admit",
  busy: "Admitting…",
  title: ({ payload }) => payload.name,
  origin: ({ payload }) => (payload.spawned_by ? `spawned by ${payload.spawned_by}` : "came by itself"),
  summary: ({ payload }) => [
    "as ",
    h("code", {}, payload.suggested_id),
    ` · ${payload.persona_id ?? "no persona"}`,
    payload.role === payload.persona_id ? null : ` · ${payload.role}`,
    " · read and write",
    payload.worktree ? ` · in ${payload.worktree}` : null,
  ],
  done: (outcome) => `Admitted as ${outcome.outcome.agent_id}.`,
  careful: () => false,
  details: (approval, personas) => new Grant(approval, personas),
};

/** What the agent is granted: fields with the defaults filled in. */
class Grant {
  constructor({ payload }, personas) {
    this.payload = payload;
    this.roleOf = new Map([...personas.values()].map(({ id, role }) => [id, role]));
    this.agentId = h("input", { class: "wb-input", type: "text", value: payload.suggested_id, maxlength: 64, spellcheck: "false", autocomplete: "off" });
    this.persona = select(personaOptions(payload, personas), payload.persona_id ?? "");
    this.role = select(ROLES, payload.role);
    this.tool = select(TOOLS, "write");
    this.roleTouched = false;
    this.persona.addEventListener("change", () => this.followPersona());
    this.role.addEventListener("change", () => (this.roleTouched = true));
    this.first = this.agentId;
    this.element = h(
      "div",
      { class: "wb-details" },
      h(
        "div",
        { class: "wb-fields" },
        field("Agent id", this.agentId),
        field("Persona", this.persona),
        field("Role", this.role),
        field("Access", this.tool),
      ),
      capabilities(payload.capabilities),
    );
  }

  /** Only what differs from what was asked for: the rest is the server's to choose. */
  choices() {
    const { payload } = this;
    const asked = { agent_id: payload.suggested_id, persona_id: payload.persona_id ?? "", role: payload.role, tool: "write" };
    const chosen = {
      agent_id: this.agentId.value.trim(),
      persona_id: this.persona.value,
      role: this.role.value,
      tool: this.tool.value,
    };
    const changed = Object.entries(chosen).filter(([name, value]) => value && value !== asked[name]);
    const choices = Object.fromEntries(changed);
    return choices.persona_id ? { ...choices, role: chosen.role } : choices;
  }

  /** The field that an error is about. @param {{code: string}} error */
  fieldOf({ code }) {
    if (code === "AGENT_ID_TAKEN" || code === "BAD_AGENT_ID") return this.agentId;
    return code === "PERSONA_NOT_FOUND" ? this.persona : null;
  }

  followPersona() {
    const role = this.roleOf.get(this.persona.value);
    if (role && !this.roleTouched) this.role.value = role;
  }
}

function personaOptions(payload, personas) {
  const named = [...personas.values()].map(({ id, name }) => [id, name]);
  const asked = payload.persona_id && !personas.has(payload.persona_id) ? [[payload.persona_id, payload.persona_id]] : [];
  return Object.fromEntries([...(payload.persona_id ? [] : [["", "None"]]), ...asked, ...named]);
}

function select(options, value) {
  const made = Object.entries(options).map(([id, name]) => h("option", { value: id }, name));
  const element = h("select", { class: "wb-input" }, ...made);
  element.value = value;
  return element;
}

function field(label, control) {
  control.id = freshId("field");
  return h("div", { class: "wb-field" }, h("label", { for: control.id }, label), control);
}

function capabilities(known) {
  const entries = Object.entries(known ?? {}).slice(0, 12);
  if (!entries.length) return null;
  return h(
    "div",
    {},
    h("div", { class: "wb-label" }, "What it says it can do"),
    h("ul", { class: "wb-list" }, ...entries.map(([name, value]) => fact(name, value))),
  );
}

function fact(name, value) {
  return h("li", {}, h("span", { class: "wb-muted wb-fact" }, brief(name, 60)), h("code", { class: "wb-said" }, brief(value)));
}
