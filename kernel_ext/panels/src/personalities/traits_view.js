/** The traits of a personality that are no tools; its owner edits those that were set by hand. */

import { button, enable } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { TraitsForm, shortValue } from "./traits_form.js";
import { isOwn } from "../network/peers.js";
import { isLatest } from "./state.js";
import { longText } from "../contents/values.js";

const LONG = 120;

export class TraitsView {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.editButton = button("Edit…", "wb-button", () => this.edit());
    this.list = h("dl", { class: "wb-trait-list" });
    this.formBox = h("div", {});
    const heading = h("h4", { class: "wb-strong wb-grow" }, "Traits");
    const line = h("div", { class: "wb-line" }, heading, this.editButton);
    this.element = h("div", { class: "wb-stack" }, line, this.requests.errorBox, this.formBox, this.list);
  }

  clear() {
    this.form = null;
    this.drawn = null;
    this.formBox.replaceChildren();
    this.list.hidden = false;
  }

  /** @param {any} personality as `get_personality` gives it @param {boolean} enabled whether requests can be sent */
  show(personality, enabled) {
    this.personality = personality;
    const traits = personality.profile.traits.filter(({ is_callable: tool }) => !tool);
    const key = JSON.stringify(traits);
    if (key !== this.drawn) this.list.replaceChildren(...this.entries(traits));
    this.drawn = key;
    this.enable(enabled);
  }

  /** @param {boolean} enabled whether requests can be sent, and it was not forgotten */
  enable(enabled) {
    const { personality } = this;
    this.editButton.hidden = !isOwn(personality) || !isLatest(personality) || Boolean(this.form);
    enable(enabled, this.editButton);
    this.form?.enable(enabled);
  }

  entries(traits) {
    if (!traits.length) return [h("p", { class: "wb-muted" }, "It has no traits besides its tools.")];
    return traits.flatMap((trait) => [
      h("dt", { class: "wb-wrap", title: trait.type }, trait.name),
      h("dd", {}, this.value(trait), trait.description ? h("div", { class: "wb-label" }, trait.description) : null),
    ]);
  }

  value({ name, value }) {
    const text = typeof value === "string" ? value : shortValue(value);
    if (text.length <= LONG && !text.includes("\n")) return h("span", { class: "wb-wrap" }, text);
    const whole = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return longText(whole, `Copy ${name}`, this.desk.announce);
  }

  /** Open the form, with the traits that were set by hand. */
  async edit() {
    const { name } = this.personality;
    const own = await this.requests.run("get_own_personality", { name }, this.editButton, "Reading…");
    if (!own || name !== this.personality.name) return;
    this.form = new TraitsForm(this.desk, own, (saved) => this.closeForm(saved));
    this.list.hidden = true;
    this.editButton.hidden = true;
    this.formBox.replaceChildren(this.form.element);
    this.form.focus();
  }

  closeForm(saved) {
    const { personality } = this;
    this.clear();
    this.show(
      saved ? { ...personality, profile: { ...personality.profile, traits: saved.traits } } : personality,
      true,
    );
    this.editButton.focus();
  }
}
