/** How the approval of a registration looks on its card. */

import { capabilityList, capabilityText } from "../agents/state.js";
import { GrantFields, grantedText } from "../agents/grant.js";
import { h } from "../lib/dom.js";
import { oneLine } from "../lib/format.js";
import { sessionPath } from "../projects/lookup.js";

const MOST = 3;
/** Capabilities of our own, in words. */
const CAPABILITIES = new Map([["commands_only", "takes only tasks that have a command"]]);

/** @type {import("./kinds.js").Kind} */
export const registration = {
  icon: "registration",
  label: "registration",
  approve: () => "Admit",
  approving: "Admitting…",
  title: ({ payload }) => payload.name,
  origin: ({ payload: { spawned_by: spawner, other_user: user } }) =>
    [
      spawner ? `spawned by ${spawner}` : "connected by itself",
      user ? `of another user of this machine: ${user}` : null,
    ]
      .filter(Boolean)
      .join(", "),
  summary: ({ payload }, tables) => {
    const session = sessionPath(tables, proposedSession(payload, tables));
    return [
      "as ",
      h("code", {}, payload.suggested_id),
      ` · ${payload.persona_id ?? "no persona"}`,
      payload.role === payload.persona_id ? null : ` · ${payload.role}`,
      " · read and write",
      session ? ` · in ${session}` : " · in no session",
      payload.worktree ? ` · worktree ${payload.worktree}` : null,
      payload.definition ? ` · definition ${payload.definition.name}` : null,
      payload.tools?.length ? ` · tools ${payload.tools.join(", ")}` : null,
      payload.environment?.length ? ` · sets ${payload.environment.join(", ")}` : null,
      payload.opens?.length ? ` · opens ${payload.opens.join("; ")}` : null,
    ];
  },
  facts: ({ payload }) => [...connectionFacts(payload), ...capabilityFacts(payload.capabilities)].join(" · "),
  discouraged: () => false,
  choices: ({ payload }, tables) => ({ session_id: proposedSession(payload, tables) }),
  done: ({ agent_id: id, granted }) => `Admitted as ${id}. ${grantedText(granted)}.`,
  details: (approval, tables) => new RegistrationDetails(approval, tables),
};

/** The grant, as fields filled with the defaults. */
class RegistrationDetails {
  constructor({ payload }, tables) {
    this.session = proposedSession(payload, tables);
    this.fields = new GrantFields(tables, {
      agent_id: payload.suggested_id,
      persona_id: payload.persona_id,
      role: payload.role,
      session_id: this.session,
      definition: payload.definition?.id ?? null,
      self_tools: payload.definition?.self_tools,
      tools: payload.tools,
    });
    this.first = this.fields.first;
    const capabilities = capabilityList(payload.capabilities);
    this.element = h("div", { class: "wb-box wb-stack wb-roomy" }, this.fields.element, capabilities);
  }

  /** What differs from the request; the session always, so that it is the one that is shown. */
  choices() {
    const choices = { session_id: this.session, ...this.fields.choices() };
    return "persona_id" in choices ? { ...choices, role: this.fields.controls.role.value } : choices;
  }

  refresh() {
    this.fields.refresh();
  }

  fieldOf(error) {
    return this.fields.fieldOf(error);
  }
}

/** The session that the request names, which is granted when no other is chosen; null: none, or it was deleted. */
function proposedSession({ suggested_session: suggested }, tables) {
  return suggested && tables.sessions.has(suggested.id) ? suggested.id : null;
}

function connectionFacts({ client, address, connection_id: connection }) {
  return [client, address && `from ${address}`, connection && `connection ${connection}`].filter(Boolean);
}

function capabilityFacts(capabilities) {
  const entries = Object.entries(capabilities ?? {});
  const text = ([name, value]) => {
    const said = oneLine(name, 40);
    if (typeof value === "boolean") return value ? (CAPABILITIES.get(name) ?? said) : `no ${said}`;
    return `${said}: ${capabilityText(value, 60)}`;
  };
  const facts = entries.slice(0, MOST).map(text);
  return entries.length > MOST ? [...facts, `${entries.length - MOST} more`] : facts;
}
