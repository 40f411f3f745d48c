/** One task's details: its state and why, the tasks around it, its attempts, its log, and what came of it. */

import { drawnIn, html } from "../components/ui.js";
import { Artifact } from "../contents/artifact.js";
import { Facts, codeBlock, labelled, message, outputOf } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { dateTime, duration, plural, timeOfDay } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Messages } from "../messages/messages.js";
import { checkOf } from "../models/check.js";
import { ModelUse } from "../models/use.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { sessionPath } from "../projects/lookup.js";
import { OPEN, TaskActions } from "./actions.js";
import { TaskLog } from "./log.js";
import { STATES, dueText, stateText } from "./outline.js";
import { loadHighlighter } from "../link/assets.js";
import { FileDiff } from "../lib/file_diff.js";

const MOST = 12;
/** Artifacts that are no files, as rules/tasks/artifacts.py has them. */
const NO_FILE = /^commit:|^[a-z][a-z0-9+.-]*:\/\/\S+$/i;
const ON_FAILURE = { cancel: "this task is cancelled too", ignore: "this task goes on without it" };
const DONE_WHEN = { changed: "its branch has changed", checked: "its check has passed", said: "its agent says so" };
const CHECKING = new Set(["waiting", "running"]);
const ATTEMPT_COLUMNS = ["#", "Agent", "Began", "Took", "Outcome"];
/** Parts that are redrawn when what they show has changed, and their classes. */
const PARTS = {
  state: "wb-indented wb-wrap",
  description: "wb-indented",
  dependencies: "wb-task-part",
  subtasks: "wb-task-part",
  attempts: "wb-task-part",
  models: "wb-task-part",
  messages: "wb-task-part",
  result: "wb-task-part",
};

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
    this.reader = new RequestRunner(desk);
    this.actions = new TaskActions(desk, () => this.focus());
    this.log = new TaskLog(desk);
    this.facts = new Facts();
    this.about = labelled("Details", this.facts.element);
    this.parts = Object.fromEntries(Object.entries(PARTS).map(([name, style]) => [name, h("div", { class: style })]));
    const id = freshId("task");
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("h4", { class: "wb-pane-title", id, tabindex: -1 });
    this.number = h("span", { class: "wb-muted wb-number" });
    const { state, description, dependencies, subtasks, attempts, models, messages, result } = this.parts;
    this.drawModels = drawnIn(models, signal);
    this.drawMessages = drawnIn(messages, signal);
    this.element = h(
      "section",
      { class: "wb-pane wb-stack wb-roomy", "aria-labelledby": id, hidden: true },
      h("div", { class: "wb-pane-head" }, this.mark, this.title, this.number, this.closeButton()),
      state,
      this.actions.element,
      this.actions.confirmBox,
      this.actions.requests.errorBox,
      this.reader.errorBox,
      description,
      dependencies,
      subtasks,
      attempts,
      messages,
      models,
      this.log.element,
      result,
      this.about,
    );
    desk.store.subscribe(() => this.onChange(), signal);
    signal.addEventListener("abort", () => this.hide(), { once: true });
  }

  closeButton() {
    return button("×", "wb-close", this.on.close, "Close the task");
  }

  /** Show a task. @param {number} id @param {import("./outline.js").Outline} outline */
  show(id, outline) {
    if (this.id !== id) this.begin(id);
    this.element.hidden = false;
    this.update(outline);
  }

  begin(id) {
    this.id = id;
    this.task = null;
    this.drawn.clear();
    this.drawModels(null);
    this.drawMessages(null);
    for (const part of Object.values(this.parts)) part.replaceChildren();
    this.about.hidden = true;
    this.element.scrollTop = 0;
    this.actions.show(id);
    this.log.show(id);
    this.reader.clearError();
    this.refresh?.stop();
    this.refresh = new Refresh(
      () => this.read(id),
      (error) => this.reader.showError(error),
    );
    this.refresh.now();
  }

  hide() {
    this.id = null;
    this.refresh?.stop();
    this.log.show(null);
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  onChange() {
    if (this.id === null || !this.desk.store.concerns(`task:${this.id}`)) return;
    this.refresh.now();
    this.log.refresh.now();
  }

  /** Read what the row does not have. */
  async read(id) {
    const task = await this.reader.send("get_task", { task_id: id });
    if (id !== this.id) return;
    this.reader.clearError();
    this.task = task;
    this.update(this.outline);
  }

  /** Bring it up to date. @param {import("./outline.js").Outline} outline */
  update(outline) {
    this.outline = outline;
    const row = outline.tasks.get(this.id);
    if (this.id === null || !row) return;
    const state = outline.states.get(this.id);
    if (this.hasChanged("mark", state)) this.mark.replaceChildren(icon(state));
    setText(this.title, row.title);
    setText(this.number, `#${row.id}`);
    this.updateFromRow(row, state);
    if (this.task) this.updateFromTask({ ...this.task, ...row });
  }

  updateFromRow(row, state) {
    const { outline } = this;
    const subtasks = outline.children.get(this.id) ?? [];
    const dependents = outline.dependents(this.id);
    const titled = (ids) => ids.map((id) => [id, outline.tasks.get(id)?.title, outline.states.get(id)]);
    const progress = subtasks.map((id) => outline.tasks.get(id).progress);
    const about = [state, this.waitsFor(), this.task?.error_message, row.progress, row.assigned_agent_id];
    this.draw("state", [...about, row.not_before, dueText(row)], () => this.drawState({ ...this.task, ...row }, state));
    this.actions.update(row, subtasks.length > 0);
    const around = [titled(row.dependencies), titled(dependents)];
    this.draw("dependencies", around, () => this.drawDependencies(row.dependencies, dependents));
    this.draw("subtasks", [titled(subtasks), progress], () => this.drawSubtasks(subtasks));
  }

  updateFromTask(task) {
    const { description, attempts, result_data: result, artifacts } = this.task;
    this.draw("description", description, () => description && h("p", { class: "wb-prose" }, description));
    this.draw("attempts", attempts, () => attempts.length && this.drawAttempts(attempts));
    this.draw("result", [result, artifacts], () => this.drawResult());
    const about = { desk: this.desk, of: { task_id: this.id }, underway: OPEN.has(task.status) };
    this.drawModels(html`<${ModelUse} key=${this.id} ...${about} version=${JSON.stringify(attempts)} />`);
    const told = { desk: this.desk, of: { task_id: this.id }, version: JSON.stringify(attempts), canTell: true };
    this.drawMessages(html`<${Messages} key=${this.id} ...${told} />`);
    this.drawFacts(task);
  }

  /** Redraw a part only when what it shows has changed: what is selected or focused in it is kept. */
  draw(part, about, make) {
    if (this.hasChanged(part, about)) this.parts[part].replaceChildren(...[make()].flat().filter(Boolean));
  }

  hasChanged(name, value) {
    const key = JSON.stringify(value) ?? "";
    if (this.drawn.get(name) === key) return false;
    this.drawn.set(name, key);
    return true;
  }

  waitsFor() {
    return this.task ? this.task.blocked_by : (this.outline.waits.get(this.id) ?? []).map(({ id }) => id);
  }

  drawState(task, state) {
    const { status, progress, assigned_agent_id: agent, not_before: pause } = task;
    const waits = state === "blocked" ? this.waitsFor() : [];
    const begun = status === "in_progress" || (status === "claimed" && progress);
    const paused = pause && status === "pending" && Date.parse(pause) > Date.now();
    const error = this.task?.error_message;
    return [
      h(
        "p",
        {},
        h("span", { class: "wb-strong" }, stateText(state, task)),
        ...(waits.length ? [" · waits for ", ...this.links(waits)] : []),
        agent ? ` · ${OPEN.has(status) ? "held by" : "by"} ${agent}` : "",
        begun ? ` · ${progress} %` : "",
        checking(this.task) ? " · being checked" : "",
        this.task?.approval_id ? " · waits for your approval" : "",
        paused ? ` · next attempt after ${timeOfDay(pause)}` : "",
        dueText(task) && ` · ${dueText(task)}`,
      ),
      error ? message("warning", outputOf(error)) : null,
    ];
  }

  /** "#3, #5 and 2 more" */
  links(ids) {
    const links = ids.slice(0, MOST).flatMap((id, at) => [at ? ", " : "", this.link(id)]);
    return ids.length > MOST ? [...links, ` and ${ids.length - MOST} more`] : links;
  }

  link(id) {
    const other = this.outline.tasks.get(id);
    const state = STATES[this.outline.states.get(id)]?.toLowerCase();
    const title = other ? `${other.title} (${state})` : null;
    return h("button", { class: "wb-link", type: "button", title, on: { click: () => this.on.jump(id) } }, `#${id}`);
  }

  drawDependencies(dependencies, dependents) {
    return [
      dependencies.length ? this.list("Waits for", dependencies) : null,
      dependents.length ? this.list("Needed by", dependents) : null,
    ];
  }

  drawSubtasks(ids) {
    if (!ids.length) return null;
    const { done, below } = this.outline.below.get(this.id);
    return this.list(`Subtasks · ${done} of ${plural(below, "task")} completed`, ids);
  }

  list(label, ids) {
    const lines = ids.slice(0, MOST).map((id) => this.line(id));
    const more = (ids.length - MOST).toLocaleString("en");
    if (ids.length > MOST) lines.push(h("li", { class: "wb-muted" }, `… and ${more} more`));
    return labelled(label, h("ul", { class: "wb-list wb-others" }, ...lines));
  }

  line(id) {
    const task = this.outline.tasks.get(id);
    const state = this.outline.states.get(id);
    const on = { click: () => this.on.jump(id) };
    return h(
      "li",
      {},
      h("span", { class: "wb-mark" }, icon(state ?? "question")),
      h("button", { class: "wb-link wb-grow wb-cut", type: "button", on }, task?.title ?? `Task ${id}`),
      h("span", { class: "wb-muted" }, task?.status === "in_progress" ? `${task.progress} %` : (STATES[state] ?? "")),
      h("span", { class: "wb-muted wb-number" }, `#${id}`),
    );
  }

  drawFacts(task) {
    const { tables } = this.desk.store;
    const retries = plural(Math.max(0, task.max_retries - task.retry_count), "retry", "retries");
    const command = Array.isArray(task.run) ? task.run.join(" ") : task.run;
    this.about.hidden = false;
    this.facts.update([
      ["Persona", task.persona_id],
      ["Worktree", task.worktree],
      ["Plan", task.plan && (task.name ? `${task.plan} · ${task.name}` : task.plan)],
      ["Session", task.session_id && (sessionPath(tables, task.session_id) ?? task.session_id)],
      ["Part of", task.parent_task_id && h("span", {}, this.link(task.parent_task_id))],
      ["Lease until", OPEN.has(task.status) && task.lease_expires_at && timeOfDay(task.lease_expires_at)],
      ["Attempts", `${task.attempts.length} so far, ${retries} left`],
      ["Not retried", task.no_retry.length && `after ${task.no_retry.join(", ")}`],
      ["If one fails", task.dependencies.length && ON_FAILURE[task.on_failure]],
      ["Command", command && h("code", {}, command)],
      ["Checked by", task.check && h("code", {}, commandOf(task.check))],
      ["Done when", task.done_when && DONE_WHEN[task.done_when]],
      ["Needs", task.needs && (needsOf(task.needs) || "nothing")],
      ["Waits for", task.waits_for],
      ["Holds", OPEN.has(task.status) && task.attempts.at(-1)?.leased?.devices.join(", ")],
      ["Context", task.context_ref],
      ["Created", `${dateTime(task.created_at)} by ${task.created_by}`],
      ["Started", task.started_at && dateTime(task.started_at)],
      ["Ended", task.completed_at && dateTime(task.completed_at)],
    ]);
  }

  drawAttempts(attempts) {
    const head = h("tr", {}, ...ATTEMPT_COLUMNS.map((name) => h("th", { scope: "col" }, name)));
    const keptWork = (attempt) => attempt.kept && new KeptWork(this.desk, this.id, attempt);
    const rows = [...attempts].reverse().flatMap((attempt) => attemptRows(attempt, keptWork(attempt)));
    const table = h("table", { class: "wb-table wb-attempts" }, h("thead", {}, head), h("tbody", {}, ...rows));
    return labelled("Attempts", table);
  }

  drawResult() {
    const { result_data: result, artifacts } = this.task;
    const { announce } = this.desk;
    const text = result === null ? "" : pretty(result);
    return [
      text ? labelled("Result", codeBlock(text, "Copy the result", announce)) : null,
      artifacts.length
        ? labelled("Artifacts", h("ul", { class: "wb-artifacts" }, ...artifacts.map((name) => this.artifact(name))))
        : null,
    ];
  }

  /** A file, which opens; or the name of a commit or an address, which is only copied. @param {string} name */
  artifact(name) {
    if (!NO_FILE.test(name))
      return new Artifact(this.desk, { name, op: "get_task_artifact", args: { task_id: this.id, name } }).element;
    return h("li", {}, codeBlock(name, `Copy ${name}`, this.desk.announce));
  }
}

