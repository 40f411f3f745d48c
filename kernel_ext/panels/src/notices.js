/** Lines above the views: no agent is left for open tasks; settings and profiles are not used until they are trusted. */

import { button } from "./lib/controls.js";
import { h, prose, setText } from "./lib/dom.js";
import { plural } from "./lib/format.js";
import { icon } from "./lib/icons.js";
import { RequestRunner } from "./link/request_runner.js";

/** No agent is left for open tasks: a button restarts the agents that could do them. */
export class Unattended {
  /** @param {{store: import("./link/store.js").Store, channel: import("./link/channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.text = h("span", { class: "wb-grow" });
    this.restart = button("", "wb-button", () => this.restartAll());
    const parts = [icon("warning"), this.text, this.restart, this.requests.errorBox];
    this.element = h("div", { class: "wb-banner", role: "status", hidden: true }, ...parts);
  }

  update() {
    const open = this.desk.store.tables.unattended.get("open");
    this.element.hidden = !open;
    if (!open || this.requests.busy) return;
    const { message, restartable } = open;
    setText(this.text, message);
    setText(this.restart, restartable.length === 1 ? "Restart it" : `Restart ${plural(restartable.length, "agent")}`);
  }

  /** Restart the agents, one after the other, up to the first that fails. */
  async restartAll() {
    const { restartable } = this.desk.store.tables.unattended.get("open");
    for (const id of restartable) {
      if (!(await this.requests.run("restart_agent", { agent_id: id }, this.restart, `Restarting ${id}…`))) return;
      this.desk.announce(`${id}: restarted.`);
    }
    this.update();
  }
}

/** Which settings and profiles of the project are not used until the user trusts them. */
export class Untrusted {
  /** @param {import("./link/store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.text = h("span", { class: "wb-grow" });
    this.element = h("div", { class: "wb-banner", role: "note", hidden: true }, icon("warning"), this.text);
  }

  update() {
    const rows = [...this.store.tables.untrusted.values()];
    this.element.hidden = !rows.length;
    const files = rows.map(({ id, settings }) => (settings.length ? `${id} (${settings.join(", ")})` : id));
    const message = `Not used, because you have not trusted it: ${files.join(", ")}. \`workbench trust\` shows it.`;
    if (message !== this.message) this.text.replaceChildren(...prose(message));
    this.message = message;
  }
}
