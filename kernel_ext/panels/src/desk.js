/** The desk: the views of a project as tabs. One store for each widget model, and any number of views of it. */

import { Admin } from "./admin/admin.js";
import { Agents } from "./agents/agents.js";
import { Analytics } from "./analytics/analytics.js";
import { Chat } from "./chat/chat.js";
import { Definitions } from "./definitions/definitions.js";
import { Inbox, Question } from "./inbox/inbox.js";
import { labelled } from "./lib/blocks.js";
import { button } from "./lib/controls.js";
import { h, setText } from "./lib/dom.js";
import { plural } from "./lib/format.js";
import { icon } from "./lib/icons.js";
import { Frame } from "./link/frame.js";
import { Tabs } from "./lib/tabs.js";
import { Channel } from "./link/channel.js";
import { Dock } from "./link/dock.js";
import { keepLastState } from "./link/last_state.js";
import { Notifier } from "./link/notifier.js";
import { Store } from "./link/store.js";
import { Holds } from "./models/holds.js";
import { Unattended, Untrusted } from "./notices.js";
import { Personalities } from "./personalities/personalities.js";
import { Projects } from "./projects/projects.js";
import { Runs } from "./runs/runs.js";
import { Outline } from "./tasks/outline.js";
import { Progress } from "./tasks/progress.js";
import { Tasks } from "./tasks/tasks.js";
import { Tools } from "./tools/tools.js";
import { Worktrees } from "./worktrees/worktrees.js";

const [INBOX, TASKS, WORKTREES, AGENTS, DEFINITIONS, TOOLS, CHAT, RUNS, , PERSONALITIES, PROJECTS, ADMIN] =
  Array(12).keys();
/** The most failed tasks under the inbox. */
const FAILED = 5;
const LINK_LABELS = {
  connecting: "Connecting…",
  live: "Live",
  retrying: "Retrying…",
  stopped: "Stopped",
  disconnected: "Disconnected",
};

/** One view of the desk, as it stands in one cell. */
class View extends Frame {
  /**
   * @param {Store} store @param {Channel} channel
   * @param {{tab: string, alone: boolean}} chosen the label of the tab to show first, and whether it is the only one
   * @param {AbortSignal} signal ends the view
   */
  constructor(store, channel, { tab, alone }, signal) {
    super(store, channel);
    const announce = (text) => this.announce(text);
    this.untrusted = new Untrusted(store);
    const ways = { connect: () => this.showConnect(), review: (name) => this.showWorktree(name) };
    this.inbox = new Inbox(store, channel, announce, signal, ways);
    this.taskSummary = new TaskSummary(this.openers());
    this.tasks = new Tasks(store, channel, announce, signal);
    this.unattended = new Unattended({ store, channel, announce });
    this.holds = new Holds({ store, channel, announce }, signal);
    this.worktrees = new Worktrees(store, channel, announce);
    this.agents = new Agents(store, channel, announce, signal, ways.connect);
    this.definitions = new Definitions(store, channel, announce, signal);
    this.tools = new Tools(store, channel, announce, signal);
    this.chat = new Chat(store, channel, announce, signal);
    this.runs = new Runs(store, channel, announce, signal);
    this.analytics = new Analytics(store, channel, announce, signal, this.openers());
    this.personalities = new Personalities(store, channel, announce, signal);
    this.projects = new Projects(store, channel, announce);
    this.admin = new Admin(store, channel, announce, signal);
    const views = [
      { label: "Inbox", element: h("div", {}, this.inbox.element, this.taskSummary.element) },
      { label: "Tasks", element: this.tasks.element },
      { label: "Worktrees", element: this.worktrees.element },
      { label: "Agents", element: this.agents.element },
      { label: "Definitions", element: this.definitions.element },
      { label: "Tools", element: this.tools.element },
      { label: "Chat", element: this.chat.element },
      { label: "Runs", element: this.runs.element },
      { label: "Analytics", element: this.analytics.element },
      { label: "Personalities", element: this.personalities.element },
      { label: "Projects", element: this.projects.element },
      { label: "Admin", element: this.admin.element },
    ];
    this.tabs = new Tabs(views, () => this.onTab());
    const first = views.findIndex(({ label }) => label === tab);
    this.tabs.show(Math.max(0, first));
    this.isAlone = alone;
    const notices = [this.banner, this.unattended.element, this.holds.element, this.untrusted.element];
    this.element = this.region("Workbench desk", this.top(), ...notices, ...this.tabs.panels);
    this.start(signal);
  }

