/** The Admin tab: who is admitted by rule, who may act, what tools may do, how to connect, how busy the server is. */

import { ActionButton } from "../components/action_form.js";
import { Choice } from "../components/filters.js";
import { Embedded, Section, drawnIn, html } from "../components/ui.js";
import { useLayoutEffect, useOnce, usePolling, useRequests, useState } from "../components/ui.js";
import { codeBlock } from "../lib/blocks.js";
import { download } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { byteSize, plural, shortNumber } from "../lib/format.js";
import { Refresh } from "../link/polling.js";
import { ModelProviders } from "../models/keys.js";
import { Allowlist, Rules } from "./admission.js";

const POLL_MS = 2_000;
const EXPORTED = ["agents", "teams", "contexts", "sessions", "projects", "events"];
const perSecond = (value) => `${shortNumber(value)} /s`;
const milliseconds = (value) => `${shortNumber(value)} ms`;
const count = (noun) => (value) => plural(value, noun);
/** The figures, each with its unit. @type {[string, (values: any) => number|null, (value: number) => string][]} */
const FIGURES = [
  ["queue length", (values) => values.queue_length, count("change")],
  ["written", (values) => values.writes_per_second, (value) => `${plural(value, "change")}/s`],
  ["committed", (values) => values.commits_per_second, perSecond],
  ["in one commit", (values) => values.writes_per_commit, count("change")],
  ["time of a commit, median", ({ commit_ms: times }) => times.p50, milliseconds],
  ["time of a commit, 95th percentile", ({ commit_ms: times }) => times.p95, milliseconds],
  ["time of a commit, longest", ({ commit_ms: times }) => times.max, milliseconds],
  ["connected", (values) => values.connections, count("connection")],
  ["waiting for admission", (values) => values.pending_agents, count("agent")],
  ["reading the feed", (values) => values.feed_readers, count("reader")],
  ["read from memory", (values) => values.cache_hits, (value) => `${Math.round(value * 100)} %`],
  ["recorded", (values) => values.events, count("event")],
  ["stored", (values) => values.tasks, count("task")],
  ["database", (values) => values.database_bytes, byteSize],
];

export class Admin {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    this.desk = { store, channel, announce };
    this.element = h("div", {});
    this.draw = drawnIn(this.element, signal);
    this.connect = { current: null };
  }

  /** Bring it up to date. Called only while it is shown. */
  update() {
    const { desk } = this;
    this.draw(
      html`<${Rules} desk=${desk} /><${Allowlist} desk=${desk} /><${Tools} desk=${desk} />
        <${ModelProviders} desk=${desk} /><${Connect} desk=${desk} heading=${this.connect} /><${Machines}
          desk=${desk}
        /><${Performance} desk=${desk} /><${Export} desk=${desk} />`,
    );
  }

  /** Bring the instructions that connect an agent into view, with the focus on their heading. */
  focusConnect() {
    this.connect.current.focus();
    this.connect.current.closest("section").scrollIntoView({ block: "nearest" });
  }
}

