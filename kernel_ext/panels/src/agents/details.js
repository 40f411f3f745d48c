/** One agent's details: what it is granted, what is known about it, its history, and what can be done with it. */

import { html, render } from "../components/ui.js";
import { Facts, labelled } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button, copyButton, enable, form, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { age, dateTime } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { holdText } from "../models/holds.js";
import { Messages } from "../messages/messages.js";
import { ModelUse } from "../models/use.js";
import { capabilityList, changeText, eventLabel } from "./state.js";
import { GrantFields } from "./grant.js";

const NEWEST = 20;
const EXCLUDED = new Set(["revoked", "rejected"]);
const EMPTY = { persona_id: null, session_id: null, team_id: null, expires_at: null };
const TOKEN = {
  label: "Issue new token",
  consequence: "Its current token stops working, and its connections are closed.",
  danger: false,
};
const REVOKE = {
  consequence: "Its token stops working at once, and its tasks are released.",
  reason: "Reason (optional; kept in the history)",
};
const DELETE = {
  consequence: "It is removed from all lists; its history is kept. You can restore it in the Projects tab.",
};

export class AgentDetails {
  /**
   * @param {any} agent its row
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel,
   *   announce: (text: string) => void}} desk
   * @param {(from: string, to: string) => void} onRename its id was changed
   */
  constructor(agent, desk, onRename) {
    this.agent = agent;
    this.desk = desk;
    this.onRename = onRename;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    this.facts = new Facts();
    this.capabilities = h("div", {});
    this.history = h("ul", { class: "wb-list wb-history" });
    this.models = h("div", {});
    this.messages = h("div", {});
    this.form = form({ class: "wb-stack wb-roomy" }, { submit: () => this.onSubmit() });
    for (const event of ["input", "change"]) this.form.addEventListener(event, () => this.drawSave());
    this.confirmBox = h("div", {});
    this.save = h("button", { class: "wb-button wb-primary", type: "submit" }, "Save changes");
    this.actions = h("div", { class: "wb-line" });
    this.element = h(
      "div",
      { class: "wb-stack wb-roomy" },
      this.form,
      this.confirmBox,
      this.requests.errorBox,
      this.reader.errorBox,
      h(
        "div",
        { class: "wb-agent-columns" },
        h("div", { class: "wb-stack wb-roomy" }, this.facts.element, this.capabilities),
        labelled("History", this.history),
      ),
      this.messages,
      this.models,
    );
    this.fill();
  }

  get id() {
    return this.agent.agent_id;
  }

  /** Fill the form from the row. */
  fill() {
    const granted = { ...EMPTY, ...this.agent, definition: this.agent.definition_id ?? null };
    this.fields = new GrantFields(this.desk.store.tables, granted);
    this.fields.element.classList.add("wb-fields-3");
    this.status = this.agent.registration_status;
    this.actions.replaceChildren(this.save, h("div", { class: "wb-line wb-push" }, ...this.buttons()));
    this.form.replaceChildren(this.fields.element, this.actions);
    this.drawSave();
  }

  buttons() {
    const ask = (label, words, onConfirm) =>
      button(label, "wb-button", (event) => this.ask(event.currentTarget, words, onConfirm), `${label} ${this.id}`);
    const remove = ask("Delete…", { ...DELETE, label: `Delete ${this.id}` }, (_, pressed) =>
      this.run("delete_agent", {}, pressed, "deleted."),
    );
    if (EXCLUDED.has(this.status)) return [remove];
    const revoke = ask("Revoke…", { ...REVOKE, label: `Revoke ${this.id}` }, (reason, pressed) =>
      this.run("revoke_agent", { reason }, pressed, "revoked."),
    );
    return [ask("New token…", TOKEN, (_, pressed) => this.issueToken(pressed)), revoke, remove];
  }

  /** Bring it up to date. What a person is changing is left alone. @param {any} agent its row @param {number} now */
  update(agent, now) {
    const before = this.agent;
    this.agent = agent;
    if (before !== agent) {
      const replaced = agent.registration_status !== this.status || !this.changed;
      if (replaced && !this.element.contains(document.activeElement)) this.fill();
      this.load();
    }
    this.fields.refresh();
    this.drawFacts(now);
    const about = { desk: this.desk, of: { agent_id: this.id }, underway: Boolean(agent.running), version: agent };
    render(html`<${ModelUse} key=${this.id} ...${about} />`, this.models);
    const { desk, id } = this;
    const can = { canTell: !EXCLUDED.has(agent.registration_status), canInterrupt: Boolean(agent.running) };
    render(html`<${Messages} key=${id} ...${{ desk, of: { agent_id: id }, version: agent, ...can }} />`, this.messages);
  }

