/** A form for something that others may change meanwhile: it shows what is saved until a person changes it. */

import { message } from "../lib/blocks.js";
import { button, enable, field, form } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

/** A field: its label and its control; a long one takes two columns, a wide one all. @typedef {{label: string, control: any, long?: boolean, wide?: boolean}} Field */

/** A value that cannot be sent, and the field it is in. */
export class FieldError extends Error {
  /** @param {string} name of the field @param {string} text */
  constructor(name, text) {
    super(text);
    this.code = "VALIDATION_ERROR";
    this.details = { problems: [{ field: name }] };
  }
}

export class DraftForm {
  /**
   * @param {any} desk
   * @param {string} name for screen readers
   * @param {Record<string, Field>} fields
   * @param {{requests: (changed: Record<string, string>, all: Record<string, string>) => [string, object][],
   *   saved: (outcomes: any[], all: Record<string, string>) => void, draft: () => void, cancel?: () => void}} on
   *   `requests`: the operations that save what was changed, in their order; `draft`: there are unsaved values, or none
   * @param {string} [label] of the button
   */
  constructor(desk, name, fields, on, label = "Save") {
    this.fields = fields;
    this.on = on;
    this.runner = new RequestRunner(desk);
    this.saved = this.values();
    this.newest = this.saved;
    /** Whether a value that the person has changed was changed elsewhere too. */
    this.overtaken = false;
    /** Whether the changes are being saved, one after the other: what is read meanwhile has some of them. */
    this.isSaving = false;
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, label);
    this.discard = button(on.cancel ? "Cancel" : "Discard changes", "wb-button", () => this.reset());
    this.note = h("div", { hidden: true });
    this.buttons = h("div", { class: "wb-line" }, this.submit, this.discard);
    this.element = form(
      { class: "wb-stack wb-roomy", "aria-label": name },
      { submit: () => this.save(), escape: on.cancel },
      ...this.layout(),
      this.note,
      this.buttons,
      this.runner.errorBox,
    );
    for (const event of ["input", "change"]) this.element.addEventListener(event, () => this.drawButtons());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.drawButtons();
  }

  layout() {
    const fields = Object.values(this.fields).map(({ label, control, long, wide }) => {
      const element = field(label, control);
      element.classList.toggle("wb-long", Boolean(long));
      element.classList.toggle("wb-wide", Boolean(wide));
      return element;
    });
    return [h("div", { class: "wb-fields wb-draft-fields" }, ...fields)];
  }

  focus() {
    Object.values(this.fields)[0].control.focus();
  }

  values() {
    return Object.fromEntries(Object.entries(this.fields).map(([name, { control }]) => [name, control.value]));
  }

  /** The values that differ from what is saved. */
  changes() {
    return Object.fromEntries(Object.entries(this.values()).filter(([name, value]) => value !== this.saved[name]));
  }

  get isChanged() {
    return Object.keys(this.changes()).length > 0;
  }

  /**
   * Take what is saved now. Values that a person has changed stay; a note says when one of them was changed elsewhere.
   * @param {Record<string, string>} saved
   */
  update(saved) {
    if (this.isSaving) {
      this.newest = saved;
      return;
    }
    for (const [name, { control }] of Object.entries(this.fields)) {
      const isKept = control.value !== this.saved[name] && control.value !== saved[name];
      if (isKept && saved[name] !== this.saved[name]) this.overtaken = true;
      if (!isKept) this.set(name, saved[name]);
    }
    this.newest = saved;
    this.drawNote();
    this.drawButtons();
  }

  /** Show a saved value. */
  set(name, value) {
    const { control } = this.fields[name];
    if (control.value !== value) control.value = value;
    this.saved[name] = control.value; // as the control holds it: a choice may not have the value
  }

  /** Show what is saved instead of what a person has typed. */
  reset() {
    if (this.on.cancel) return this.on.cancel();
    this.runner.clearError();
    this.mark(null);
    this.settle(this.newest);
    return this.focus();
  }

  /** Show these values as the saved ones. */
  settle(values) {
    for (const name of Object.keys(this.fields)) this.set(name, values[name]);
    this.newest = this.saved;
    this.overtaken = false;
    this.drawNote();
    this.drawButtons();
  }

  /** These values are saved. What was typed since they were sent stays a change. */
  acknowledge(sent) {
    this.saved = { ...sent };
    this.newest = this.saved;
    this.overtaken = false;
    this.drawNote();
    this.drawButtons();
  }

  drawButtons() {
    const { isChanged } = this;
    enable(isChanged || Boolean(this.on.cancel), this.submit);
    this.discard.hidden = !isChanged && !this.on.cancel;
    this.on.draft();
  }

  drawNote() {
    this.note.hidden = !this.overtaken;
    if (!this.overtaken || this.note.hasChildNodes()) return;
    const text =
      "It was changed elsewhere while you were editing. Saving replaces those changes; discarding shows them.";
    this.note.replaceChildren(message("warning", text));
  }

  async save() {
    if (this.runner.busy || (!this.on.cancel && !this.isChanged)) return;
    this.mark(null);
    let requests;
    try {
      requests = this.on.requests(this.changes(), this.values());
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      this.refuse(error);
      return;
    }
    const all = this.values();
    this.isSaving = true;
    const outcomes = await this.runAll(requests);
    this.isSaving = false;
    if (!outcomes) {
      this.update(this.newest); // those before the one that was refused are saved
      return;
    }
    this.acknowledge(all);
    this.on.saved(outcomes, all);
  }

  /** Run the requests one after the other, up to the first that is refused. @returns {Promise<any[]|null>} */
  async runAll(requests) {
    const outcomes = [];
    for (const [op, args] of requests) {
      const outcome = await this.runner.run(op, args, this.submit, "Saving…");
      if (!outcome) {
        this.refuse(this.runner.error, args);
        return null;
      }
      outcomes.push(outcome);
    }
    return outcomes;
  }

  /** Show an error, at its field if it names one. */
  refuse(error, args = {}) {
    if (error !== this.runner.error) this.runner.showError(error);
    const place = error?.details?.problems?.[0]?.field ?? error?.details?.key ?? args.key ?? "";
    const parts = String(place).split(".");
    this.mark(Object.keys(this.fields).find((name) => parts.includes(name)) ?? null);
  }

  /** Mark the field that an error is about, and no other. @param {string|null} wrong */
  mark(wrong) {
    for (const [name, { control }] of Object.entries(this.fields)) {
      if (name !== wrong) {
        control.removeAttribute("aria-invalid");
        control.removeAttribute("aria-describedby");
        continue;
      }
      control.setAttribute("aria-invalid", "true");
      control.setAttribute("aria-describedby", this.runner.errorBox.id);
      control.focus();
    }
  }

  onKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would run the cell
    this.element.requestSubmit();
  }
}
