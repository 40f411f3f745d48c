/** How a personality has changed: its versions and what each changed, and the difference between any two of them. */

import { button, select, setOptions } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { dateTime, oneLine, plural } from "../lib/format.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { CHANGES } from "./state.js";

/** Longer values are cut at first. */
const LONG = 400;

export class ChangesView {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.list = h("ul", { class: "wb-entries", "aria-label": "History" });
    this.from = select([], "", { class: "wb-input wb-version-choice", "aria-label": "Version to compare" });
    this.to = select([], "", { class: "wb-input wb-version-choice", "aria-label": "Version to compare it with" });
    const compare = button("Compare", "wb-button", () => this.compare());
    this.line = h("div", { class: "wb-line" }, this.from, h("span", { class: "wb-muted" }, "with"), this.to, compare);
    this.difference = h("div", { "aria-live": "polite" });
    const heading = h("h4", { class: "wb-strong" }, "History");
    this.element = h(
      "div",
      { class: "wb-stack" },
      heading,
      this.requests.errorBox,
      this.list,
      this.line,
      this.difference,
    );
  }

  /** @param {string} name */
  open(name) {
    this.name = name;
    this.drawn = null;
    this.list.replaceChildren();
    this.line.hidden = true;
    this.difference.replaceChildren();
    const onError = (error) => this.requests.showError(error);
    this.reading = new Refresh(() => this.read(name), onError);
  }

  close() {
    this.reading?.stop();
  }

  refresh() {
    this.reading.now();
  }

  async read(name) {
    const { changes } = await this.requests.send("list_personality_changes", { name });
    if (name !== this.name) return;
    this.requests.clearError();
    const key = JSON.stringify(changes);
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.hidden = !changes.length;
    this.list.replaceChildren(...changes.map((change) => this.entry(change)));
  }

  entry({ event_type: type, version, origin_name: origin, at, since, difference }) {
    const below = h("div", { class: "wb-version wb-slim", hidden: true });
    const title = `${CHANGES[type]} ${version}`;
    const facts = [dateTime(at), `from ${origin}`, since && since !== version ? `compared with ${since}` : null];
    const text = facts.filter(Boolean).join(" · ");
    const line = h("div", { class: "wb-entry" }, h("span", { class: "wb-strong wb-wrap" }, title));
    line.append(h("span", { class: "wb-muted wb-grow wb-cut", title: text }, text));
    if (difference && since) line.append(this.opener(title, changesIn(difference), below));
    return h("li", {}, line, below);
  }

  opener(title, differences, below) {
    const press = () => {
      below.hidden = !below.hidden;
      setAttribute(opener, "aria-expanded", !below.hidden);
      if (!below.hasChildNodes()) below.append(changeList(differences));
    };
    const opener = button("Changes", "wb-link wb-quiet", press, `Changes: ${title}`);
    opener.setAttribute("aria-expanded", "false");
    return opener;
  }

  /** Any two versions can be compared. @param {string[]} versions the latest first */
  show(versions) {
    this.line.hidden = versions.length < 2;
    const options = [["", versions.map((version) => [version, version])]];
    setOptions(this.from, options, this.from.value || versions[1]);
    setOptions(this.to, options, this.to.value || versions[0]);
  }

  async compare() {
    const [from, to] = [this.from.value, this.to.value];
    const read = (version) => this.requests.send("get_personality", { name: this.name, version });
    try {
      const [before, after] = [await read(from), await read(to)];
      if (this.from.value !== from || this.to.value !== to) return;
      this.requests.clearError();
      const changes = traitChanges(before.profile.traits, after.profile.traits);
      const none = h("p", { class: "wb-muted" }, "Their traits do not differ.");
      this.difference.replaceChildren(changes.length ? changeList(changes) : none);
    } catch (error) {
      this.requests.showError(error);
    }
  }
}

/** @param {{path: string, before: unknown, after: unknown}[]} changes */
function changeList(changes) {
  const entry = ({ path, before, after }) =>
    h("li", {}, h("code", { class: "wb-wrap" }, path), line("removed", before), line("added", after));
  return h("ul", { class: "wb-changes" }, ...changes.map(entry));
}

function line(side, value) {
  if (value === null || value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const content = h("span", {}, oneLine(text, LONG));
  const all = button(`Show all ${plural(text.length, "character")}`, "wb-link", () => {
    setText(content, text);
    all.remove();
  });
  const parts = [h("span", { class: "wb-sr" }, `${side}: `), content];
  if (text.length > LONG) parts.push(" ", all);
  return h("div", { class: `wb-diff-${side} wb-prose` }, ...parts);
}

/** What is compared of a trait, with labels. */
const PARTS = {
  value: "value",
  description: "description",
  type: "type",
  is_callable: "can be called",
  input_schema: "arguments",
  output_schema: "result",
  version: "version of the function",
  read_only: "only reads",
};

/**
 * @typedef {{path: string, before: unknown, after: unknown}} Change null: it was not there
 * @param {any[]} before traits @param {any[]} after traits
 * @returns {Change[]}
 */
function traitChanges(before, after) {
  const [old, fresh] = [before, after].map((traits) => new Map(traits.map((trait) => [trait.name, trait])));
  return [...new Set([...old.keys(), ...fresh.keys()])].flatMap((name) =>
    changesOf(name, old.get(name), fresh.get(name)),
  );
}

function changesOf(name, before, after) {
  if (!before || !after) return [{ path: name, before: summary(before), after: summary(after) }];
  return Object.entries(PARTS)
    .filter(([part]) => JSON.stringify(before[part] ?? null) !== JSON.stringify(after[part] ?? null))
    .map(([part, label]) => ({ path: `${name}: ${label}`, before: before[part] ?? null, after: after[part] ?? null }));
}

/** A trait that was added or removed, in a line. */
function summary(trait) {
  if (!trait) return null;
  return trait.is_callable ? trait.description || "a tool" : trait.value;
}

/**
 * The changes in a difference, as `list_personality_changes` gives it.
 * @param {{added: any[], removed: any[], changed: {name: string, fields: any[]}[], fields: any[]}} difference
 * @returns {Change[]}
 */
function changesIn({ added, removed, changed, fields }) {
  return [
    ...added.map((trait) => ({ path: trait.name, before: null, after: summary(trait) })),
    ...removed.map((trait) => ({ path: trait.name, before: summary(trait), after: null })),
    ...changed.flatMap(({ name, fields: parts }) =>
      parts.map(({ name: part, before, after }) => ({ path: `${name}: ${PARTS[part] ?? part}`, before, after })),
    ),
    ...fields.map(({ name, before, after }) => ({ path: name, before, after })),
  ];
}
