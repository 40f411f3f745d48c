/** The MCP servers of the project: their state and what is wrong with them; added, changed, restarted and removed. */

import { Button, html, render, useFocusKept, useRef, useState } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { Server, ServerEdit } from "./server.js";

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
    const servers = this.servers.sort((one, other) => (one.name < other.name ? -1 : 1));
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
