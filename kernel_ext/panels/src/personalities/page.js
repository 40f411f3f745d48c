/** One personality, opened: its traits and tools, where it comes from, how it has changed, and what its owner can do. */

import { askIn } from "../lib/confirm.js";
import { button, enable, select, setOptions } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { ChangesView } from "./changes_view.js";
import { TraitsView } from "./traits_view.js";
import { ToolList } from "./tool_list.js";
import { byName, isOwn, nodeName } from "../network/peers.js";
import { FRESHNESS, freshnessText, ownerBadge } from "./state.js";
import { Facts } from "../lib/blocks.js";
import { dateTime } from "../lib/format.js";

export class PersonalityPage {
  /** @param {any} desk @param {{close: () => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    const id = freshId("personality");
    this.confirmBox = h("div", {});
    const forgotten =
      "This personality is no longer known here: it was withdrawn, or its node is blocked. Below is its last state.";
    this.note = h("p", { class: "wb-muted", hidden: true }, forgotten);
    const attributes = { class: "wb-stack wb-roomy", role: "region", "aria-labelledby": id, hidden: true };
    const boxes = [this.confirmBox, this.requests.errorBox, this.reader.errorBox, this.note];
    this.element = h("div", attributes, this.head(id), ...boxes, this.body());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  head(id) {
    this.title = h("h3", { class: "wb-heading wb-cut", id, tabindex: -1 });
    this.badge = h("span", { class: "wb-source" });
    this.fresh = h("span", { class: "wb-muted wb-grow wb-cut" });
    const change = () => this.choose(this.version.value);
    this.version = select([], "", { class: "wb-input wb-narrow", "aria-label": "Version", on: { change } });
    this.withdrawButton = button("Withdraw…", "wb-button", () => this.askWithdraw());
    this.releaseButton = button("Release name…", "wb-button", () => this.askRelease());
    const back = button("‹ Personalities", "wb-button", this.on.close, "Back to all personalities");
    const actions = [this.withdrawButton, this.releaseButton];
    return h("div", { class: "wb-line" }, back, this.title, this.version, this.badge, this.fresh, ...actions);
  }

  body() {
    this.traits = new TraitsView(this.desk);
    this.tools = new ToolList(this.desk);
    this.provenance = new Provenance();
    this.changes = new ChangesView(this.desk);
    const left = h("div", { class: "wb-stack wb-apart" }, this.traits.element, this.tools.element);
    const right = h("div", { class: "wb-stack wb-apart" }, this.provenance.element, this.changes.element);
    this.columns = h("div", { class: "wb-personality-columns" }, left, right);
    return this.columns;
  }

  /** @param {string} name */
  open(name) {
    this.name = name;
    /** The version that was chosen; null: always the latest. @type {string|null} */
    this.chosen = null;
    this.row = null;
    this.personality = null;
    setText(this.title, name);
    this.confirmBox.replaceChildren();
    this.requests.clearError();
    this.columns.hidden = true;
    this.version.hidden = true;
    this.traits.clear();
    this.tools.clear();
    this.changes.open(name);
    const onError = (error) => this.reader.showError(error);
    this.reading = new Refresh(() => this.read(name), onError);
    this.element.hidden = false;
  }

