/** One agent, opened: what it is granted, what is known of it, its history, and what can be done to it. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { Facts } from "../lib/blocks.js";
import { button, copyButton, enable, form, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { age, moment } from "../lib/format.js";
import { GrantFields } from "./grant.js";
import { capabilities } from "./capabilities.js";
import { eventWords } from "./standing.js";

const NEWEST = 20;
const SILENT = new Set(["revoked", "rejected"]);

export class AgentDetails {
  /**
   * @param {any} agent its row
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel,
   *   announce: (text: string) => void}} desk
   * @param {(agentId: string) => void} onRenamed the agent has another id from now on
   */
  constructor(agent, desk, onRenamed) {
    this.agent = agent;
    this.desk = desk;
    this.onRenamed = onRenamed;
    this.asker = new Asker(desk);
    this.facts = new Facts();
    this.said = h("div", {});
    this.history = h("ul", { class: "wb-list wb-history" });
    this.historyLabel = h("div", { class: "wb-label" }, "History");
    this.form = form({ class: "wb-stack wb-roomy" }, { submit: () => this.onSubmit() });
    for (const event of ["input", "change"]) this.form.addEventListener(event, () => this.offer());
    this.asked = h("div", {});
    this.save = h("button", { class: "wb-button wb-primary", type: "submit" }, "Save changes");
    this.actions = h("div", { class: "wb-line" });
    this.element = h(
      "div",
      { class: "wb-stack wb-roomy" },
      this.form,
      this.asked,
      this.asker.problem,
      h(
        "div",
        { class: "wb-agent-columns" },
        h("div", { class: "wb-stack wb-roomy" }, this.facts.element, this.said),
        h("div", {}, this.historyLabel, this.history),
      ),
    );
    this.fill();
  }

  get id() {
    return this.agent.agent_id;
  }

  /** Start the form anew from the row. */
  fill() {
    this.fields = new GrantFields(this.desk.store.tables, { ...START, ...this.agent });
    this.state = this.agent.registration_status;
    this.fields.element.classList.add("wb-fields-3");
    this.actions.replaceChildren(this.save, ...this.buttons());
    this.form.replaceChildren(this.fields.element, this.actions);
    this.offer();
  }

  buttons() {
    const out = SILENT.has(this.state);
    const ask = (label, words, act) =>
      button(label, "wb-button", (event) => this.ask(event.currentTarget, words, act), `${label} ${this.id}`);
    return [
      h("span", { class: "wb-grow" }),
      out ? null : ask("New token…", TOKEN, (_, pressed) => this.issue(pressed)),
      out
        ? null
        : ask("Revoke…", { ...REVOKE, label: `Revoke ${this.id}` }, (reason, pressed) =>
            this.run("revoke_agent", { reason }, pressed, "Revoked."),
          ),
      ask("Delete…", { ...DELETE, label: `Delete ${this.id}` }, (_, pressed) =>
        this.run("delete_agent", {}, pressed, "Deleted."),
      ),
    ].filter(Boolean);
  }

  /** Take what is known now. What the person is typing is not touched. @param {any} agent */
  update(agent, now) {
    const before = this.agent;
    this.agent = agent;
    if (before !== agent && (agent.registration_status !== this.state || !this.touched)) {
      if (!this.element.contains(document.activeElement)) this.fill();
    }
    if (before !== agent) this.load();
    this.fields.refresh();
    this.drawFacts(now);
  }

  get touched() {
    return Object.keys(this.fields.choices()).length > 0;
  }

  offer() {
    enable(this.touched, this.save);
  }

  /** Read what rows do not tell: everything it says of itself, and its history. */
  async load() {
    const seen = (this.loading = {});
    const calls = [
      ["get_agent", { agent_id: this.id }],
      ["list_events", { subject: this.id, limit: 1000 }],
    ];
    const [agent, events] = await Promise.allSettled(calls.map(([op, args]) => new Asker(this.desk).send(op, args)));
    if (this.loading !== seen) return; // asked again meanwhile
    if (agent.value) this.said.replaceChildren(capabilities(agent.value.capabilities) ?? "");
    if (events.value) this.drawHistory(events.value.events.slice(-NEWEST).reverse());
  }

  drawFacts(now) {
    const { agent } = this;
    this.facts.update([
      ["Registered", moment(agent.registered_at)],
      ["Last heard of", ago(agent.last_heartbeat, now)],
      ["Connections", agent.connections ? String(agent.connections) : "none"],
      ["Client", agent.client],
      ["Address", agent.address],
      ["Connection", agent.connection_id],
      ["Worktree", agent.worktree],
      ["Spawned by", agent.parent],
      ["Token", agent.id_only ? "none yet; it says its id alone" : null],
    ]);
  }

  drawHistory(events) {
    const line = ({ at, kind, actor, data }) =>
      h(
        "li",
        {},
        h("span", { class: "wb-muted" }, moment(at)),
        h("span", { class: "wb-grow", title: kind }, eventWords(kind), data.reason ? ` · ${data.reason}` : ""),
        h("span", { class: "wb-muted" }, actor),
      );
    this.history.replaceChildren(...events.map(line));
  }

  /** Open one more question under the form. */
  ask(opener, words, act) {
    this.asker.clear();
    const close = () => {
      this.asked.replaceChildren();
      opener.focus();
    };
    const question = new Confirm(words, act, close);
    this.asked.replaceChildren(question.element);
    question.focus();
  }

  async run(op, more, pressed, done) {
    const outcome = await this.asker.ask(op, { agent_id: this.id, ...more }, pressed);
    if (!outcome) return;
    this.asked.replaceChildren();
    this.desk.announce(`${this.id}: ${done}`);
    this.load();
  }

  /** The token is in this element alone, until it is closed. */
  async issue(pressed) {
    const outcome = await this.asker.ask("issue_token", { agent_id: this.id }, pressed, "Issuing…");
    if (!outcome) return;
    const shown = input(outcome.token, {
      class: "wb-input wb-mono wb-grow",
      readonly: "",
      "aria-label": `New token of ${this.id}`,
    });
    const close = button("Done", "wb-button", () => this.asked.replaceChildren());
    this.asked.replaceChildren(
      h(
        "div",
        { class: "wb-confirm wb-stack" },
        h("p", {}, `The new token of ${this.id}. It is shown only now; copy it to the agent.`),
        h(
          "div",
          { class: "wb-line" },
          shown,
          copyButton(() => shown.value, "Copy the token", this.desk.announce),
          close,
        ),
      ),
    );
    shown.select();
    this.load();
  }

  async onSubmit() {
    const changes = this.fields.choices();
    if (!Object.keys(changes).length) return;
    const outcome = await this.asker.ask("update_agent", { agent_id: this.id, changes }, this.save, "Saving…");
    if (outcome) this.saved(outcome);
    else this.fields.fieldOf({ code: this.asker.problem.querySelector("code").textContent })?.focus();
  }

  saved(agent) {
    const before = this.id;
    this.agent = agent;
    this.fill();
    this.desk.announce(`${this.id}: saved.`);
    if (before !== this.id) this.onRenamed(before, this.id);
    this.fields.first.focus();
  }
}

const START = { persona_id: null, session_id: null, team_id: null, expires_at: null };
const TOKEN = {
  label: "Issue new token",
  why: "The token it has stops working, and its connections end.",
  danger: false,
};
const REVOKE = {
  why: "Its token stops working at once, and it gives back its tasks.",
  reason: "Reason (optional; kept in the history)",
};
const DELETE = { why: "It leaves all lists; its history stays. It can be restored under Projects." };

function ago(iso, now) {
  const text = age(iso, now);
  return text === "just now" ? text : `${text} ago`;
}