/** Whether the last attempt at a task is being checked. */
function checking(task) {
  return CHECKING.has(task?.attempts.at(-1)?.check?.state);
}

/** The command of a check. @param {string|string[]|{run: string|string[]}} check */
function commandOf(check) {
  const run = check.run ?? check;
  return Array.isArray(run) ? run.join(" ") : run;
}

/** "gpu 1, vram 12G, exclusive, matlab 1" @param {{[name: string]: any}} needs */
function needsOf(needs) {
  const part = ([name, value]) =>
    value === true ? name : value instanceof Object ? needsOf(value) : `${name} ${value}`;
  return Object.entries(needs).map(part).join(", ");
}

/** The rows of one attempt: how it went, and below it why it failed, what it waits for, and what is kept of it. */
function attemptRows(row, kept) {
  const { attempt, agent_id: agent, claimed_at: began, ended_at: ended, outcome } = row;
  const took = ended ? duration(Date.parse(ended) - Date.parse(began)) : "–";
  const cells = [attempt, agent, dateTime(began), took, (outcome ?? "under way").replaceAll("_", " ")];
  const line = h("tr", {}, ...cells.map((cell) => h("td", { title: cell }, cell)));
  const error = row.error_message && outputOf(row.error_message);
  const asked = row.finishing && `Its command has ended it (${row.finishing}) and still runs.`;
  const below = [
    row.error_class && `Class: ${row.error_class}`,
    error,
    row.waits_for,
    asked,
    row.problem,
    ...checkOf(row.check),
    kept?.element,
  ].filter(Boolean);
  return [line, ...below.map(rowBelow)];
}

