/** One rule, reference, tool, provider or server: its form, and deleting it. A new one has no name yet. */

import { askIn } from "../lib/confirm.js";
import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { DraftForm } from "./draft_form.js";
import { ITEMS } from "./items.js";
import { SECTIONS } from "./state.js";

export class ItemView {
  /**
   * @param {any} desk
   * @param {{target: string, section: string, name: string}} what `name` is "" for a new one
   * @param {any} definition as it was read
   * @param {import("./pane.js").Navigation} on
   */
  constructor(desk, what, definition, on) {
    const { section, name } = what;
    this.desk = desk;
    this.what = what;
    this.on = on;
    this.kind = ITEMS[section];
    this.noun = SECTIONS[section].one;
    this.isNew = !itemOf(definition, what);
    this.requests = new RequestRunner(desk);
    this.form = this.makeForm(definition);
    this.confirmBox = h("div", {});
    const title = this.isNew ? `New ${this.noun}${name ? `: ${name}` : ""}` : name;
    const heading = h("h4", { class: "wb-strong wb-wrap", tabindex: -1 }, title);
    const head = h("div", { class: "wb-line" }, heading, this.isNew ? null : this.deleteButton(name));
    this.about = h("p", { class: "wb-muted", hidden: !this.kind.about });
    const parts = [head, this.about, this.confirmBox, this.requests.errorBox, this.form.element];
    this.element = h("div", { class: "wb-stack" }, ...parts);
    this.update(definition);
  }

  makeForm(definition) {
    const { section, name } = this.what;
    const on = {
      requests: (changed, all) => [this.request(changed, all)],
      saved: (_, all) => this.onSaved(all),
      draft: () => this.on.draft(),
      cancel: this.isNew ? () => this.on.open(section) : undefined,
    };
    const label = this.isNew ? `New ${this.noun}` : `${this.noun} ${name}`;
    const submit = this.isNew ? `Add ${this.noun}` : "Save";
    return new DraftForm(this.desk, label, this.kind.fields(definition, name), on, submit);
  }

  get isChanged() {
    return this.form.isChanged;
  }

  focus() {
    this.form.focus();
  }

  deleteButton(name) {
    const ask = (event) => this.ask(event.currentTarget);
    return button(`Delete ${this.noun}…`, "wb-link wb-quiet wb-push", ask, `Delete ${this.noun}… ${name}`);
  }

  /** @param {any} definition as it is now */
  update(definition) {
    const item = itemOf(definition, this.what);
    if (this.kind.about) setText(this.about, this.kind.about(definition, this.what.name));
    if (item && !this.isNew) this.form.update(this.kind.values(item, this.form.fields));
  }

  request(changed, all) {
    const { add, update, key, verbs } = this.kind;
    const { name } = this.what;
    return this.isNew
      ? this.operation(verbs.add, add(all, name))
      : this.operation("update", { [key]: name, ...update(changed, all) });
  }

  /** @param {string} verb @param {object} more arguments @returns {[string, object]} */
  operation(verb, more) {
    return [`agent_${verb}_${this.kind.noun}`, { agentTarget: this.what.target, ...more }];
  }

  onSaved(all) {
    const { section, name: before } = this.what;
    const name = all.name || before;
    this.desk.announce(`${name || this.noun} is saved.`);
    if (this.isNew || name !== before) this.on.moved(`${section}/${before}`, name ? `${section}/${name}` : section);
    else this.on.changed();
  }

  ask(opener) {
    const { name } = this.what;
    const words = { label: `Delete ${name}`, consequence: `The ${this.noun} is removed from the definition.` };
    askIn(this.confirmBox, opener, words, (_, pressed) => this.remove(pressed));
  }

  async remove(pressed) {
    const { section, name } = this.what;
    const operation = this.operation(this.kind.verbs.remove, { [this.kind.key]: name });
    const outcome = await this.requests.run(...operation, pressed, "Deleting…");
    if (!outcome) return;
    this.desk.announce(`${name} is deleted.`);
    this.on.moved(`${section}/${name}`, section);
  }
}

function itemOf(definition, { section, name }) {
  return definition[section].find((item) => item.name === name);
}
