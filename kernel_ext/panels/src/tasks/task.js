/** One task, opened: why it stands as it does, what was said and made, and what can be done to it. */

import { Asker } from "../link/asker.js";
import { Confirm } from "../lib/confirm.js";
import { codeBlock, Facts, labelled } from "../lib/blocks.js";
import { button, form, input, select } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { clock, counted, duration, moment } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { message } from "../lib/message.js";
import { STATES } from "./outline.js";
import { sessionName } from "../projects/places.js";
import { isCurrent, standing } from "../agents/standing.js";
import { TaskLog } from "./log.js";

const OPEN = new Set(["pending", "claimed", "in_progress"]);
const LAYOUT = { standing: "wb-indented wb-wrap", actions: "wb-line wb-indented", description: "wb-indented" };
const DEAD = new Set(["failed", "cancelled"]);
const FEW = 12;
const NOBODY = "";
const POLICIES = { cancel: "it is cancelled too", ignore: "it goes on without it" };

export class TaskDetails {
  /**
   * @param {{store: import("../link/store.js").Store, channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk
   * @param {{close: () => void, jump: (id: number) => void}} on
   * @param {AbortSignal} signal
   */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.on = on;
    /** @type {number|null} the task that is open */
    this.id = null;
    this.drawn = new Map();
    this.asker = new Asker(desk);
    this.reader = new Asker(desk);
    this.log = new TaskLog(desk);
    const name = freshId("task");
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("h4", { class: "wb-pane-title", id: name, tabindex: -1 });
    this.number = h("span", { class: "wb-muted wb-number" });
    this.parts = Object.fromEntries(
      ["standing", "actions", "description", "waits", "parts", "attempts", "result"].map((part) => [
        part,
        h("div", { class: LAYOUT[part] ?? "wb-task-part" }),
      ]),
    );
    this.facts = new Facts();
    this.about = labelled("Details", this.facts.element);
    this.asked = h("div", {});
    const { standing: stands, actions, description, waits, parts, attempts, result } = this.parts;
    this.element = h(
      "section",
      { class: "wb-pane wb-stack wb-roomy", "aria-labelledby": name, hidden: true },
      h(
        "div",
        { class: "wb-pane-head" },
        this.mark,
        this.title,
        this.number,
        button("×", "wb-close", on.close, "Close the task"),
      ),
      stands,
      actions,
      this.asked,
      this.asker.problem,
      this.reader.problem,
      description,
      waits,
      parts,
      attempts,
      this.log.element,
      result,
      this.about,
    );
    desk.store.listen(() => this.onNews(), signal);
  }

  /** Open a task. @param {number} id @param {import("./outline.js").Outline} outline */
  show(id, outline) {
    if (this.id !== id) {
      this.id = id;
      this.task = null;
      this.drawn.clear();
      this.asked.replaceChildren();
      this.asker.clear();
      this.log.start(id);
      this.element.scrollTop = 0;
      for (const part of Object.values(this.parts)) part.replaceChildren();
      this.about.hidden = true;
      this.load();
    }
    this.element.hidden = false;
    this.update(outline);
  }

  hide() {
    this.id = null;
    this.log.stop();
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  onNews() {
    const { touched } = this.desk.store;
    if (this.id !== null && (touched === null || touched.has(this.id))) this.load();
  }

  /** Read what rows do not tell; asked again meanwhile, it is read once more. */
  async load() {
    const id = this.id;
    if (this.loading === id) {
      this.again = true;
      return;
    }
    this.loading = id;
    const [task] = await Promise.all([
      this.reader.send("get_task", { task_id: id }).catch((error) => error),
      this.log.read(),
    ]);
    this.loading = null;
    if (id !== this.id) return;
    if (task instanceof Error) this.reader.show(task);
    else {
      this.reader.clear();
      this.task = task;
      this.update(this.outline);
    }
    if (this.again) {
      this.again = false;
      this.load();
    }
  }

  /** Take what is known now. @param {import("./outline.js").Outline} outline */
  update(outline) {
    this.outline = outline;
    const row = outline.tasks.get(this.id);
    if (this.id === null || !row) return;
    const state = outline.states.get(this.id);
    if (this.changed("mark", state)) this.mark.replaceChildren(icon(state));
    setText(this.title, row.title);
    setText(this.number, `#${row.id}`);
    const task = { ...this.task, ...row };
    this.draw(
      "standing",
      [state, this.waiting(), this.task?.error_message, row.progress, row.assigned_agent_id, row.not_before],
      () => this.drawStanding(task, state),
    );
    this.draw("actions", [row.status], () => this.drawActions(task));
    this.followPriority(row.priority);
    const others = (ids) => ids.map((id) => [id, outline.tasks.get(id)?.title, outline.states.get(id)]);
    this.draw("waits", [others(row.dependencies), others(this.dependents())], () => this.drawWaits(row));
    const below = outline.children.get(this.id) ?? [];
    this.draw("parts", [others(below), below.map((id) => outline.tasks.get(id).progress)], () => this.drawParts(below));
    if (!this.task) return;
    this.draw("description", this.task.description, () => this.drawDescription());
    this.facts.update(this.factsOf(task));
    this.about.hidden = false;
    this.draw("attempts", this.task.attempts, (attempts) => this.drawAttempts(attempts));
    this.draw("result", [this.task.result_data, this.task.artifacts], () => this.drawResult());
  }

  /** Draw a part, only when what it shows has changed: what is selected or focused in it stays. */
  draw(part, shown, make) {
    if (this.changed(part, shown)) this.parts[part].replaceChildren(...[make(shown)].flat().filter(Boolean));
  }

  changed(name, value) {
    const key = JSON.stringify(value) ?? "";
    if (this.drawn.get(name) === key) return false;
    this.drawn.set(name, key);
    return true;
  }

  waiting() {
    return this.task ? this.task.blocked_by : (this.outline.waits.get(this.id) ?? []).map(({ id }) => id);
  }

  dependents() {
    return this.outline.dependents(this.id);
  }

  drawStanding(task, state) {
    const said = [h("span", { class: "wb-strong" }, STATES[state] ?? state)];
    const waits = state === "blocked" ? this.waiting() : [];
    if (waits.length) said.push(" · waits for ", ...this.links(waits));
    if (task.assigned_agent_id)
      said.push(OPEN.has(task.status) ? ` · held by ${task.assigned_agent_id}` : ` · by ${task.assigned_agent_id}`);
    if (task.status === "in_progress" || (task.status === "claimed" && task.progress))
      said.push(` · ${task.progress} %`);
    if (task.not_before && task.status === "pending" && Date.parse(task.not_before) > Date.now())
      said.push(` · next attempt after ${clock(task.not_before)}`);
    const error = this.task?.error_message;
    return [h("p", {}, ...said), error ? message("warning", h("span", { class: "wb-prose" }, error)) : null];
  }

  links(ids) {
    const some = ids.slice(0, FEW).flatMap((id, at) => [at ? ", " : "", this.link(id)]);
    return ids.length > FEW ? [...some, ` and ${ids.length - FEW} more`] : some;
  }

  link(id) {
    const other = this.outline.tasks.get(id);
    const state = other ? ` (${(STATES[this.outline.states.get(id)] ?? "").toLowerCase()})` : "";
    return h(
      "button",
      {
        class: "wb-link",
        type: "button",
        title: other ? `${other.title}${state}` : null,
        on: { click: () => this.on.jump(id) },
      },
      `#${id}`,
    );
  }

  drawActions({ status, priority }) {
    this.asked.replaceChildren();
    const ask = (label, open) =>
      button(label, "wb-button", (event) => this.ask(event.currentTarget, open), `${label} task ${this.id}`);
    if (OPEN.has(status)) {
      const reassign = ask("Reassign…", (close) => this.reassigning(close));
      return [this.priorityForm(priority), reassign, ask("Cancel…", (close) => this.cancelling(close))];
    }
    if (DEAD.has(status))
      return [
        button("Retry", "wb-button wb-primary", (event) => this.retry(event.currentTarget), `Retry task ${this.id}`),
      ];
    return [];
  }

  priorityForm(priority) {
    this.priority = input(String(priority), {
      class: "wb-input wb-task-priority",
      type: "number",
      step: "1",
      "aria-label": `Priority of task ${this.id}; higher goes first`,
    });
    this.set = h("button", { class: "wb-button", type: "submit", hidden: true }, "Set");
    this.priority.addEventListener(
      "input",
      () => (this.set.hidden = this.priority.value === this.priority.dataset.known),
    );
    this.priority.dataset.known = String(priority);
    const back = () => this.followPriority(Number(this.priority.dataset.known), true);
    return form(
      { class: "wb-line" },
      { submit: () => this.prioritise(), escape: back },
      h("label", { class: "wb-muted" }, "Priority"),
      this.priority,
      this.set,
    );
  }

  /** Show the priority as it is, unless the person is typing another. */
  followPriority(priority, even = false) {
    const { priority: field } = this;
    if (!field || (!even && field.dataset.known === String(priority))) return;
    const typing = !even && field.value !== field.dataset.known;
    field.dataset.known = String(priority);
    if (!typing) field.value = String(priority);
    this.set.hidden = field.value === field.dataset.known;
  }

  async prioritise() {
    if (this.priority.value === this.priority.dataset.known || this.priority.value.trim() === "") return;
    const priority = Number(this.priority.value);
    const made = await this.run("set_priority", { priority }, this.set, `priority ${priority}.`);
    if (made) this.followPriority(made.priority, true);
  }

  retry(pressed) {
    return this.run("retry_task", {}, pressed, "it is tried again.");
  }

  cancelling(close) {
    const below = this.outline.children.has(this.id) ? " What is under it and not finished is cancelled too." : "";
    const held = this.outline.tasks.get(this.id).status === "pending" ? "Nobody will do it." : "Who holds it loses it.";
    const words = {
      label: `Cancel task ${this.id}`,
      why: `${held}${below} It can be retried later.`,
      reason: "Reason (optional; agents are told)",
      keep: "Keep it",
    };
    return new Confirm(words, (reason, pressed) => this.run("cancel_task", { reason }, pressed, "cancelled."), close);
  }

  reassigning(close) {
    const { tables } = this.desk.store;
    const now = Date.now();
    const { persona_id: persona, assigned_agent_id: holder, status } = this.outline.tasks.get(this.id);
    const agents = [...tables.agents.values()].filter((agent) => isCurrent(standing(agent, now)));
    const fits = (agent) => agent.persona_id === persona;
    const named = (agent) => [agent.agent_id, `${agent.agent_id} · ${agent.persona_id ?? "any work"}`];
    const options = [
      [NOBODY, `Whoever is a ${persona}`],
      ...agents.filter(fits).map(named),
      ...agents.filter((agent) => !fits(agent)).map(named),
    ];
    const to = select(options, NOBODY, { class: "wb-input wb-narrow", "aria-label": "Agent" });
    const held = status !== "pending" ? `${holder} loses it, and no retry is used up. ` : "";
    const words = {
      label: "Reassign",
      why: `${held}Only the agent you choose may claim it.`,
      reason: "Reason (optional)",
      danger: false,
      keep: "Leave it",
      before: to,
    };
    const done = () => (to.value ? `reserved for ${to.value}.` : "anybody may claim it.");
    return new Confirm(
      words,
      (reason, pressed) => this.run("reassign_task", { assigned_agent_id: to.value || null, reason }, pressed, done()),
      close,
    );
  }

  /** Open one more question under the actions. */
  ask(opener, make) {
    this.asker.clear();
    const close = () => {
      this.asked.replaceChildren();
      opener.focus();
    };
    const question = make(close);
    this.asked.replaceChildren(question.element);
    question.focus();
  }

  async run(op, more, pressed, done) {
    const { id } = this;
    const outcome = await this.asker.ask(op, { task_id: id, ...more }, pressed);
    if (!outcome) return null;
    this.desk.announce(`Task ${id}: ${done}`);
    if (this.id === id) {
      this.asked.replaceChildren();
      this.focus();
    }
    return outcome;
  }

  drawDescription() {
    const { description } = this.task;
    return description ? h("p", { class: "wb-prose" }, description) : null;
  }

  drawWaits({ dependencies }) {
    const after = this.dependents();
    return [
      dependencies.length ? this.list("Waits for", dependencies) : null,
      after.length ? this.list("Waited for by", after) : null,
    ];
  }

  drawParts(below) {
    if (!below.length) return null;
    const { done, below: all } = this.outline.below.get(this.id);
    return this.list(`Subtasks · ${done} of ${counted(all, "task")} completed`, below);
  }

  list(label, ids) {
    const lines = ids.slice(0, FEW).map((id) => h("li", {}, ...this.line(id)));
    if (ids.length > FEW)
      lines.push(h("li", { class: "wb-muted" }, `… and ${(ids.length - FEW).toLocaleString("en")} more`));
    return labelled(label, h("ul", { class: "wb-list wb-others" }, ...lines));
  }

  line(id) {
    const task = this.outline.tasks.get(id);
    const state = this.outline.states.get(id);
    const link = h(
      "button",
      { class: "wb-link wb-grow wb-cut", type: "button", on: { click: () => this.on.jump(id) } },
      task?.title ?? `Task ${id}`,
    );
    const how = task?.status === "in_progress" ? `${task.progress} %` : (STATES[state] ?? "");
    return [
      h("span", { class: "wb-mark" }, icon(state ?? "question")),
      link,
      h("span", { class: "wb-muted" }, how),
      h("span", { class: "wb-muted wb-number" }, `#${id}`),
    ];
  }

  factsOf(task) {
    const { tables } = this.desk.store;
    const time = (iso) => (iso ? moment(iso) : null);
    const tries = `${task.attempts.length} so far, ${counted(Math.max(0, task.max_retries - task.retry_count), "retry", "retries")} left`;
    return [
      ["Persona", task.persona_id],
      ["Worktree", task.worktree],
      ["Plan", task.plan && (task.name ? `${task.plan} · ${task.name}` : task.plan)],
      ["Session", task.session_id && (sessionName(tables, task.session_id) ?? task.session_id)],
      ["Part of", task.parent_task_id && h("span", {}, this.link(task.parent_task_id))],
      ["Lease until", OPEN.has(task.status) && task.lease_expires_at ? clock(task.lease_expires_at) : null],
      ["Attempts", tries],
      ["Not retried", task.no_retry.length ? `after ${task.no_retry.join(", ")}` : null],
      ["If one fails", task.dependencies.length ? POLICIES[task.on_failure] : null],
      ["Command", task.run && h("code", {}, Array.isArray(task.run) ? task.run.join(" ") : task.run)],
      ["Context", task.context_ref],
      ["Created", `${time(task.created_at)} by ${task.created_by}`],
      ["Started", time(task.started_at)],
      ["Ended", time(task.completed_at)],
    ];
  }

  drawAttempts(attempts) {
    if (!attempts.length) return null;
    const rows = [...attempts].reverse().flatMap((attempt) => attemptRows(attempt));
    const head = h(
      "tr",
      {},
      ...["#", "Agent", "Began", "Took", "Outcome"].map((name) => h("th", { scope: "col" }, name)),
    );
    return labelled(
      "Attempts",
      h("table", { class: "wb-table wb-attempts" }, h("thead", {}, head), h("tbody", {}, ...rows)),
    );
  }

  drawResult() {
    const { result_data: result, artifacts } = this.task;
    const { announce } = this.desk;
    const text = result === null ? "" : pretty(result);
    const shown = text ? labelled("Result", codeBlock(text, "Copy the result", announce)) : null;
    const named = artifacts.map((one) => codeBlock(one, `Copy ${one}`, announce));
    return [shown, named.length ? labelled("Artifacts", ...named) : null];
  }
}

function attemptRows({
  attempt,
  agent_id: agent,
  claimed_at: began,
  ended_at: ended,
  outcome,
  error_class: kind,
  error_message: message,
}) {
  const took = ended ? duration(Date.parse(ended) - Date.parse(began)) : "–";
  const cells = [attempt, agent, moment(began), took, (outcome ?? "goes on").replaceAll("_", " ")];
  const line = h("tr", {}, ...cells.map((cell) => h("td", { title: cell }, cell)));
  const why = [kind, message].filter(Boolean).join(": ");
  return why ? [line, h("tr", { class: "wb-attempt-error" }, h("td", {}), h("td", { colspan: 4 }, why))] : [line];
}

/** JSON to read; text that is JSON itself too, other text as it is. */
function pretty(result) {
  if (typeof result !== "string") return JSON.stringify(result, null, 2);
  try {
    return JSON.stringify(JSON.parse(result), null, 2);
  } catch {
    return result;
  }
}
