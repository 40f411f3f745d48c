/** The MCP servers of the project: their state and what is wrong with them; added, changed, restarted and removed. */

import { Button, Embedded, Icon, html, render } from "../components/ui.js";
import { useFocusKept, useLayoutEffect, useOnce, useRef, useRequests, useState } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { ActionButton, useQuestion } from "../components/action_form.js";
import { FactList } from "../components/detail_pane.js";
import { plural, shortList } from "../lib/format.js";
import { inOrder } from "../lib/sorting.js";
import { ServerForm } from "./server_form.js";

export class Servers {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.element = h("div", { class: "wb-stack" });
  }

  /** @returns {any[]} */
  get servers() {
    return [...this.desk.store.tables.servers.values()].filter(({ name }) => name);
  }

  /** How many cannot be used although they should be. */
  failing() {
    return this.servers.filter(({ state }) => state === "failed" || state === "invalid").length;
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    const { desk } = this;
    const servers = this.servers.sort((one, other) => inOrder(one.name, other.name));
    const problem = desk.store.tables.servers.get("")?.error.message ?? null;
    const isEmpty = !servers.length && problem === null && desk.store.loaded.has("servers");
    render(html`<${View} ...${{ desk, servers, problem, isEmpty, enabled }} />`, this.element);
  }
}

function View({ desk, servers, problem, isEmpty, enabled }) {
  const [adds, setAdds] = useState(false);
  const list = useRef(null);
  const line = useRef(null);
  const focusAdd = () => line.current.firstChild.focus();
  useFocusKept(list, focusAdd);
  const add = (more) => html`<${Button} ...${more} label="Add a server…" onClick=${() => setAdds(true)} />`;
  const done = (saved) => {
    setAdds(false);
    focusAdd();
    if (saved) desk.announce(`${saved.name} is added: ${saved.state}.`);
  };
  const none =
    "No MCP servers yet. The tools of a server can be called by the agents that you grant them, and in the chat.";
  const row = (server) => html`<${Server} key=${server.name} ...${{ desk, server, enabled }} />`;
  return html`<div ref=${line} class="wb-line">${add()}</div>
    ${adds && html`<${ServerEdit} desk=${desk} server=${null} onDone=${done} />`}
    ${problem !== null && html`<p class="wb-message">${problem}</p>`}
    ${isEmpty && html`<p class="wb-empty">${none} ${add({ class: "wb-link" })}</p>`}
    <ul ref=${list} class="wb-entries" aria-label="MCP servers">
      ${servers.map(row)}
    </ul>`;
}

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
const UNSTARTED = new Set(["disabled", "untrusted", "refused", "invalid"]);

/** One server in the list, and what can be done with it. @param {{desk: any, server: any, enabled: boolean}} props its row, and whether requests can be sent */
function Server({ desk, server, enabled }) {
  const { name, state, target, tools } = server;
  const [isOpen, open] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const requests = useRequests(desk);
  const { question, ask } = useQuestion();
  const run = async (op, more = {}) => {
    setBusy(true);
    const outcome = await requests.run(op, { name, ...more });
    setBusy(false);
    return outcome;
  };
  const [label, mark] = STATES[state] ?? [state, "question"];
  const actions = { desk, server, enabled: enabled && !isBusy, run, ask };
  return html`<li>
    <div class="wb-entry wb-server">
      <${Button} class="wb-opener" label=${name} aria-expanded=${isOpen} onClick=${() => open(!isOpen)} />
      <span class="wb-state wb-server-state"><${Icon} name=${mark} /><span>${label}</span></span>
      <code class="wb-muted wb-grow wb-cut" title=${target}>${target}</code>
      <span class="wb-muted">${state === "ready" && plural(tools.length, "tool")}</span>
      <span class="wb-entry-actions"><${Actions} ...${actions} /></span>
    </div>
    <div class="wb-stack">
      <div>${problemsOf(server).map((text) => html`<${Problem} text=${text} />`)}</div>
      ${question}
      <${Embedded} element=${requests.errorBox} />
      ${isOpen && html`<${Details} server=${server} />`}
    </div>
  </li>`;
}

/** A form for the configuration of a server; null: of a new one. @param {{desk: any, server: any|null, onDone: (saved: any|null) => void}} props */
function ServerEdit({ desk, server, onDone }) {
  const form = useOnce(() => new ServerForm(desk, server, onDone));
  useLayoutEffect(() => form.focus(), []);
  return html`<${Embedded} element=${form.element} />`;
}

/** Its buttons; while one of them does something, none can be pressed. */
function Actions({ desk, server, enabled, run, ask }) {
  const { name, state } = server;
  const announce = (outcome) => desk.announce(`${name}: ${STATES[outcome.state]?.[0] ?? outcome.state}.`);
  const isOff = state === "disabled";
  const use = {
    label: isOff ? "Switch on" : "Switch off",
    working: isOff ? "Starting…" : "Stopping…",
    act: () => run("update_tool_server", { enabled: isOff }),
    onDone: announce,
  };
  const restart = {
    label: "Restart",
    working: "Restarting…",
    act: () => run("restart_tool_server"),
    onDone: announce,
  };
  const edit = { form: ServerEdit, desk, server };
  const remove = {
    label: `Remove ${name}`,
    working: "Removing…",
    consequence: "Its configuration is removed, and its tools can be called no more.",
    act: () => run("remove_tool_server"),
    onDone: () => desk.announce(`${name} is removed.`),
  };
  const button = (label, more, Kind = Button) => {
    const shared = { class: "wb-link wb-quiet", label, name: `${label} ${name}`, disabled: !enabled };
    return html`<${Kind} key=${label} ...${shared} ...${more} />`;
  };
  return html`${!UNSTARTED.has(state) && button("Restart", restart, ActionButton)}
  ${button(use.label, { ...use, key: "use" }, ActionButton)}
  ${button("Edit…", { onClick: (event) => ask(event, edit) })}
  ${button("Remove…", { onClick: (event) => ask(event, remove) })}`;
}

function Problem({ text }) {
  return html`<div class="wb-message"><${Icon} name="warning" /><span>${text}</span></div>`;
}

function problemsOf({ problem, state, warnings = [] }) {
  const where = state === "untrusted" ? " The question is in the inbox." : "";
  return [...(problem ? [`${problem}${where}`] : []), ...warnings];
}

function Details({ server }) {
  const { about, confined, restarts, tools, left_out: left, tool_problems: problems, log } = server;
  const facts = [
    ["Server", about],
    ["Program", confined === null ? null : confined ? "confined" : "not confined"],
    ["Restarts", restarts],
    ["Tools", tools.length > 0 && shortList(tools, 30)],
    ["Left out", left > 0 && `${plural(left, "tool")}: ${problems.join("; ")}`],
  ];
  const output = html`<div>
    <div class="wb-label">Standard error</div>
    <pre class="wb-log wb-pre" tabindex="0">${log}</pre>
  </div>`;
  return html`<div class="wb-stack wb-server-details"><${FactList} facts=${facts} />${log && output}</div>`;
}
