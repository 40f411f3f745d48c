/** Deleted projects, sessions, teams and agents, which can be restored. Read when the list is opened. */

import { button } from "../lib/controls.js";
import { freshId, h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

const NOUNS = ["project", "session", "team", "agent"];

export class Deleted {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    const id = freshId("deleted");
    this.opener = button("Show", "wb-button", () => (this.isOpen ? this.close() : this.load()));
    this.opener.setAttribute("aria-describedby", id);
    this.list = h("ul", { class: "wb-entries", hidden: true });
    this.element = h(
      "section",
      { class: "wb-section wb-stack", "aria-labelledby": id },
      h("div", { class: "wb-toolbar" }, h("h3", { class: "wb-heading wb-grow", id }, "Deleted"), this.opener),
      this.requests.errorBox,
      this.list,
    );
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Read the list again, if it is open: something was deleted or restored. */
  refresh() {
    if (this.isOpen) this.load();
  }

  close() {
    this.list.hidden = true;
    this.opener.textContent = "Show";
  }

  async load() {
    const entries = [];
    for (const noun of NOUNS) {
      const page = await this.requests.run(`list_${noun}s`, { deleted: true, limit: 500 });
      if (!page) return;
      entries.push(...page[`${noun}s`].map((row) => this.entry(noun, row.id ?? row.agent_id, row.name)));
    }
    this.list.replaceChildren(...(entries.length ? entries : [h("li", { class: "wb-empty" }, "Nothing was deleted.")]));
    this.list.hidden = false;
    this.opener.textContent = "Hide";
  }

  entry(noun, id, name) {
    const restore = (event) => this.restore(noun, id, name, event.currentTarget);
    return h(
      "li",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-kind" }, noun),
      h("span", { class: "wb-entry-name wb-cut" }, name),
      button("Restore", "wb-link wb-quiet wb-push", restore, `Restore ${name}`),
    );
  }

  async restore(noun, id, name, pressed) {
    if (!(await this.requests.run(`restore_${noun}`, { [`${noun}_id`]: id }, pressed))) return;
    this.desk.announce(`${name} was restored.`);
    this.load();
  }
}