function rowBelow(content) {
  const isText = typeof content === "string" || content.classList.contains("wb-output");
  const style = isText ? "wb-attempt-error" : "wb-attempt-kept";
  return h("tr", { class: style }, h("td", {}), h("td", { colspan: 4 }, content));
}

/** JSON with line breaks, also when it came as text; any other text as it is. */
function pretty(result) {
  if (typeof result !== "string") return JSON.stringify(result, null, 2);
  try {
    return JSON.stringify(JSON.parse(result), null, 2);
  } catch {
    return result;
  }
}

const LABELS = { open: "Hide the changes", closed: "Show the changes" };

/** What is kept of an attempt that did not complete its task: how much it is, and its changes on request. */
class KeptWork {
  /**
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk
   * @param {number} task its id
   * @param {any} attempt of get_task, with `kept`
   */
  constructor(desk, task, { attempt, kept }) {
    this.desk = desk;
    this.of = { task_id: task, attempt };
    this.requests = new RequestRunner(desk);
    this.toggle = button(LABELS.closed, "wb-link", () => this.onToggle(), `${LABELS.closed} of attempt ${attempt}`);
    this.toggle.setAttribute("aria-expanded", "false");
    this.files = h("div", { class: "wb-stack", hidden: true });
    const size = `Kept: ${plural(kept.commits, "commit")}, ${plural(kept.files, "file")}. `;
    const adopt = h("code", {}, `workbench adopt ${task} ${attempt}`);
    const advice = h("p", { class: "wb-muted" }, "To merge it after all: ", adopt);
    this.files.append(advice);
    this.element = h("div", { title: kept.ref }, size, this.toggle, this.requests.errorBox, this.files);
  }

  async onToggle() {
    if (!this.diff && !(await this.load())) return;
    const open = this.files.hidden;
    this.files.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    setText(this.toggle, open ? LABELS.open : LABELS.closed);
  }

  async load() {
    this.diff = await this.requests.run("get_attempt_diff", this.of, this.toggle, "Loading…");
    if (!this.diff) return false;
    for (const file of this.diff.files) {
      const fileDiff = new FileDiff(file, {
        readAll: (path) => this.readAll(path),
        highlighter: () => loadHighlighter(this.desk.channel),
      });
      fileDiff.approach();
      this.files.append(fileDiff.element);
    }
    return true;
  }

  async readAll(path) {
    const diff = await this.requests.run("get_attempt_diff", { ...this.of, path });
    return diff?.files.find((file) => file.path === path) ?? null;
  }
}