  top() {
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.linkLabel = h("span", {});
    const brand = h("span", { class: "wb-brand" }, "Workbench");
    this.tabs.element.hidden = this.isAlone;
    const link = h("span", { class: "wb-state" }, this.dot, this.linkLabel);
    this.failedLabel = h("span", {});
    this.failed = button("", "wb-state wb-failed", () => this.showFailed());
    this.failed.append(icon("failed"), this.failedLabel);
    return h("div", { class: "wb-top" }, brand, this.tabs.element, this.status, this.failed, link);
  }

  /** What charts and summaries open: the details of what they show, in its own tab. */
  openers() {
    return {
      task: (id) => {
        this.showTab(TASKS);
        this.tasks.jump(id);
      },
      agent: (id) => {
        this.showTab(AGENTS);
        this.agents.reveal(id);
      },
      tasks: () => this.showTab(TASKS),
      failed: () => this.showFailed(),
      inbox: () => this.showTab(INBOX),
      tools: () => {
        this.showTab(TOOLS);
        this.tools.setMode("calls");
      },
    };
  }

  /** Draw the tab that was chosen; what was announced is about the one before. */
  onTab() {
    this.announce("");
    this.draw();
  }

  /** Show a tab. A panel of one tab has others then, and a way back. @param {string} tab */
  showTab(tab) {
    this.tabs.element.hidden = false;
    this.tabs.select(tab);
  }

  /** Show the tasks that failed for good. */
  showFailed() {
    this.showTab(TASKS);
    this.tasks.showFailed();
  }

  /** Show the changes of a worktree. @param {string} name */
  showWorktree(name) {
    this.showTab(WORKTREES);
    this.worktrees.open(name);
  }

  /** Show how to connect an agent. */
  showConnect() {
    this.showTab(ADMIN);
    this.admin.focusConnect();
  }

  draw() {
    const { state } = this.channel.link;
    this.dot.dataset.state = state;
    setText(this.linkLabel, LINK_LABELS[state]);
    this.untrusted.update();
    super.draw();
  }

  /** The inbox is always drawn, because its cards follow what they have started; of the others the one that is shown. */
  drawViews(enabled, now) {
    this.inbox.update(enabled, now);
    this.unattended.update();
    this.holds.update();
    const failed = [...this.store.tables.tasks.values()].filter(({ status }) => status === "failed").length;
    this.failed.hidden = !failed;
    setText(this.failedLabel, `${plural(failed, "task")} failed`);
    this.tabs.setCount(INBOX, this.inbox.waiting, true);
    this.tabs.setCount(WORKTREES, this.worktrees.count());
    this.tabs.setCount(AGENTS, this.agents.count(now));
    this.tabs.setCount(DEFINITIONS, this.definitions.count());
    this.tabs.setCount(TOOLS, this.tools.count());
    this.tabs.setCount(CHAT, this.chat.count());
    this.tabs.setCount(PERSONALITIES, this.personalities.count());
    if (this.tabs.at === INBOX) this.taskSummary.update(this.outline());
    if (this.tabs.at === TASKS) this.tasks.update(this.outline());
    if (this.tabs.at === WORKTREES) this.worktrees.update(enabled, now);
    if (this.tabs.at === AGENTS) this.agents.update(now);
    if (this.tabs.at === DEFINITIONS) this.definitions.update(enabled, now);
    if (this.tabs.at === TOOLS) this.tools.update(enabled, now);
    if (this.tabs.at === CHAT) this.chat.update(enabled, now);
    if (this.tabs.at === RUNS) this.runs.update(enabled, now);
    if (this.tabs.at === PERSONALITIES) this.personalities.update(enabled, now);
    if (this.tabs.at === PROJECTS) this.projects.update();
    if (this.tabs.at === ADMIN) this.admin.update();
  }

