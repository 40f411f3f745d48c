/** A form for the traits that are set by hand: change, add, remove. The type of a trait stays. */

import { errorContent } from "../lib/blocks.js";
import { button, enable, form, formButtons, input, select, textarea } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { json } from "../tools/json_schema.js";

export class TraitsForm {
  /** @param {any} desk @param {any} own as `get_own_personality` gives it @param {(saved: any|null) => void} onDone null: it was cancelled */
  constructor(desk, own, onDone) {
    this.desk = desk;
    this.name = own.name;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    const byHand = new Set(own.set_by_hand);
    const isTaken = (name) => own.functions.includes(name);
    const traits = own.traits.filter(({ name }) => byHand.has(name) && !isTaken(name));
    const isMore = own.traits.some(({ name }) => !byHand.has(name) && !isTaken(name));
    this.rows = traits.map((trait) => new TraitRow(trait, () => {}));
    this.list = h("div", { class: "wb-stack" }, ...this.rows.map(({ element }) => element));
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Save");
    const cancel = () => onDone(null);
    const others = "Traits from its definition and its persona are changed there.";
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": `Traits of ${this.name}` },
      { submit: () => this.save(), escape: cancel },
      this.list,
      button("Add a trait", "wb-link", () => this.add()),
      isMore ? h("p", { class: "wb-label" }, others) : null,
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
    if (!traits.length) this.add();
  }

  focus() {
    this.rows[0].focus();
  }

  /** @param {boolean} enabled whether requests can be sent */
  enable(enabled) {
    if (!this.requests.busy) enable(enabled, this.submit);
  }

  add() {
    const row = new TraitRow(null, () => {
      this.rows = this.rows.filter((other) => other !== row);
      row.element.remove();
      this.submit.focus();
    });
    this.rows.push(row);
    this.list.append(row.element);
    row.focus();
  }

  /** Send what has changed. */
  async save() {
    const traits = this.changes();
    if (!traits) return;
    if (!Object.keys(traits).length) {
      this.onDone(null);
      return;
    }
    const saved = await this.requests.run("update_traits", { name: this.name, traits }, this.submit, "Saving…");
    if (!saved) return;
    this.desk.announce(`${this.name}: saved.`);
    this.onDone(saved);
  }

  /** The changed traits by name, null for one that is removed; or null when something cannot be sent, which is shown. */
  changes() {
    const rows = this.rows.filter((row) => !row.isEmpty);
    const read = rows.map((row) => row.read(this.rows));
    const wrong = rows.find((row) => row.isWrong);
    wrong?.focus();
    return wrong ? null : Object.fromEntries(read.filter(Boolean));
  }
}

/** One trait in the form. */
class TraitRow {
  /** @param {any|null} trait null: a new one @param {() => void} onDrop a new one is not added after all */
  constructor(trait, onDrop) {
    this.trait = trait;
    this.onDrop = onDrop;
    this.isRemoved = false;
    this.isWrong = false;
    this.name = trait ? h("span", { class: "wb-strong wb-wrap" }, trait.name) : this.nameField();
    const label = trait ? (TYPES[trait.type] ?? trait.type) : null;
    this.type = trait ? h("span", { class: "wb-label" }, label) : this.typeChoice();
    this.place = h("div", { class: "wb-trait-value" });
    this.removeButton = button(
      "Remove",
      "wb-link wb-quiet",
      () => this.remove(),
      trait ? `Remove ${trait.name}` : "Remove the new trait",
    );
    this.problem = h("div", { class: "wb-message wb-error", id: freshId("problem"), hidden: true });
    this.initial = trait ? textOf(trait.type, trait.value) : "";
    this.drawControl(this.initial);
    this.about = input(trait?.description ?? "", {
      class: "wb-input wb-trait-about",
      maxlength: 8_000,
      placeholder: "Description (optional)",
      "aria-label": `Description of ${trait?.name ?? "the new trait"}`,
    });
    const parts = [this.name, this.type, this.removeButton, this.place, this.about, this.problem];
    this.element = h(
      "div",
      { class: "wb-trait-row", role: "group", "aria-label": trait?.name ?? "New trait" },
      ...parts,
    );
  }

  nameField() {
    return input("", { maxlength: 128, placeholder: "Name", "aria-label": "Name of the trait" });
  }

  typeChoice() {
    const on = { change: () => this.drawControl(this.control.value) };
    return select(Object.entries(TYPES), "str", { "aria-label": "Type of the trait", on });
  }