  /** Whether the form has values that are not saved. */
  get changed() {
    return Object.keys(this.fields.choices()).length > 0;
  }

  drawSave() {
    enable(this.changed, this.save);
  }

  /** Read what its row does not have: its capabilities and its history. */
  async load() {
    const current = (this.loading = {});
    try {
      const agent = await this.reader.send("get_agent", { agent_id: this.id });
      const history = await this.reader.send("get_agent_history", { agent_id: this.id, limit: NEWEST });
      if (this.loading !== current) return; // a later call reads them
      this.capabilities.replaceChildren(capabilityList(agent.capabilities) ?? "");
      this.drawHistory(history.entries);
      this.reader.clearError();
    } catch (error) {
      if (this.loading === current) this.reader.showError(error);
    }
  }

  drawFacts(now) {
    const { agent } = this;
    this.facts.update([
      ["Waits", agent.held_for && holdText({ until: agent.held_until, reason: agent.held_for })],
      ["Registered", dateTime(agent.registered_at)],
      ["Last active", agent.last_heartbeat && ago(agent.last_heartbeat, now)],
      ["Connections", agent.connections ? String(agent.connections) : "none"],
      ["Client", agent.client],
      ["Address", agent.address],
      ["Connection", agent.connection_id],
      ["Machine", agent.machine],
      ["Worktree", agent.worktree],
      ["Definition", agent.definition && [agent.definition, agent.definition_hash].filter(Boolean).join(" at ")],
      ["Spawned by", agent.parent],
      ["Token", agent.id_only && "none yet; it authenticates with its id alone"],
    ]);
  }

  /** @param {any[]} entries the newest first */
  drawHistory(entries) {
    const line = ({ at, kind, actor, reason, changes }) =>
      h(
        "li",
        {},
        h("span", { class: "wb-muted" }, dateTime(at)),
        h(
          "span",
          { class: "wb-grow", title: kind },
          [eventLabel(kind), ...changes.map(changeText), reason].filter(Boolean).join(" · "),
        ),
        h("span", { class: "wb-muted" }, actor),
      );
    this.history.replaceChildren(...entries.map(line));
  }

  /** Ask for a confirmation under the form. */
  ask(opener, words, onConfirm) {
    this.requests.clearError();
    askIn(this.confirmBox, opener, words, onConfirm);
  }

  async run(op, more, pressed, done) {
    const outcome = await this.requests.run(op, { agent_id: this.id, ...more }, pressed);
    if (!outcome) return;
    this.confirmBox.replaceChildren();
    this.desk.announce(`${this.id}: ${done}`);
    this.load();
  }

  /** Show a new token in this element only, until it is closed. */
  async issueToken(pressed) {
    const outcome = await this.requests.run("issue_token", { agent_id: this.id }, pressed, "Issuing…");
    if (!outcome) return;
    const name = `New token of ${this.id}`;
    const token = input(outcome.token, { class: "wb-input wb-mono wb-grow", readonly: "", "aria-label": name });
    const close = button("Done", "wb-button", () => this.confirmBox.replaceChildren());
    const copy = copyButton(() => token.value, "Copy the token", this.desk.announce);
    this.confirmBox.replaceChildren(
      h(
        "div",
        { class: "wb-confirm wb-stack" },
        h("p", {}, `This is the new token of ${this.id}. It is shown only once: copy it to the agent now.`),
        h("div", { class: "wb-line" }, token, copy, close),
      ),
    );
    token.select();
    this.load();
  }

  async onSubmit() {
    const changes = this.fields.choices();
    if (!Object.keys(changes).length) return;
    const outcome = await this.requests.run("update_agent", { agent_id: this.id, changes }, this.save, "Saving…");
    if (outcome) this.onSaved(outcome);
    else this.fields.fieldOf(this.requests.error)?.focus();
  }

  onSaved(agent) {
    const before = this.id;
    this.agent = agent;
    this.fill();
    this.desk.announce(`${this.id}: saved.`);
    if (before !== this.id) this.onRename(before, this.id);
    this.fields.first.focus();
  }
}

function ago(iso, now) {
  const text = age(iso, now);
  return text === "just now" ? text : `${text} ago`;
}
