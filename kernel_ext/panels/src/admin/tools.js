/** The tools that agents are granted: each can be switched off for all of them. */

import { checkbox } from "../lib/controls.js";
import { h, setAttribute } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { section, TableWatch } from "./section.js";

export class Tools {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.list = h("ul", { class: "wb-entries" });
    this.rows = new TableWatch(
      () => desk.store.tables.tools,
      (rows) => this.list.replaceChildren(...rows.map((tool) => this.entry(tool))),
    );
    const description = "No agent can use a tool that is switched off, whatever it was granted.";
    this.element = section("Tools", description, this.list, this.requests.errorBox);
  }

  update() {
    this.rows.update();
  }

  entry(tool) {
    const { box, element } = checkbox("Enabled", (on) => this.toggle(tool, on, box));
    box.checked = Boolean(tool.enabled);
    setAttribute(box, "aria-label", `${tool.name} enabled`);
    const permissions = permissionText(tool.permissions);
    const text = `${tool.description} · ${permissions}`;
    return h(
      "li",
      { class: "wb-entry" },
      h("span", { class: "wb-entry-name wb-cut" }, tool.name),
      h("span", { class: "wb-muted wb-grow wb-cut", title: permissions }, text),
      element,
    );
  }

  async toggle(tool, on, box) {
    const outcome = await this.requests.run("update_agent_tool", { tool_id: tool.id, enabled: on });
    if (!outcome) box.checked = !on;
    else this.desk.announce(`${tool.name} is switched ${on ? "on" : "off"}.`);
  }
}

/** "reads tasks; writes contexts" */
function permissionText({ read = [], write = [] } = {}) {
  const parts = [read.length ? `reads ${read.join(", ")}` : null, write.length ? `writes ${write.join(", ")}` : null];
  return parts.filter(Boolean).join("; ");
}