/** The tools that agents are granted: each can be switched off for all of them. */
function Tools({ desk }) {
  const requests = useRequests(desk);
  const tools = [...desk.store.tables.tools.values()];
  return html`<${Section} title="Tools" about="No agent can use a tool that is switched off, whatever it was granted.">
    <ul class="wb-entries">
      ${tools.map((tool) => html`<${Tool} key=${tool.id} ...${{ tool, requests, desk }} />`)}
    </ul>
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

function Tool({ tool: { id, name, description, permissions, enabled }, requests, desk }) {
  const [choice, choose] = useState(null);
  useLayoutEffect(() => choose(null), [enabled]);
  const onChange = async ({ target: { checked } }) => {
    choose(checked);
    if (!(await requests.run("update_agent_tool", { tool_id: id, enabled: checked }))) choose(null);
    else desk.announce(`${name} is switched ${checked ? "on" : "off"}.`);
  };
  const about = permissionText(permissions);
  const box = { type: "checkbox", "aria-label": `${name} enabled`, checked: choice ?? Boolean(enabled), onChange };
  return html`<li class="wb-entry">
    <span class="wb-entry-name wb-cut">${name}</span>
    <span class="wb-muted wb-grow wb-cut" title=${about}>${description} · ${about}</span>
    <label class="wb-check-label"><input class="wb-check" ...${box} /><span>Enabled</span></label>
  </li>`;
}

/** "reads and writes contexts; reads tasks" */
function permissionText({ read = [], write = [] } = {}) {
  const both = read.filter((noun) => write.includes(noun));
  const only = (nouns) => nouns.filter((noun) => !both.includes(noun));
  const parts = [
    ["reads and writes", both],
    ["reads", only(read)],
    ["writes", only(write)],
  ];
  return parts.flatMap(([verb, nouns]) => (nouns.length ? `${verb} ${nouns.join(", ")}` : [])).join("; ");
}

/** Instructions that connect an agent, to be copied. They are read once. */
function Connect({ desk, heading }) {
  const requests = useRequests(desk);
  const [instructions, setInstructions] = useState([]);
  useLayoutEffect(() => {
    const read = async () => {
      const answer = await requests.send("connection_instructions", {});
      requests.clearError();
      setInstructions(answer.instructions);
    };
    const refresh = new Refresh(read, (error) => requests.showError(error));
    refresh.now();
    return () => refresh.stop();
  }, []);
  const about = "Give one of these to the agent. It registers, waits, and appears in the inbox.";
  return html`<${Section} title="Connect an agent" about=${about} heading=${heading}>
    <div>
      ${instructions.map((each) => html`<${Instruction} key=${each.title} ...${each} announce=${desk.announce} />`)}
    </div>
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

function Instruction({ title, text, announce }) {
  const code = useOnce(() => codeBlock(text, `Copy: ${title}`, announce));
  return html`<details class="wb-instructions">
    <summary tabindex="0">${title}</summary>
    <${Embedded} element=${code} />
  </details>`;
}

/** The machines that share the project, read again and again while they are visible; nothing of one that is alone. */
function Machines({ desk }) {
  const requests = useRequests(desk);
  const [{ machine: here, machines, servers }, setListed] = useState({ machine: "", machines: [], servers: [] });
  const read = async () => {
    setListed(await requests.send("list_servers", {}));
    requests.clearError();
  };
  const { ref } = usePolling(POLL_MS, read, (error) => requests.showError(error));
  const line = (name) => {
    const server = servers.find(({ machine }) => machine === name);
    const state = server ? `its server is ${server.state}` : "no server runs";
    const about = [state, name === here && "this one", server?.has_turn && "does what is done once"];
    return html`<li class="wb-entry">
      <span class="wb-entry-name wb-cut">${name}</span>
      <span class="wb-muted wb-grow wb-cut">${about.filter(Boolean).join(" · ")}</span>
    </li>`;
  };
  return html`<div ref=${ref}>
    ${
      machines.length > 1 &&
      html`<${Section} title="Machines">
        <ul class="wb-entries">
          ${machines.map(line)}
        </ul>
      <//>`
    }
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}

/** Figures of the server, read again and again while they are visible. */
function Performance({ desk }) {
  const requests = useRequests(desk);
  const [values, setValues] = useState(null);
  const read = async () => {
    setValues(await requests.send("get_performance", {}));
    requests.clearError();
  };
  const { ref } = usePolling(POLL_MS, read, (error) => requests.showError(error));
  const figure = ([name, valueOf, text]) => {
    const value = valueOf(values);
    const shown = value === null ? "–" : text(value);
    return html`<li><span class="wb-number-value">${shown}</span><span class="wb-number-name">${name}</span></li>`;
  };
  return html`<${Section} title="Performance" section=${ref}>
    ${
      values &&
      html`<ul class="wb-numbers">
          ${FIGURES.map(figure)}
        </ul>
        <p class="wb-muted wb-wrap">The store is ${values.store}.</p>`
    }
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

/** Downloads a table as a file. */
function Export({ desk }) {
  const requests = useRequests(desk);
  const [resource, setResource] = useState("agents");
  const options = EXPORTED.map((name) => [name, name[0].toUpperCase() + name.slice(1)]);
  const onDone = (file) => {
    download(file.filename, file.content_type, file.content);
    desk.announce(`${file.filename} was downloaded.`);
  };
  const save = (format) => {
    const label = format.toUpperCase();
    const act = () => requests.run("export", { resource, format });
    return html`<${ActionButton} working="…" name="Download as ${label}" ...${{ label, act, onDone }} />`;
  };
  return html`<${Section} title="Export">
    <div class="wb-line">
      <${Choice} name="What to export" options=${options} value=${resource} onChoose=${setResource} />
      ${save("csv")} ${save("json")}
    </div>
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}
