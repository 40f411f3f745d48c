/** The MCP servers of the project: their state and what is wrong with them; added, changed, restarted and removed. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { KeyedList } from "../lib/keyed_list.js";
import { ServerForm } from "./server_form.js";
import { ServerRow } from "./server_row.js";

export class Servers {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.formBox = h("div", {});
    this.problem = h("p", { class: "wb-message", hidden: true });
    this.empty = h("p", { class: "wb-empty", hidden: true });
    this.empty.append(
      "No MCP servers yet. The tools of a server can be called by the agents that you grant them, and in the chat. ",
      button("Add a server…", "wb-link", () => this.openForm()),
    );
    this.addButton = button("Add a server…", "wb-button", () => this.openForm());
    this.list = h("ul", { class: "wb-entries", "aria-label": "MCP servers" });
    this.rows = new KeyedList(this.list, () => new ServerRow(desk), {
      onRemove: (_, hadFocus) => hadFocus && this.addButton.focus(),
    });
    const line = h("div", { class: "wb-line" }, this.addButton);
    this.element = h("div", { class: "wb-stack" }, line, this.formBox, this.problem, this.empty, this.list);
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
    const { store } = this.desk;
    const { servers } = store.tables;
    const names = this.servers.map(({ name }) => name).sort();
    this.rows.show(names, (row, name) => row.show(servers.get(name), enabled));
    const problem = servers.get("")?.error.message ?? null;
    this.problem.hidden = problem === null;
    setText(this.problem, problem ?? "");
    this.empty.hidden = names.length > 0 || problem !== null || !store.loaded.has("servers");
  }

  openForm() {
    const form = new ServerForm(this.desk, null, (saved) => {
      this.formBox.replaceChildren();
      this.addButton.focus();
      if (saved) this.desk.announce(`${saved.name} is added: ${saved.state}.`);
    });
    this.formBox.replaceChildren(form.element);
    form.focus();
  }
}
