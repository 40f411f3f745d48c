/** What a peer may call here, and how often. */

import { Segments, enable, input } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { KeyedList } from "../lib/keyed_list.js";
import { RequestRunner } from "../link/request_runner.js";
import { isOwn } from "./peers.js";
import { toolName } from "../tools/state.js";

const CHOICES = { always: "Always", ask: "Ask me", never: "Never" };
/** All tools that nothing else is decided about. */
const OTHERS = "*";
/** The choice of a tool that nothing is decided about. */
const UNDECIDED = "undecided";

export class PeerPermissions {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.list = h("ul", { class: "wb-entries wb-peer-permissions", "aria-label": "What it may call" });
    this.rows = new KeyedList(this.list, (trait) => new PermissionRow(desk, trait, (now) => this.show(this.peer, now)));
    this.element = h(
      "div",
      { class: "wb-stack", hidden: true },
      h("div", { class: "wb-label" }, "What it may call, and how often a minute"),
      this.list,
    );
  }

  /** @param {string} peer its RID @param {any[]} permissions that were decided */
  show(peer, permissions) {
    this.peer = peer;
    this.decided = new Map(permissions.map((permission) => [permission.trait, permission]));
    this.update(this.enabled, this.isBlocked);
  }

  /** The tools of this project's own personalities. @returns {string[]} */
  get own() {
    const rows = [...this.desk.store.tables.personalities.values()].filter(isOwn);
    return rows.flatMap(({ name, tools }) => tools.map((trait) => toolName(name, trait)));
  }

  /** @param {boolean} enabled whether requests can be sent @param {boolean} isBlocked it may call nothing */
  update(enabled, isBlocked) {
    this.isBlocked = isBlocked;
    this.enabled = enabled;
    this.element.hidden = !this.decided || isBlocked;
    if (!this.decided) return;
    const names = new Set([...this.own, ...this.decided.keys()]);
    names.delete(OTHERS);
    const draw = (row, trait) => row.show(this.peer, this.decided.get(trait) ?? null, enabled);
    this.rows.show([...[...names].sort(), OTHERS], draw);
  }
}

/** One tool, or all others. */
class PermissionRow {
  /** @param {any} desk @param {string} trait @param {(permissions: any[]) => void} onSaved what is decided now */
  constructor(desk, trait, onSaved) {
    this.onSaved = onSaved;
    this.desk = desk;
    this.trait = trait;
    this.label = trait === OTHERS ? "All other tools" : trait;
    this.requests = new RequestRunner(desk);
    const choices = trait === OTHERS ? CHOICES : { [UNDECIDED]: "As others", ...CHOICES };
    const choose = (chosen) => this.save({ permission: chosen === UNDECIDED ? null : chosen });
    this.segments = new Segments(choices, `Permission to call ${this.label}`, choose);
    this.rate = input("", {
      class: "wb-input wb-rate",
      inputmode: "numeric",
      "aria-label": `Calls of ${this.label} a minute`,
      on: { change: () => this.saveRate(), keydown: (event) => event.key === "Enter" && this.saveRate() },
    });
    const name =
      trait === OTHERS ? h("span", { class: "wb-wrap" }, this.label) : h("code", { class: "wb-wrap" }, this.label);
    const controls = h("div", { class: "wb-line" }, this.segments.element, this.rate);
    this.element = h("li", { class: "wb-stack" }, name, controls, this.requests.errorBox);
    this.elements = [this.element];
  }

  /** @param {string} peer @param {any|null} decided about it @param {boolean} enabled whether requests can be sent */
  show(peer, decided, enabled) {
    this.peer = peer;
    this.decided = decided;
    enable(enabled, ...Object.values(this.segments.buttons));
    this.segments.show(decided?.permission ?? (this.trait === OTHERS ? "ask" : UNDECIDED));
    this.rate.hidden = !decided || decided.permission === "never";
    this.saved = decided?.calls_per_minute ?? null;
    if (document.activeElement !== this.rate && !this.requests.busy) this.rate.value = String(this.saved ?? "");
  }

  saveRate() {
    const calls = Number(this.rate.value.trim() || NaN);
    if (calls === this.saved) return;
    const isRight = Number.isSafeInteger(calls) && calls >= 1;
    this.rate.setAttribute("aria-invalid", String(!isRight));
    if (isRight) this.save({ calls_per_minute: calls });
    else this.requests.showError({ code: "INVALID_ARGUMENTS", message: "Type a whole number of calls a minute." });
  }

  /** Decide about it; without a permission, what holds for all others holds for it again. */
  async save(change) {
    const { permission } = this.decided ?? { permission: null };
    const args = { peer: this.peer, trait: this.trait, permission, ...change };
    const outcome = await this.requests.run("set_peer_permission", args);
    if (!outcome) return;
    const { permission: decided } = outcome.permissions.find(({ trait }) => trait === this.trait) ?? {};
    this.desk.announce(`${this.label}: ${decided ? CHOICES[decided].toLowerCase() : "as all others"}.`);
    this.onSaved(outcome.permissions);
  }
}