  get typeName() {
    return this.trait?.type ?? this.type.value;
  }

  /** Nothing was typed into a new one. */
  get isEmpty() {
    return !this.trait && !this.name.value.trim() && !this.control.value.trim();
  }

  drawControl(text) {
    this.control = controlOf(this.typeName, text);
    const name = this.trait?.name ?? "the new trait";
    this.control.setAttribute("aria-label", `Value of ${name}`);
    this.control.setAttribute("aria-describedby", this.problem.id);
    this.place.replaceChildren(this.control);
  }

  focus() {
    (this.trait || this.name.value ? this.control : this.name).focus();
  }

  /** Remove it when the form is saved, or keep it after all. */
  remove() {
    if (!this.trait) return this.onDrop();
    this.isRemoved = !this.isRemoved;
    this.element.classList.toggle("wb-removing", this.isRemoved);
    this.control.disabled = this.isRemoved;
    return setText(this.removeButton, this.isRemoved ? "Keep" : "Remove");
  }

  /** The name and the change, null to remove it. @param {TraitRow[]} all @returns {[string, object|null]|null} null: unchanged, or wrong */
  read(all) {
    this.mark(null);
    const name = this.trait?.name ?? this.name.value.trim();
    if (this.isRemoved) return [name, null];
    const description = this.about.value.trim();
    const isSame = this.control.value === this.initial && description === (this.trait?.description ?? "");
    if (this.trait && isSame) return null;
    try {
      if (!this.trait) checkName(name, this, all);
      const value = valueOf(this.typeName, this.control.value);
      const { is_callable: callable = false } = this.trait ?? {};
      return [name, { type: this.typeName, value, is_callable: callable, description }];
    } catch (error) {
      this.mark(error);
      return null;
    }
  }

  mark(error) {
    this.isWrong = error !== null;
    this.problem.hidden = !this.isWrong;
    this.control.setAttribute("aria-invalid", String(this.isWrong));
    if (error) this.problem.replaceChildren(...errorContent(error).slice(0, 1), h("span", {}, error.message));
  }
}

function checkName(name, row, all) {
  if (!name) throw new Error("Give the trait a name.");
  const isTaken = all.some((other) => other !== row && (other.trait?.name ?? other.name.value.trim()) === name);
  if (isTaken) throw new Error("There is a trait with this name.");
}

function controlOf(type, text) {
  if (type === "bool")
    return select(
      [
        ["true", "Yes"],
        ["false", "No"],
      ],
      text === "true" ? "true" : "false",
    );
  if (type === "int" || type === "float") return input(text, { inputmode: "decimal" });
  const lines = Math.min(8, text.split("\n").length);
  const isProse = type === "str";
  return textarea(text, lines, { class: `wb-input wb-area wb-short-area${isProse ? " wb-prose-area" : ""}` });
}

/** Labels of the types that can be chosen. Others are typed as JSON. */
const TYPES = {
  str: "Text",
  int: "Whole number",
  float: "Number",
  bool: "Yes or no",
  list: "List (JSON)",
  dict: "Object (JSON)",
};

const READ = {
  str: (text) => text,
  int: (text) => number(text, Number.isSafeInteger, "Type a whole number."),
  float: (text) => number(text, Number.isFinite, "Type a number."),
  bool: (text) => text === "true",
  list: (text) => checked(json(text), Array.isArray, 'Type a list, such as ["a", "b"].'),
  dict: (text) => checked(json(text), isObject, 'Type an object, such as {"a": 1}.'),
};

/** The text with which a value is typed. @param {string} type @param {unknown} value @returns {string} */
function textOf(type, value) {
  if (type === "str" && typeof value === "string") return value;
  return type in TYPES && isScalar(value) ? String(value) : JSON.stringify(value ?? null, null, 2);
}

/** The value that was typed. @param {string} type @param {string} text @returns {unknown} @throws {Error} what is wrong */
function valueOf(type, text) {
  return (READ[type] ?? json)(text);
}

/** A value in one line, to be read. @param {unknown} value @returns {string} */
export function shortValue(value) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.every(isScalar)) return value.join(", ") || "nothing";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function number(text, isRight, problem) {
  return checked(Number(text.trim() || NaN), isRight, problem);
}

function checked(value, isRight, problem) {
  if (!isRight(value)) throw new Error(problem);
  return value;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value) {
  return value !== null && typeof value !== "object";
}
