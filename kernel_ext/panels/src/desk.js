/** The desk: who waits, how the work goes, who is here, and what holds. One store for each model, any number of views. */

import { Admin } from "./admin/admin.js";
import { Agents } from "./agents/agents.js";
import { Channel } from "./link/channel.js";
import { button } from "./lib/controls.js";
import { h, prose, setText } from "./lib/dom.js";
import { icon } from "./lib/icons.js";
import { Inbox } from "./inbox/inbox.js";
import { Outline } from "./tasks/outline.js";
import { Progress } from "./tasks/progress.js";
import { Projects } from "./projects/projects.js";
import { Store } from "./link/store.js";
import { Tabs } from "./lib/tabs.js";
import { Tasks } from "./tasks/tasks.js";
import { Worktrees } from "./worktrees/worktrees.js";

const TICK_MS = 5_000;
const SAID_MS = 10_000;
const [INBOX, TASKS, WORKTREES, AGENTS, PROJECTS, ADMIN] = [0, 1, 2, 3, 4, 5];
const LINKS = {
  connecting: "Connecting…",
  live: "Live",
  trouble: "Trying again…",
  stopped: "Stopped",
  gone: "Disconnected",
};

/** What one view of the desk shows. */
class View {
  constructor(store, channel, signal) {
    this.store = store;
    this.channel = channel;
    this.status = h("span", { class: "wb-status wb-cut", role: "status", "aria-live": "polite" });
    this.dot = h("span", { class: "wb-dot", "aria-hidden": "true" });
    this.link = h("span", { class: "wb-state" }, this.dot, h("span", {}));
    this.bannerText = h("span", { class: "wb-grow" });
    this.bannerCode = h("code", {});
    this.reconnect = h(
      "button",
      { class: "wb-button", type: "button", on: { click: () => channel.resync() } },
      "Reconnect",
    );
    this.banner = h(
      "div",
      { class: "wb-banner", hidden: true },
      icon("warning"),
      this.bannerText,
      this.bannerCode,
      this.reconnect,
    );
    const announce = (text) => this.announce(text);
    this.inbox = new Inbox(store, channel, announce, signal);
    this.glance = new Glance(() => this.tabs.select(TASKS));
    this.tasks = new Tasks(store, channel, announce, signal);
    this.worktrees = new Worktrees(store, channel, announce);
    this.agents = new Agents(store, channel, announce, signal);
    this.projects = new Projects(store, channel, announce);
    this.admin = new Admin(store, channel, announce, signal);
    const views = [
      { label: "Inbox", element: h("div", {}, this.inbox.element, this.glance.element) },
      { label: "Tasks", element: this.tasks.element },
      { label: "Worktrees", element: this.worktrees.element },
      { label: "Agents", element: this.agents.element },
      { label: "Projects", element: this.projects.element },
      { label: "Admin", element: this.admin.element },
    ];
    this.tabs = new Tabs(views, () => this.draw());
    this.element = h(
      "div",
      { class: "wb-desk", role: "region", "aria-label": "Workbench desk", "data-lm-suppress-shortcuts": "true" },
      h(
        "div",
        { class: "wb-top" },
        h("span", { class: "wb-brand" }, "Workbench"),
        this.tabs.element,
        this.status,
        this.link,
      ),
      this.banner,
      ...this.tabs.panels,
    );
    this.follow(signal);
  }

  /** Say something in passing: it is read aloud, and gone after a while. */
  announce(text) {
    clearTimeout(this.fading);
    setText(this.status, text);
    this.fading = setTimeout(() => setText(this.status, ""), SAID_MS);
  }

  /** Draw after every change, at most once a frame, until the view goes. */
  follow(signal) {
    let due = 0;
    const draw = () => {
      due = 0;
      this.draw();
    };
    this.store.listen(() => (due ||= requestAnimationFrame(draw)), signal);
    const ticking = setInterval(() => this.tick(), TICK_MS);
    signal.addEventListener("abort", () => {
      cancelAnimationFrame(due);
      clearInterval(ticking);
      clearTimeout(this.fading);
    });
    this.draw();
  }

  draw() {
    const { state, error } = this.channel.link;
    this.element.dataset.link = this.dot.dataset.state = state;
    setText(this.link.lastChild, LINKS[state]);
    this.banner.hidden = !error;
    if (error && error !== this.shown) {
      this.bannerText.replaceChildren(...prose(error.message));
      setText(this.bannerCode, error.code);
    }
    this.shown = error;
    this.reconnect.hidden = state !== "stopped" || error?.code === "PANEL_CLOSED";
    this.drawViews(state === "live" || state === "trouble", Date.now());
  }

  /** The inbox always, because questions close in it; of the others the one that is shown. */
  drawViews(enabled, now) {
    this.inbox.update(enabled, now);
    this.tabs.setCount(INBOX, this.inbox.waiting, true);
    this.tabs.setCount(WORKTREES, this.worktrees.count());
    this.tabs.setCount(AGENTS, this.agents.count(now));
    if (this.tabs.at === INBOX) this.glance.update(this.outline());
    if (this.tabs.at === TASKS) this.tasks.update(this.outline());
    if (this.tabs.at === WORKTREES) this.worktrees.update(enabled, now);
    if (this.tabs.at === AGENTS) this.agents.update(now);
    if (this.tabs.at === PROJECTS) this.projects.update();
    if (this.tabs.at === ADMIN) this.admin.update();
    else this.admin.rest();
  }

  /** What is known of the tasks; made anew only when they have changed. */
  outline() {
    const { version, tables } = this.store;
    if (this.outlined?.version !== version) this.outlined = { version, outline: new Outline(tables.tasks) };
    return this.outlined.outline;
  }

  /** Time passes without a change. */
  tick() {
    const now = Date.now();
    this.inbox.tick(now);
    if (this.tabs.at === WORKTREES) this.worktrees.update(this.worktrees.enabled, now);
    if (this.tabs.at === AGENTS) this.agents.update(now);
  }
}

/** How far the tasks are, under the inbox. */
class Glance {
  /** @param {() => void} onOpen */
  constructor(onOpen) {
    this.progress = new Progress();
    this.link = button("Show tasks", "wb-link", onOpen);
    this.element = h(
      "section",
      { class: "wb-section wb-stack", hidden: true },
      h("div", { class: "wb-toolbar" }, h("h3", { class: "wb-heading" }, "Tasks"), this.progress.summary, this.link),
      this.progress.meter,
    );
  }

  /** @param {Outline} outline */
  update(outline) {
    this.progress.update(outline);
    this.element.hidden = !outline.tasks.size;
  }
}

export default () => {
  const store = new Store();
  /** @type {Channel} */
  let channel;
  return {
    initialize({ model, signal }) {
      channel = new Channel(model, store, signal);
    },
    render({ el, signal }) {
      el.append(new View(store, channel, signal).element);
    },
  };
};
