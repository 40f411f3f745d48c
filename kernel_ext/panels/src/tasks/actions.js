/** What a person can do with a task: set its priority, reassign it, cancel it, retry it. */

import { isAdmitted, agentState } from "../agents/state.js";
import { Confirm } from "../lib/confirm.js";
import { button, form, input, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { offerUndo } from "../link/undo.js";

export const OPEN = new Set(["pending", "claimed", "in_progress"]);
const RETRIABLE = new Set(["failed", "cancelled"]);
const ANYONE = "";
/** The event of each change that can be undone. */
const UNDOABLE = {
  set_priority: "task.prioritised",
  reassign_task: "task.reassigned",
  cancel_task: "task.cancelled",
};

export class TaskActions {
  /** @param {any} desk @param {() => void} onDone something was done with the task */
  constructor(desk, onDone) {
    this.desk = desk;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.element = h("div", { class: "wb-line wb-indented" });
    this.confirmBox = h("div", {});
  }

  /** Begin with another task. @param {number} id */
  show(id) {
    this.id = id;
    this.status = null;
    this.priority = null;
    this.requests.clearError();
    this.confirmBox.replaceChildren();
    this.element.replaceChildren();
  }

  /** Bring it up to date. What a person is typing is left alone. @param {any} row of the task @param {boolean} hasSubtasks */
  update(row, hasSubtasks) {
    this.row = row;
    this.hasSubtasks = hasSubtasks;
    if (row.status !== this.status) this.draw();
    this.status = row.status;
    this.priority?.update(row.priority);
  }

  draw() {
    const { id, row } = this;
    this.confirmBox.replaceChildren();
    this.priority = null;
    const ask = (label, make) =>
      button(label, "wb-button", (event) => this.ask(event.currentTarget, make), `${label} task ${id}`);
    if (OPEN.has(row.status)) {
      this.priority = new PriorityForm(row, (priority, pressed) => this.setPriority(priority, pressed));
      const reassign = ask("Reassign…", (cancel) => this.reassign(cancel));
      const stop = ask("Cancel…", (cancel) => this.cancel(cancel));
      this.element.replaceChildren(this.priority.element, reassign, stop);
    } else if (RETRIABLE.has(row.status)) {
      const retry = (event) => this.retry(event.currentTarget);
      this.element.replaceChildren(button("Retry", "wb-button wb-primary", retry, `Retry task ${id}`));
    } else this.element.replaceChildren();
  }

  async retry(pressed) {
    if (await this.run("retry_task", {}, pressed, "it will be tried again.")) return;
    const { code, details } = this.requests.error ?? {};
    if (code === "WORKTREE_CLOSED") this.ask(pressed, (cancel) => this.recreate(details, cancel));
  }

  /** Offer to create the closed worktree of the task anew, and then to retry the task. */
  recreate({ worktree: name, branch, status }, onCancel) {
    const words = {
      label: `Create ${name} anew and retry`,
      consequence: `The worktree ${name} of task ${this.id} is ${status}. It is created anew with its branch ${branch}.`,
      danger: false,
    };
    const create = async (_, pressed) => {
      const worktree = await this.requests.run("create_worktree", { name, branch_name: branch }, pressed, "Creating…");
      if (worktree) await this.run("retry_task", {}, pressed, "it will be tried again.");
    };
    return new Confirm(words, create, onCancel);
  }

  async setPriority(priority, pressed) {
    const outcome = await this.run("set_priority", { priority }, pressed, `priority ${priority}.`);
    if (outcome) this.priority?.reset(outcome.priority);
  }

  cancel(onCancel) {
    const { id, row, hasSubtasks } = this;
    const holder = row.status === "pending" ? "No agent will work on it." : "The agent that works on it loses it.";
    const subtasks = hasSubtasks ? " Its unfinished subtasks are cancelled too." : "";
    const words = {
      label: `Cancel task ${id}`,
      consequence: `${holder}${subtasks} You can retry it later.`,
      reason: "Reason (optional; shown to agents)",
      cancel: "Keep it",
    };
    const confirm = (reason, pressed) => this.run("cancel_task", { reason }, pressed, "cancelled.");
    return new Confirm(words, confirm, onCancel);
  }

  reassign(onCancel) {
    const { row } = this;
    const agent = select(this.agentOptions(), ANYONE, { class: "wb-input wb-narrow", "aria-label": "Agent" });
    const loses = `${row.assigned_agent_id} loses it, and no retry is used up. `;
    const words = {
      label: "Reassign",
      consequence: `${row.status === "pending" ? "" : loses}Only the agent you choose may claim it.`,
      reason: "Reason (optional)",
      danger: false,
      cancel: "Keep it",
      control: agent,
    };
    const confirm = (reason, pressed) => {
      const done = agent.value ? `reserved for ${agent.value}.` : "any agent may claim it.";
      return this.run("reassign_task", { assigned_agent_id: agent.value || null, reason }, pressed, done);
    };
    return new Confirm(words, confirm, onCancel);
  }

  /** Agents of the task's persona first. */
  agentOptions() {
    const now = Date.now();
    const { persona_id: persona } = this.row;
    const agents = [...this.desk.store.tables.agents.values()].filter((agent) => isAdmitted(agentState(agent, now)));
    const fits = (agent) => agent.persona_id === persona;
    const option = (agent) => [agent.agent_id, `${agent.agent_id} · ${agent.persona_id ?? "no persona"}`];
    const first = [ANYONE, `Any ${persona}`];
    return [first, ...agents.filter(fits).map(option), ...agents.filter((agent) => !fits(agent)).map(option)];
  }

  /** Ask for a confirmation under the buttons. */
  ask(opener, make) {
    this.requests.clearError();
    const cancel = () => {
      this.confirmBox.replaceChildren();
      opener.focus();
    };
    const confirm = make(cancel);
    this.confirmBox.replaceChildren(confirm.element);
    confirm.focus();
  }

  async run(op, more, pressed, done) {
    const { id } = this;
    const wasHeld = op !== "set_priority" && this.row.status !== "pending"; // its agent was told that it lost the task
    const outcome = await this.requests.run(op, { task_id: id, ...more }, pressed);
    if (!outcome) return null;
    const kind = UNDOABLE[op];
    if (!kind || wasHeld) this.desk.announce(`Task ${id}: ${done}`);
    else offerUndo(this.element, { text: `Task ${id}: ${done}`, changes: [{ subject: `task:${id}`, kind }] });
    if (this.id === id) {
      this.confirmBox.replaceChildren();
      this.onDone();
    }
    return outcome;
  }
}

/** The priority, to be typed; a button appears when it differs from the known one. */
class PriorityForm {
  constructor({ id, priority }, onSet) {
    this.present = String(priority);
    this.field = input(this.present, {
      class: "wb-input wb-task-priority",
      type: "number",
      step: "1",
      "aria-label": `Priority of task ${id}; a higher one goes first`,
      on: { input: () => this.drawSet() },
    });
    this.set = h("button", { class: "wb-button", type: "submit", hidden: true }, "Set");
    const submit = () => {
      const { value } = this.field;
      if (value !== this.present && value.trim()) onSet(Number(value), this.set);
    };
    this.element = form(
      { class: "wb-line" },
      { submit, escape: () => this.reset(this.present) },
      h("span", { class: "wb-muted", "aria-hidden": "true" }, "Priority"),
      this.field,
      this.set,
    );
  }

  /** Show the priority, unless another one is being typed. */
  update(priority) {
    if (this.present === String(priority)) return;
    if (this.field.value === this.present) this.reset(priority);
    else this.present = String(priority);
    this.drawSet();
  }

  reset(priority) {
    this.present = this.field.value = String(priority);
    this.drawSet();
  }

  drawSet() {
    this.set.hidden = this.field.value === this.present;
  }
}
