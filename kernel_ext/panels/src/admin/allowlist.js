/** The allowlist: when it has an id, only the listed agents may act. */

import { button, form, input } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { section, TableWatch } from "./section.js";

export class Allowlist {
  /** @param {any} desk */
  constructor(desk) {
    this.requests = new RequestRunner(desk);
    this.list = h("ul", { class: "wb-pills" });
    this.explanation = h("p", { class: "wb-muted" });
    this.id = input("", {
      class: "wb-input wb-narrow",
      maxlength: 64,
      required: true,
      placeholder: "Agent id",
      "aria-label": "Agent id to allow",
    });
    this.submit = h("button", { class: "wb-button", type: "submit" }, "Allow");
    this.rows = new TableWatch(
      () => desk.store.tables.allowlist,
      (rows) => this.draw(rows),
    );
    const line = form({ class: "wb-line" }, { submit: () => this.add() }, this.id, this.submit);
    this.element = section("Allowlist", "", this.list, line, this.requests.errorBox);
    this.element.firstChild.append(this.explanation);
  }

  update() {
    this.rows.update();
  }

  draw(rows) {
    const empty = "Empty: every admitted agent may act. Adding an id restricts access to the listed agents.";
    setText(this.explanation, rows.length ? "Only the listed agents may act." : empty);
    this.list.hidden = !rows.length;
    this.list.replaceChildren(...rows.map((row) => this.pill(row)));
  }

  pill({ id, fixed }) {
    const remove = (event) => this.run("disallow_agent", id, event.currentTarget);
    const title = fixed ? "Set by the setting allowed_agents" : null;
    const close = button("×", "wb-quiet", remove, `Remove ${id} from the allowlist`);
    return h("li", { class: "wb-pill", title }, h("code", {}, id), fixed ? null : close);
  }

  async add() {
    if (await this.run("allow_agent", this.id.value.trim(), this.submit)) this.id.value = "";
  }

  run(op, agent_id, pressed) {
    return this.requests.run(op, { agent_id }, pressed, "…");
  }
}
