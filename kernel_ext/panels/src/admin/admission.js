/** Who is admitted without a decision, and who may act: admission rules, and the allowlist. */

import { ACCESS, GrantFields, TOOLS } from "../agents/grant.js";
import { ActionButton } from "../components/action_form.js";
import { Button, Embedded, Section, html } from "../components/ui.js";
import { useLayoutEffect, useOnce, useRef, useRequests, useState } from "../components/ui.js";
import { field, form, formButtons, input, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { sessionPath } from "../projects/lookup.js";

const ORIGINS = { here: "You, on this machine only", anywhere: "Anywhere" };
const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
];

/** Admission rules: agents that match one are admitted without a decision. */
export function Rules({ desk }) {
  const requests = useRequests(desk);
  const [ruleForm, setRuleForm] = useState(null);
  const last = useRef(null);
  const line = useRef(null);
  useLayoutEffect(() => {
    if (ruleForm) ruleForm.name.focus();
    else if (last.current) line.current.firstChild.focus();
    last.current = ruleForm;
  }, [ruleForm]);
  const close = () => {
    requests.clearError();
    setRuleForm(null);
  };
  ruleForm?.fields.refresh();
  const { tables } = desk.store;
  const rules = [...tables.rules.values()];
  const entry = (rule) => html`<${Rule} key=${rule.name} ...${{ rule, tables, requests, desk }} />`;
  const open = () => setRuleForm(new RuleForm(desk, requests, close));
  return html`<${Section}
    title="Admission rules"
    about="An agent that matches a rule is admitted without asking you. Its history names the rule."
  >
    <ul class="wb-entries" hidden=${!rules.length}>
      ${rules.map(entry)}
    </ul>
    ${ruleForm && html`<${Embedded} element=${ruleForm.element} />`}
    <${Embedded} element=${requests.errorBox} />
    <div ref=${line}>
      <${Button} label="New rule…" onClick=${open} hidden=${ruleForm !== null} />
    </div>
  <//>`;
}

function Rule({ rule: { name, pattern, loopback_only: isLocal, grants }, tables, requests, desk }) {
  const act = () => requests.run("remove_admission_rule", { name });
  const onDone = () => desk.announce(`The rule ${name} was removed.`);
  const remove = { label: "Remove", working: "Removing…", name: `Remove the rule ${name}`, act, onDone };
  const text = ` ${isLocal ? "that run as you on this machine" : "from anywhere"}, ${grantText(grants, tables)}`;
  return html`<li class="wb-entry">
    <span class="wb-entry-name wb-cut">${name}</span>
    <span class="wb-grow wb-wrap">${"admits "}<code>${pattern}</code>${text}</span>
    <${ActionButton} class="wb-link wb-quiet" ...${remove} />
  </li>`;
}

/** "as reviewer, read only, in Lab / Day 1" */
function grantText(grants, tables) {
  const team = grants.team_id && (tables.teams.get(grants.team_id)?.name ?? grants.team_id);
  const kind = [grants.persona_id, grants.role].filter(Boolean);
  const parts = [
    kind.length ? `as ${kind.join(", ")}` : null,
    grants.tool && TOOLS[grants.tool].toLowerCase(),
    grants.access_level && `sees the work of ${ACCESS[grants.access_level].toLowerCase()}`,
    grants.session_id && `in ${sessionPath(tables, grants.session_id) ?? grants.session_id}`,
    team && `team ${team}`,
    grants.definition && `definition ${definitionName(grants.definition, tables)}`,
    grants.definitions && "manages definitions",
    grants.expires_in_seconds && `for ${wholeDuration(grants.expires_in_seconds)}`,
  ].filter(Boolean);
  return parts.join(", ") || "as requested";
}

function definitionName(id, tables) {
  return [...tables.definitions.values()].find((row) => row.definition_id === id)?.name ?? id;
}

/** "8 h", in the largest unit that divides it. */
function wholeDuration(seconds) {
  const [unit, size] = UNITS.find(([, length]) => seconds >= length && seconds % length === 0) ?? ["s", 1];
  return `${(seconds / size).toLocaleString("en")} ${unit}`;
}

/** The form of a new rule. */
class RuleForm {
  /** @param {any} desk @param {import("../link/request_runner.js").RequestRunner} requests @param {() => void} close */
  constructor(desk, requests, close) {
    this.name = input("", { maxlength: 64, required: true, placeholder: "night shift" });
    const pattern = input("", { maxlength: 200, required: true, placeholder: "worker-*" });
    const origin = select(Object.entries(ORIGINS), "here");
    this.fields = new GrantFields(desk.store.tables, {}, "As requested");
    const button = h("button", { class: "wb-button wb-primary", type: "submit" }, "Add rule");
    const submit = async () => {
      const rule = {
        name: this.name.value.trim(),
        pattern: pattern.value.trim(),
        loopback_only: origin.value === "here",
        grants: this.fields.choices(),
      };
      if (!(await requests.run("add_admission_rule", rule, button, "Adding…"))) return;
      desk.announce(`The rule ${rule.name} was added.`);
      close();
    };
    const own = [
      field("Name of the rule", this.name),
      field("Names of agents, with * and ?", pattern),
      field("From", origin),
    ];
    this.element = form(
      { class: "wb-box wb-stack wb-roomy" },
      { submit, escape: close },
      h("div", { class: "wb-fields" }, ...own),
      this.fields.element,
      formButtons(button, close),
    );
  }
}

/** The allowlist: when it has an id, only the listed agents may act. */
export function Allowlist({ desk }) {
  const requests = useRequests(desk);
  const line = useOnce(() => allowForm(requests));
  const agents = [...desk.store.tables.allowlist.values()];
  const empty = "Empty: every admitted agent may act. Adding an id restricts access to the listed agents.";
  const pill = ({ id, fixed }) => {
    const act = () => requests.run("disallow_agent", { agent_id: id });
    const remove = { label: "×", working: "…", name: `Remove ${id} from the allowlist`, act, onDone: () => {} };
    return html`<li key=${id} class="wb-pill" title=${fixed ? "Set by the setting allowed_agents" : null}>
      <code>${id}</code>${!fixed && html`<${ActionButton} class="wb-quiet" ...${remove} />`}
    </li>`;
  };
  return html`<${Section} title="Allowlist" about=${agents.length ? "Only the listed agents may act." : empty}>
    <ul class="wb-pills" hidden=${!agents.length}>
      ${agents.map(pill)}
    </ul>
    <${Embedded} element=${line} />
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

/** The line that allows one more agent. */
function allowForm(requests) {
  const name = { placeholder: "Agent id", "aria-label": "Agent id to allow" };
  const id = input("", { class: "wb-input wb-narrow", maxlength: 64, required: true, ...name });
  const button = h("button", { class: "wb-button", type: "submit" }, "Allow");
  const submit = async () => {
    if (await requests.run("allow_agent", { agent_id: id.value.trim() }, button, "…")) id.value = "";
  };
  return form({ class: "wb-line" }, { submit }, id, button);
}
