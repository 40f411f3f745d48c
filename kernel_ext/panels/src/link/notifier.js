/**
 * Shows the person what she is told while she does something else: as a notification of JupyterLab, and of her desktop
 * if she chose that. The server gives each message to one page only, and once.
 */

import { checkbox } from "../lib/controls.js";
import { requestId } from "./channel.js";

const NOTIFY = "apputils:notify";
const OPEN = "docmanager:open";
/** The choice to be notified on the desktop, which the browser keeps for all panels of one address. */
const CHOICE = "workbench.desktop_notifications";
const BLOCKED =
  "The browser does not allow notifications from this page. Allow them in its settings for this site, then check this again.";
/** The output of a cell is put into the page some time after its widget is made. */
const ATTACHED_MS = 100;
const ATTACHED_TRIES = 50;

export class Notifier {
  /**
   * @param {any} model the anywidget model
   * @param {import("./store.js").Store} store @param {import("./channel.js").Channel} channel @param {AbortSignal} signal
   */
  constructor(model, store, channel, signal) {
    this.model = model;
    this.channel = channel;
    store.subscribe(() => store.concernsAny("notification") && this.onNews(), signal);
  }

  /** Show what is there to show; what comes meanwhile, too. */
  async onNews() {
    this.isNew = true;
    if (this.isTaking) return;
    this.isTaking = true;
    try {
      while (this.isNew && this.channel.link.state === "live") {
        this.isNew = false;
        await this.take();
      }
    } catch {
      // It was not taken, and comes with the next change.
    } finally {
      this.isTaking = false;
    }
  }

  /** A page that can show nothing leaves it to another one. */
  async take() {
    this.commands ??= await this.findCommands();
    if (!this.commands && !isOnDesktop()) return;
    const { sentence, items } = await this.channel.request(requestId(), "take_notifications", {});
    if (!sentence) return;
    if (this.commands) this.showInPage(sentence, items);
    if (isOnDesktop() && !(this.commands && document.hasFocus())) showOnDesktop(sentence);
  }

  async findCommands() {
    for (let left = this.model.widget_manager?.context ? ATTACHED_TRIES : 0; left > 0; left -= 1) {
      const commands = await commandsOf(this.model);
      if (commands) return commands;
      await new Promise((resolve) => setTimeout(resolve, ATTACHED_MS));
    }
    return null;
  }

  showInPage(sentence, items) {
    const whats = items.map(({ what }) => what);
    const type = whats.includes("failed") ? "error" : whats.every((what) => what === "done") ? "success" : "warning";
    const actions = this.commands.hasCommand(OPEN) ? [{ label: "Show the panel", commandId: this.showing() }] : [];
    this.commands.execute(NOTIFY, { message: `Workbench: ${sentence}`, type, options: { autoClose: false, actions } });
  }

  /** The command that leads to this panel: notifications can only call one. It stays, as they may outlive the panel. */
  showing() {
    const { model, commands } = this;
    const id = `workbench:show-${model.get("panel_id")}`;
    const execute = async () => {
      await commands.execute(OPEN, { path: model.widget_manager.context.path });
      await scrollToPanel(model);
    };
    if (!commands.hasCommand(id)) commands.addCommand(id, { label: "Show the panel", execute });
    return id;
  }
}

/** A choice of the person: whether her desktop shows messages, too. */
export class DesktopChoice {
  /** @param {(text: string) => void} announce */
  constructor(announce) {
    this.announce = announce;
    const { box, element } = checkbox("Notify me on my desktop", (on) => this.choose(on));
    this.box = box;
    this.element = element;
    element.classList.add("wb-push");
    element.hidden = !("Notification" in globalThis && globalThis.isSecureContext);
    this.update();
  }

  update() {
    this.box.checked = isOnDesktop();
  }

  async choose(on) {
    if (on && (await Notification.requestPermission()) !== "granted") this.announce(BLOCKED);
    else if (on) localStorage.setItem(CHOICE, "on");
    else localStorage.removeItem(CHOICE);
    this.update();
  }
}

function isOnDesktop() {
  try {
    return Notification.permission === "granted" && localStorage.getItem(CHOICE) === "on";
  } catch {
    return false; // a page without storage, or a browser without notifications
  }
}

function showOnDesktop(sentence) {
  try {
    const shown = new Notification("Workbench", { body: sentence, tag: "workbench" });
    shown.onclick = () => window.focus();
  } catch {
    // Some browsers have them for installed applications only.
  }
}

/**
 * The commands of JupyterLab or Jupyter Notebook: no way to them is given to widgets, but the menus, which are in the
 * same page, have them. @returns {Promise<any>} null if there is no command that notifies
 */
async function commandsOf(model) {
  try {
    for (const view of await viewsOf(model)) {
      let root = view.luminoWidget;
      while (root.parent) root = root.parent;
      const commands = menuCommands(root);
      if (commands?.hasCommand(NOTIFY)) return commands;
    }
  } catch {
    // Not a page of this form.
  }
  return null;
}

async function viewsOf(model) {
  const { views } = await model.widget_manager.get_model(model.get("panel_id"));
  return Promise.all(Object.values(views));
}

/** Scroll the notebook to the panel, unless it stands beside the notebook. */
async function scrollToPanel(model) {
  const views = await viewsOf(model).catch(() => []); // the notebook was closed: its panel comes with its outputs
  if (views.some(({ el }) => el.isConnected && !el.closest(".jp-Cell"))) return;
  for (const { luminoWidget } of views) {
    let cell = null;
    for (let at = luminoWidget; at; at = at.parent) {
      if (at.hasClass("jp-Cell")) cell = at;
      if (cell && at.scrollToCell) at.scrollToCell(cell, "start");
    }
  }
}

function menuCommands(widget) {
  if (widget.menus?.length) return widget.menus[0].commands;
  for (const child of widget.children()) {
    const commands = menuCommands(child);
    if (commands) return commands;
  }
  return null;
}