  /** The tasks as a tree; made again only when they have changed. */
  outline() {
    const { version, tables } = this.store;
    if (this.outlined?.version !== version) this.outlined = { version, outline: new Outline(tables.tasks) };
    return this.outlined.outline;
  }

  /** Redraw what changes with time alone. */
  tick(now) {
    this.inbox.tick(now);
    if (this.tabs.at === WORKTREES) this.worktrees.update(this.worktrees.enabled, now);
    if (this.tabs.at === AGENTS) this.agents.update(now);
    if (this.tabs.at === DEFINITIONS) this.definitions.update(this.definitions.enabled, now);
    if (this.tabs.at === TOOLS) this.tools.update(this.tools.enabled, now);
    if (this.tabs.at === CHAT) this.chat.update(this.chat.enabled, now);
    if (this.tabs.at === RUNS) this.runs.update(this.runs.enabled, now);
    if (this.tabs.at === PERSONALITIES) this.personalities.update(this.personalities.enabled, now);
  }
}

/** The progress of the tasks, under the inbox, and those that failed for good. */
class TaskSummary {
  /** @param {{tasks: () => void, failed: () => void, task: (id: number) => void}} open */
  constructor(open) {
    this.open = open;
    this.progress = new Progress();
    const heading = h("h3", { class: "wb-heading" }, "Tasks");
    const link = button("Show tasks", "wb-link", open.tasks);
    this.list = h("ul", { class: "wb-list" });
    this.failed = labelled("Failed for good", this.list);
    this.failed.hidden = true;
    this.element = h(
      "section",
      { class: "wb-section wb-stack", hidden: true },
      h("div", { class: "wb-toolbar" }, heading, this.progress.summary, link),
      this.progress.meter,
      this.failed,
    );
  }

  /** @param {Outline} outline */
  update(outline) {
    this.progress.update(outline);
    const tasks = [...outline.tasks.values()].filter(({ status }) => status === "failed").reverse();
    const key = JSON.stringify(tasks.map(({ id, title, error_message: error }) => [id, title, error]));
    if (key !== this.key) this.drawFailed(tasks);
    this.key = key;
    this.element.hidden = !outline.tasks.size;
  }

  /** The first line of an error is its cause. */
  drawFailed(tasks) {
    const lines = tasks.slice(0, FAILED).map(({ id, title, error_message: error }) => {
      const link = button(`#${id} ${title}`, "wb-link wb-cut", () => this.open.task(id));
      return h("li", {}, icon("failed"), link, h("span", { class: "wb-muted wb-grow wb-cut" }, firstLine(error)));
    });
    const left = tasks.length - FAILED;
    const more = button(`Show all ${tasks.length.toLocaleString("en")}`, "wb-link", this.open.failed);
    this.list.replaceChildren(...lines, ...(left > 0 ? [h("li", {}, more)] : []));
    this.failed.hidden = !tasks.length;
  }
}

function firstLine(error) {
  return error?.split("\n", 1)[0] ?? "";
}

export default () => {
  const store = new Store();
  /** @type {Channel} */
  let channel;
  /** @type {Dock} */
  let dock;
  return {
    initialize({ model, signal }) {
      keepLastState(model);
      store.notebook = model.widget_manager?.context?.path ?? null;
      channel = new Channel(model, store, signal);
      new Notifier(model, store, channel, signal);
      const chosen = { tab: model.get("tab"), alone: model.get("alone") };
      dock = new Dock(model, (el, ended) => el.append(new View(store, channel, chosen, ended).element));
    },
    render({ model, el, signal }) {
      const ids = model.get("approval_ids");
      if (ids) el.append(new Question(store, channel, ids, signal).element);
      else if (model.get("docked")) dock.render(el, signal);
      else dock.show(el, signal);
    },
  };
};
