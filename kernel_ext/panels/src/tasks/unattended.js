/** A line above the views while no agent is left for open tasks, with a button that restarts the agents that could do them. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { RequestRunner } from "../link/request_runner.js";

export class Unattended {
  /** @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.text = h("span", { class: "wb-grow" });
    this.restart = button("", "wb-button", () => this.restartAll());
    const parts = [icon("warning"), this.text, this.restart, this.requests.errorBox];
    this.element = h("div", { class: "wb-banner", role: "status", hidden: true }, ...parts);
  }

  update() {
    const found = this.desk.store.tables.unattended.get("open");
    this.element.hidden = !found;
    if (!found || this.requests.busy) return;
    const { message, restartable } = found;
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
