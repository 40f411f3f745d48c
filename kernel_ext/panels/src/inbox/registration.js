/** The card of an agent that asks to be admitted. */

import { h } from "../lib/dom.js";
import { brief } from "../lib/format.js";
import { capabilities } from "../agents/capabilities.js";
import { GrantFields } from "../agents/grant.js";
import { lastUsed, sessionName } from "../projects/places.js";

/** @type {import("./card.js").Kind} */
export const registration = {
  icon: "registration",
  label: "registration",
  primary: "Admit",
  busy: "Admitting…",
  title: ({ payload }) => payload.name,
  origin: ({ payload }) => (payload.spawned_by ? `spawned by ${payload.spawned_by}` : "came by itself"),
  summary: ({ payload }, tables) => {
    const session = sessionName(tables, placeOf(payload, tables));
    return [
      "as ",
      h("code", {}, payload.suggested_id),
      ` · ${payload.persona_id ?? "no persona"}`,
      payload.role === payload.persona_id ? null : ` · ${payload.role}`,
      " · read and write",
      session ? ` · in ${session}` : null,
      payload.worktree ? ` · worktree ${payload.worktree}` : null,
    ];
  },
  facts: ({ payload }) => [...origins(payload), ...abilities(payload.capabilities)].join(" · "),
  done: (outcome) => `Admitted as ${outcome.agent_id}.`,
  careful: () => false,
  choices: ({ payload }, tables) => ({ session_id: placeOf(payload, tables) }),
  details: (approval, tables) => new Grant(approval, tables),
};

/** What the agent is granted: fields with the defaults filled in. */
class Grant {
  constructor({ payload }, tables) {
    this.place = placeOf(payload, tables);
    this.fields = new GrantFields(tables, {
      agent_id: payload.suggested_id,
      persona_id: payload.persona_id,
      role: payload.role,
      session_id: this.place,
    });
    this.first = this.fields.first;
    this.element = h(
      "div",
      { class: "wb-box wb-stack wb-roomy" },
      this.fields.element,
      capabilities(payload.capabilities),
    );
  }

  /** What differs from what was asked for, and the session, which is always the one that is shown. */
  choices() {
    const choices = { session_id: this.place, ...this.fields.choices() };
    return "persona_id" in choices ? { ...choices, role: this.fields.controls.role.value } : choices;
  }

  refresh() {
    this.fields.refresh();
  }

  fieldOf(error) {
    return this.fields.fieldOf(error);
  }
}

/** The session proposed: of who spawned it, else the one that was used last. */
function placeOf({ suggested_session: suggested, spawned_by: parent }, tables) {
  const proposed = suggested && tables.sessions.has(suggested.id) ? suggested.id : null;
  return parent ? proposed : (lastUsed(tables) ?? proposed);
}

function origins({ client, address, connection_id: connection }) {
  return [client, address ? `from ${address}` : null, connection ? `connection ${connection}` : null].filter(Boolean);
}

function abilities(known) {
  const entries = Object.entries(known ?? {});
  const said = entries
    .slice(0, 3)
    .map(([name, value]) => (value === true ? brief(name, 40) : `${brief(name, 40)}: ${brief(plain(value), 60)}`));
  return entries.length > 3 ? [...said, `${entries.length - 3} more`] : said;
}

function plain(value) {
  return Array.isArray(value)
    ? value.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ")
    : value;
}
