/** The saved views of one table: a button that opens them; each is picked again, renamed or deleted, and others saved. */

import { button, enable, form, input } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { KeyedList } from "../lib/keyed_list.js";
import { RequestRunner } from "../link/request_runner.js";
import { offerUndo } from "../link/undo.js";

export class SavedViews {
  /**
   * @param {any} desk
   * @param {string} area the table they are views of
   * @param {{read: () => object, apply: (state: any) => void}} table
   *   `read` gives its search, filters and sorting as JSON, `apply` sets them; what is missing counts as not chosen
   */
  constructor(desk, area, { read, apply }) {
    this.desk = desk;
    this.area = area;
    this.read = read;
    this.apply = apply;
    this.requests = new RequestRunner(desk);
    this.label = h("span", {}, "Views");
    this.opener = button("", "wb-button wb-views-opener", () => this.toggle());
    this.opener.append(this.label);
    this.box = this.makeBox();
    const attributes = { class: "wb-views", on: { keydown: (event) => this.onKey(event) } };
    this.element = h("div", attributes, this.opener, this.box);
    const outside = ({ relatedTarget }) => relatedTarget && !this.element.contains(relatedTarget) && this.toggle(false);
    this.element.addEventListener("focusout", outside);
  }

  makeBox() {
    const list = h("ul", { class: "wb-views-list", "aria-label": "Saved views" });
    this.rows = new KeyedList(list, (id) => new ViewRow(id, this), {
      onRemove: (_, hadFocus) => hadFocus && this.name.focus(),
    });
    this.empty = h("p", { class: "wb-muted" }, "Save the search, filters and order of this table under a name.");
    this.name = input("", {
      class: "wb-input wb-grow",
      maxlength: 100,
      placeholder: "Name of this view",
      "aria-label": "Name under which the present view is saved",
      on: { input: () => this.drawSave() },
    });
    this.submit = h("button", { class: "wb-button", type: "submit" }, "Save");
    const save = form({}, { submit: () => this.save() }, h("div", { class: "wb-line" }, this.name, this.submit));
    const box = h("div", { class: "wb-views-box wb-stack", id: freshId("views"), role: "group", hidden: true });
    box.setAttribute("aria-label", "Saved views");
    box.append(this.empty, list, save, this.requests.errorBox);
    setAttribute(this.opener, "aria-controls", box.id);
    setAttribute(this.opener, "aria-expanded", "false");
    return box;
  }

  /** The saved views of the table, by name. @returns {any[]} */
  get views() {
    const all = [...this.desk.store.tables.saved_views.values()].filter(({ area }) => area === this.area);
    return all.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  }

  /** Bring it up to date. */
  update() {
    const { views } = this;
    const present = JSON.stringify(this.read());
    const current = views.find(({ state }) => JSON.stringify(state) === present);
    setText(this.label, current ? `View: ${current.name}` : "Views");
    this.opener.classList.toggle("wb-chosen", Boolean(current));
    if (this.box.hidden) return;
    const byId = new Map(views.map((view) => [view.id, view]));
    this.rows.show([...byId.keys()], (row, id) => row.show(byId.get(id), id === current?.id));
    this.empty.hidden = views.length > 0;
    this.drawSave();
  }

  toggle(open = this.box.hidden) {
    if (open === !this.box.hidden) return;
    this.box.hidden = !open;
    setAttribute(this.opener, "aria-expanded", open);
    this.requests.clearError();
    this.update();
    if (open) (this.box.querySelector(".wb-views-list button") ?? this.name).focus();
  }

  drawSave() {
    const isTaken = this.views.some(({ name }) => name === this.name.value.trim());
    if (!this.requests.busy) setText(this.submit, isTaken ? "Replace" : "Save");
    enable(this.name.value.trim() !== "", this.submit);
  }

  pick(view) {
    this.apply(view.state);
    this.toggle(false);
    this.update();
    this.opener.focus();
    this.desk.announce(`View ${view.name}.`);
  }

  async save() {
    const name = this.name.value.trim();
    if (!name) return;
    const replace = this.views.some((view) => view.name === name);
    const args = { area: this.area, name, state: this.read(), replace };
    if (!(await this.requests.run("save_view", args, this.submit, "Saving…"))) return;
    this.name.value = "";
    this.drawSave();
    this.desk.announce(`View ${name} is saved.`);
  }

  async remove({ id, name }) {
    if (!(await this.requests.run("delete_saved_view", { view_id: id }))) return;
    offerUndo(this.element, {
      text: `View ${name} deleted.`,
      changes: [{ subject: `saved_view:${id}`, kind: "saved_view.deleted" }],
    });
  }

  onKey(event) {
    if (event.key !== "Escape" || this.box.hidden || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    this.toggle(false);
    this.opener.focus();
  }
}

/** One saved view: its name, which picks it, and what can be done with it. */
class ViewRow {
  /** @param {number} id @param {SavedViews} of */
  constructor(id, of) {
    this.of = of;
    this.pick = button("", "wb-views-name wb-cut wb-grow", () => of.pick(this.view));
    this.rename = button("Rename", "wb-link wb-quiet", () => this.edit(true));
    this.remove = button("Delete", "wb-link wb-quiet", () => of.remove(this.view));
    this.line = h("div", { class: "wb-line" }, this.pick, this.rename, this.remove);
    this.name = input("", { class: "wb-input wb-grow", maxlength: 100 });
    const save = h("button", { class: "wb-button", type: "submit" }, "Rename");
    const on = { submit: () => this.submit(save), escape: () => this.edit(false) };
    this.form = form({ hidden: true }, on, h("div", { class: "wb-line" }, this.name, save));
    this.elements = [h("li", {}, this.line, this.form)];
  }

  /** @param {any} view @param {boolean} chosen whether the table shows it */
  show(view, chosen) {
    this.view = view;
    setText(this.pick, view.name);
    setAttribute(this.pick, "aria-pressed", chosen);
    setAttribute(this.rename, "aria-label", `Rename ${view.name}`);
    setAttribute(this.remove, "aria-label", `Delete ${view.name}`);
    setAttribute(this.name, "aria-label", `New name of ${view.name}`);
  }

  edit(open) {
    this.form.hidden = !open;
    this.line.hidden = open;
    if (open) this.name.value = this.view.name;
    (open ? this.name : this.rename).focus();
  }

  async submit(pressed) {
    const args = { view_id: this.view.id, name: this.name.value.trim() };
    if (args.name && (await this.of.requests.run("rename_saved_view", args, pressed, "Renaming…"))) this.edit(false);
  }
}
