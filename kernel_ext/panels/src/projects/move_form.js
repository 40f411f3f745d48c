/** A form that moves a team to another session. */

import { form, formButtons, select, setOptions } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { sessionOptions } from "./lookup.js";

const NONE = "";

export class MoveForm {
  /** @param {any} desk @param {any} team its row @param {(outcome: any|null) => void} onDone null: it was cancelled */
  constructor(desk, team, onDone) {
    this.requests = new RequestRunner(desk);
    this.team = team;
    this.onDone = onDone;
    this.session = select([], NONE, { class: "wb-input wb-grow", "aria-label": `Session for ${team.name}` });
    const none = ["", [[NONE, "No session"]]];
    setOptions(this.session, [none, ...sessionOptions(desk.store.tables)], team.session_id ?? NONE);
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Move");
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-stack" },
      { submit: () => this.run(), escape: cancel },
      formButtons(this.submit, cancel, this.session),
      h("p", { class: "wb-muted" }, "Its members move with it."),
      this.requests.errorBox,
    );
  }

  focus() {
    this.session.focus();
  }

  async run() {
    const args = { team_id: this.team.id, session_id: this.session.value || null };
    const outcome = await this.requests.run("move_team", args, this.submit, "Moving…");
    if (outcome) this.onDone(outcome);
  }
}
