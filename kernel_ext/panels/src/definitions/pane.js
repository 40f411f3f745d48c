/** One definition, opened: its head with what can be done with all of it, and one of its places to read or edit. */

import { askIn } from "../lib/confirm.js";
import { button, enable } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { shortList } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { Problems } from "./problems.js";
import { HistoryView } from "./history_view.js";
import { ItemView } from "./item_view.js";
import { OverviewView } from "./overview_view.js";
import { PreviewView, PromptView } from "./prompt_view.js";
import { ProviderChoice, SectionView } from "./section_view.js";
import { Reading } from "./reading.js";
import { StartForm } from "./start_form.js";
import { parsePlace, placesOf } from "./state.js";
import { TrustBox } from "./trust_box.js";

/** Where the question of trust is shown: in the overview, and where the things are that it may be about. */
const TRUSTED_PLACES = new Set(["overview", "providers", "servers"]);

/**
 * What a view of a place can ask for.
 * @typedef {object} Navigation
 * @property {(place: string) => void} open
 * @property {() => Promise<void>} changed it has changed the definition: read it again
 * @property {(from: string, to: string) => void} moved it has changed it so that what was at one place is at another, or
 *   gone: read it again, and show the other place
 * @property {() => void} draft whether it has unsaved values may have changed
 */

