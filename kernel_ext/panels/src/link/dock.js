/**
 * The panel beside the notebook, as a view of its own in JupyterLab; its cell says so, with buttons to change it.
 *
 * JupyterLab's widget manager gives no public way to a widget's area: the context of the notebook has one (`addSibling`),
 * and its arguments are Lumino widgets, whose class is that of the view's own widget.
 */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";

/** The id of JupyterLab's main area. Notebook 7 has `addSibling` too, but its failure reaches no caller. */
const AREA = "jp-main-dock-panel";
const UNAVAILABLE =
  "This page cannot put the panel beside the notebook. In JupyterLab, right-click this output and choose “Create New View for Output”.";

export class Dock {
  /**
   * @param {any} model the anywidget model
   * @param {(el: HTMLElement, signal: AbortSignal) => void} show puts the panel into an element
   */
  constructor(model, show) {
    this.model = model;
    this.show = show;
    this.isOpen = false;
    /** The element of the docked view; while it is being made, a promise of it. @type {Promise<HTMLElement|null>|HTMLElement|null} */
    this.docked = null;
    /** The cells' outputs. @type {Set<() => void>} */
    this.outputs = new Set();
    /** Where they are, those that show the panel itself too. @type {Set<HTMLElement>} */
    this.places = new Set();
    /** The area of the docked view. @type {any} */
    this.area = null;
  }

  /**
   * A view of the model: the docked one, or the output of a cell. Several may be drawn while the docked one is being
   * made, in any order, so each waits until it is known which of them that is.
   */
  async render(el, signal) {
    const docked = await this.docked;
    if (signal.aborted) return;
    if (docked === el) this.show(el, signal);
    else this.renderOutput(el, signal);
  }

  renderOutput(el, signal) {
    const text = h("p", { class: "wb-grow" }, "The panel is beside the notebook.");
    const again = button("Put it beside the notebook again", "wb-button", () => this.openFrom(el, signal));
    const here = button("Show it here", "wb-button", () => {
      this.outputs.delete(update);
      el.replaceChildren();
      this.show(el, signal);
    });
    const line = h("div", { class: "wb-toolbar wb-docked" }, text, again, here);
    const update = () => {
      text.hidden = !this.isOpen;
      again.hidden = this.isOpen;
    };
    el.append(h("div", { class: "wb-desk", role: "region", "aria-label": "Workbench desk, docked" }, line));
    this.outputs.add(update);
    this.places.add(el);
    signal.addEventListener("abort", () => {
      this.outputs.delete(update);
      this.places.delete(el);
      this.closeUnused();
    });
    update();
    if (!this.isOpen) this.openFrom(el, signal);
  }

  /** Put the panel beside the notebook; where the page cannot do that, show it in the cell. */
  async openFrom(el, signal) {
    if (!(await this.open(el)) && !signal.aborted) this.giveUp(el, signal);
  }

  /** Show the panel in the cell, and say how else to get it beside the notebook. */
  giveUp(el, signal) {
    el.replaceChildren(
      h("div", { class: "wb-desk" }, h("p", { class: "wb-toolbar wb-docked" }, UNAVAILABLE)),
      h("div", { class: "wb-docked-here" }),
    );
    this.show(el.lastElementChild, signal);
  }

  /** Put the panel beside the notebook. @returns {Promise<boolean>} whether this page can */
  async open(el) {
    const manager = this.model.widget_manager;
    const context = manager?.context;
    if (typeof context?.addSibling !== "function" || !document.getElementById(AREA)) return false;
    let view;
    /** @type {(el: HTMLElement|null) => void} */
    let resolveDocked;
    this.isOpen = true;
    this.docked = new Promise((resolve) => (resolveDocked = resolve));
    try {
      view = await manager.create_view(await manager.get_model(this.model.get("panel_id")));
      resolveDocked((this.docked = view.el));
      const inner = view.luminoWidget;
      const Widget = baseOf(inner.constructor);
      const panel = new Widget();
      panel.id = `workbench-${this.model.get("panel_id")}`;
      panel.addClass("jp-ThemedContainer");
      panel.title.label = "Workbench";
      panel.title.closable = true;
      panel.node.style.overflow = "auto";
      panel.node.style.background = "var(--jp-layout-color0)";
      panel.node.style.padding = "var(--jp-notebook-padding, 8px)";
      const ref = el.closest(".jp-NotebookPanel")?.id;
      panel.disposed.connect(() => this.closed());
      view.once?.("remove", () => panel.dispose());
      context.addSibling(panel, { mode: "split-right", ref });
      Widget.attach(inner, panel.node);
      this.area = panel;
      this.closeUnused();
      this.tell();
      return true;
    } catch (error) {
      console.warn("Workbench could not put its panel beside the notebook.", error);
      this.isOpen = false;
      resolveDocked((this.docked = null));
      view?.remove?.(); // it would go on drawing where nobody sees it
      this.tell();
      return false;
    }
  }

  /** The panel goes with the outputs of its cell: one that is run again puts another one beside the notebook. */
  closeUnused() {
    if (!this.places.size) this.area?.dispose();
  }

  closed() {
    this.isOpen = false;
    this.area = null;
    this.tell();
  }

  tell() {
    for (const update of this.outputs) update();
  }
}

/** The class `Widget` of Lumino, from one that derives from it. */
function baseOf(derived) {
  let base = derived;
  while (Object.getPrototypeOf(base).prototype) base = Object.getPrototypeOf(base);
  return base;
}