  close() {
    this.reading?.stop();
    this.tools.clear();
    this.changes.close();
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  async read(name) {
    const isUnpublished = this.row?.provenance.freshness === "unpublished";
    const personality = await (isUnpublished ? this.readOwn(name) : this.readPublished(name));
    if (name !== this.name) return;
    this.reader.clearError();
    this.personality = personality;
    this.draw();
  }

  readPublished(name) {
    return this.reader.send("get_personality", { name, ...(this.chosen && { version: this.chosen }) });
  }

  /** One that no network has received yet, in the same shape. */
  async readOwn(name) {
    const { provenance } = this.row;
    const own = await this.reader.send("get_own_personality", { name });
    return { ...own, versions: [own.version], profile: { traits: own.traits }, provenance };
  }

  /**
   * Bring it up to date.
   * @param {any} row null: it has not come yet, or was forgotten @param {boolean} enabled whether requests can be sent
   * @param {number} now in ms
   */
  update(row, enabled, now) {
    this.enabled = enabled;
    const isOther = row !== this.row;
    this.note.hidden = Boolean(row) || !this.personality;
    this.row = row;
    if (row) {
      setText(this.fresh, freshnessText(row, now));
      const [owner, badge] = ownerBadge(row.provenance);
      setText(this.badge, owner);
      for (const [name, value] of Object.entries(badge)) setAttribute(this.badge, name, value);
    }
    this.withdrawButton.hidden = !row || !isOwn(row);
    this.releaseButton.hidden = !row || isOwn(row);
    if (!this.requests.busy) enable(enabled, this.withdrawButton, this.releaseButton);
    if (isOther && row) this.reading.now();
    if (isOther) this.changes.refresh();
    if (this.personality) this.drawTools();
  }

  draw() {
    const { personality } = this;
    this.columns.hidden = false;
    const [latest] = personality.versions;
    const versions = personality.versions.map((version) => [
      version,
      version === latest ? `${version} (latest)` : version,
    ]);
    setOptions(this.version, [["", versions]], personality.version);
    this.version.hidden = versions.length < 2;
    this.traits.show(personality, this.enabled);
    this.provenance.show(personality);
    this.changes.show(personality.versions);
    this.drawTools();
  }

  drawTools() {
    this.tools.show(this.personality, this.enabled);
    this.traits.enable(this.enabled && Boolean(this.row));
  }

  choose(version) {
    this.chosen = version;
    this.reading.now();
  }

  askWithdraw() {
    const { name } = this;
    const words = {
      label: `Withdraw ${name}`,
      consequence:
        "The nodes of the network forget it, and its tools cannot be called there any more. The agent itself stays. You can publish it again.",
    };
    askIn(this.confirmBox, this.withdrawButton, words, async (_, pressed) => {
      if (!(await this.requests.run("withdraw_personality", { name }, pressed, "Withdrawing…"))) return;
      this.desk.announce(`${name} is withdrawn.`);
      this.on.close();
    });
  }

  /** Take the name from the node that owns it, such as after that has lost its key. */
  askRelease() {
    const { name } = this;
    const { owner, owner_name: former } = this.row.provenance;
    const heirs = this.heirs(owner);
    const control = select(heirs, "", { class: "wb-input wb-narrow", "aria-label": `Who gets the name ${name}` });
    const words = {
      label: `Release ${name}`,
      consequence: `${former} loses the name ${name} in this project: its versions are dropped, everything that ${former} has signed under the name stays refused, and tools of the name that were always allowed ask again. Other nodes decide for themselves. Do this when ${former} has lost its key; ask its owner for the RID of the new one.`,
      control,
    };
    askIn(this.confirmBox, this.releaseButton, words, async (_, pressed) => {
      const to = control.value ? { to: control.value } : {};
      if (!(await this.requests.run("release_personality_name", { name, ...to }, pressed, "Releasing…"))) return;
      const heir = heirs.find(([rid]) => rid === control.value)[1];
      this.desk.announce(control.value ? `${name} belongs to ${heir} now.` : `${name} is free.`);
      this.on.close();
    });
  }

  /** Who can get a name: anybody, or one of the other nodes that are known. @param {string} owner its RID */
  heirs(owner) {
    const peers = [...this.desk.store.tables.peers.values()].filter((peer) => peer.rid !== owner && !peer.blocked_at);
    const options = peers.sort(byName).map(({ rid }) => [rid, nodeName(rid)]);
    return [["", "Whoever publishes it next"], ...options];
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.matches(".wb-input")) return;
    event.preventDefault();
    this.on.close();
  }
}

/** Where a personality comes from, and what was checked: its owner, the node that sent it, its hash, and when. */
class Provenance {
  constructor() {
    this.facts = new Facts();
    this.element = h(
      "div",
      { class: "wb-stack" },
      h("h4", { class: "wb-strong" }, "Where it comes from"),
      this.facts.element,
    );
  }

  /** @param {any} personality as `get_personality` gives it */
  show({ rid, profile, provenance }) {
    const { owner, owner_name: name, origin, origin_name: sender, sha256, freshness } = provenance;
    this.element.hidden = freshness === "unpublished";
    if (this.element.hidden) return;
    const own = freshness === "own";
    this.facts.update([
      ["RID", code(rid)],
      ["Owner", h("div", {}, own ? `this project, ${name}` : name, code(owner))],
      ["Sent by", !own && (origin === owner ? "its owner" : h("div", {}, sender, code(origin)))],
      ["State", !own && stateText(provenance)],
      ["SHA-256", code(sha256)],
      ["Published", dateTime(provenance.published_at)],
      [own ? "First published" : "First received", dateTime(provenance.first_seen)],
      ["Changed", dateTime(provenance.changed_at)],
      ["Last received", !own && dateTime(provenance.last_seen)],
      ["Node", profile.base_url && code(profile.base_url)],
      ["Agent", profile.mcp_url && code(profile.mcp_url)],
    ]);
  }
}

function code(text) {
  return h("div", { class: "wb-id" }, h("code", {}, text));
}

/** Whether the node that sent a personality answers, and when it last did. */
function stateText({ freshness, answered_at: answered }) {
  const last = answered ? `, it last answered ${dateTime(answered)}` : "";
  return freshness === "live" ? `the node that sent it answered ${dateTime(answered)}` : `${FRESHNESS.stale}${last}`;
}