export class DefinitionPane {
  /**
   * @param {any} desk
   * @param {{close: () => void, copy: (path: string) => void, open: (place: string) => void,
   *   deleted: (text: string) => void, draw: () => void}} on `draw`: what the tree shows has changed
   * @param {AbortSignal} signal
   */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.on = on;
    this.place = "overview";
    /** Views by path and place. Those with unsaved values stay when another place is opened. */
    this.views = new Map();
    this.requests = new RequestRunner(desk);
    const id = freshId("definition");
    this.title = h("h4", { class: "wb-pane-title", id, tabindex: -1 });
    this.path = h("span", { class: "wb-muted wb-grow wb-cut" });
    this.confirmBox = h("div", {});
    this.trust = new TrustBox(desk, () => this.reading.now());
    this.problems = new Problems((place) => on.open(place));
    this.content = h("div", {});
    this.element = h("section", { class: "wb-pane wb-stack wb-definition", "aria-labelledby": id, hidden: true });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.reading = new Reading(desk, this.element, () => this.onRead(), signal);
    const errors = [this.requests.errorBox, this.reading.requests.errorBox];
    this.element.append(
      this.head(),
      this.confirmBox,
      ...errors,
      this.trust.element,
      this.problems.element,
      this.content,
    );
  }

  head() {
    this.start = button("Start an agent…", "wb-button wb-compact", () => this.openStart());
    const copy = button("Copy…", "wb-button wb-compact", () => this.on.copy(this.row.id));
    this.remove = button("Delete…", "wb-button wb-compact", () => this.askDelete());
    const close = button("×", "wb-close", this.on.close, "Close the definition");
    const actions = h("div", { class: "wb-line" }, this.start, copy, this.remove);
    return h("div", { class: "wb-pane-head" }, this.title, this.path, actions, close);
  }

  /** The definition as it was read; null before that. */
  get definition() {
    return this.reading.definition;
  }

  /** Show a place of a definition. @param {any} row @param {string} place */
  show(row, place) {
    this.row = row;
    this.element.hidden = false;
    if (row.id !== this.reading.path) {
      this.confirmBox.replaceChildren();
      this.requests.clearError();
      this.content.replaceChildren();
      this.problems.show([], place);
      this.trust.clear();
      enable(false, this.start);
      this.reading.begin(row.id);
    }
    this.place = place;
    if (this.definition) this.draw();
  }

  hide() {
    this.reading.begin(null);
    this.element.hidden = true;
  }

  /** Bring up to date what is not read with it. @param {any} row @param {boolean} enabled whether decisions can be sent @param {number} now in ms */
  update(row, enabled, now) {
    this.row = row;
    setText(this.title, row.name);
    setText(this.path, row.id);
    if (!this.definition) return;
    this.trust.update(this.definition, enabled, now);
    this.view?.refresh?.(this.definition);
  }

  /** Events may be about this definition: read it again. */
  onEvents() {
    if (this.definition && this.desk.store.concerns(`definition:${this.definition.info.id}`)) this.reading.now();
  }

  onRead() {
    enable(true, this.start);
    for (const [key, view] of this.views) if (this.isOfThis(key)) view.update(this.definition);
    this.draw();
  }

  draw() {
    if (!this.exists(this.place) && !this.view?.isChanged && !this.moving)
      return this.on.open(parsePlace(this.place).section);
    this.dropUnchanged();
    const view = this.view ?? this.make(this.place);
    this.views.set(this.key(this.place), view);
    if (this.content.firstChild !== view.element) this.put(view);
    this.problems.show(this.definition.problems, this.place);
    this.trust.element.hidden = !TRUSTED_PLACES.has(parsePlace(this.place).section);
    return this.on.draw();
  }

  /** Put a view into the pane; it gets the focus if that was in the one before. */
  put(view) {
    const hadFocus = this.content.contains(document.activeElement);
    this.content.replaceChildren(view.element);
    if (hadFocus) view.focus();
  }

  /** Whether there is such a place, now or as something new. */
  exists(place) {
    const { section, name } = parsePlace(place);
    if (!name) return true;
    return section === "providers" || placesOf(this.definition).some(({ id }) => id === place);
  }

  make(place) {
    const { definition, desk } = this;
    const { section, name } = parsePlace(place);
    const target = this.row.id;
    const on = this.navigation();
    if (section === "overview") return new OverviewView(desk, target, definition, on);
    if (section === "prompt") return new PromptView(desk, target, definition, on);
    if (section === "preview") return new PreviewView(desk, definition);
    if (section === "history") return new HistoryView(desk, target, definition);
    if (name === null) return new SectionView(section, definition, on);
    if (place === "providers/") return new ProviderChoice(definition, on);
    return new ItemView(desk, { target, section, name }, definition, on);
  }

  /** @returns {Navigation} */
  navigation() {
    return {
      open: (place) => this.on.open(place),
      changed: () => this.reading.now(),
      moved: (from, to) => this.move(from, to),
      draft: () => this.on.draw(),
    };
  }

  /** Read the definition again; who is at the one place goes on at the other. */
  async move(from, to) {
    const left = this.key(from);
    this.moving = true;
    await this.reading.now();
    this.moving = false;
    this.views.delete(left);
    if (this.key(this.place) === left) this.on.open(to);
  }

  dropUnchanged() {
    for (const [key, view] of this.views) if (!view.isChanged && key !== this.key(this.place)) this.views.delete(key);
  }

  get view() {
    return this.views.get(this.key(this.place));
  }

  key(place) {
    return `${this.reading.path}\n${place}`;
  }

  isOfThis(key) {
    return key.startsWith(`${this.reading.path}\n`);
  }

  /** The places with unsaved values. @param {string} path @returns {Set<string>} */
  drafts(path) {
    const changed = [...this.views].filter(([key, view]) => view.isChanged && key.startsWith(`${path}\n`));
    return new Set(changed.map(([key]) => key.slice(path.length + 1)));
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.matches(".wb-input")) return;
    event.preventDefault();
    this.on.close();
  }

  openStart() {
    const form = new StartForm(this.desk, this.definition, (outcome) => this.closeStart(form, outcome));
    this.confirmBox.replaceChildren(form.element);
    form.focus();
  }

  closeStart(form, outcome) {
    if (form.element.isConnected) {
      this.confirmBox.replaceChildren();
      this.start.focus();
    }
    if (!outcome) return;
    const { agent_id: id, state, approval_id: approval } = outcome;
    const waits = approval ? " It waits for your approval in the inbox." : "";
    this.desk.announce(`${id} is ${state === "queued" ? "queued" : "started"}.${waits}`);
  }

  askDelete() {
    const { name, id } = this.row;
    const words = {
      label: `Delete ${name}`,
      consequence: `The files of the definition in ${id} are deleted. Other files in that directory stay.`,
    };
    askIn(this.confirmBox, this.remove, words, (_, pressed) => this.delete(pressed));
  }

  async delete(pressed) {
    const { id } = this.row;
    const outcome = await this.requests.run("agent_delete", { agentTarget: id, confirm: true }, pressed, "Deleting…");
    if (!outcome) return;
    for (const key of this.views.keys()) if (key.startsWith(`${id}\n`)) this.views.delete(key);
    const { message, left } = outcome;
    const text = left.length ? `${message} These files stay in ${id}: ${shortList(left)}.` : message;
    const isLeft = this.reading.path !== null && this.reading.path !== id; // another one was opened meanwhile
    if (isLeft) this.desk.announce(text);
    else this.on.deleted(text);
  }
}
