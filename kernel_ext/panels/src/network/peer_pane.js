/** One peer, opened: its address, its state, what was refused of it, what it may call, and blocking it. */

import { Facts, labelled } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button, enable } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { ago, dateTime, plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { PeerPermissions } from "./peer_permissions.js";
import { edgeText, nodeName, STATES } from "./peers.js";

const REJECTED =
  "Rejected for good: it is not sent again as it is. Change what is published, or have the node updated.";
const FAILED =
  "The node failed with it: it is sent again when both nodes are compared. If it stays here, tell who runs the node.";

export class PeerPane {
  /** @param {any} desk @param {{close: () => void, open: (name: string) => void}} on @param {AbortSignal} signal */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.on = on;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    this.permissions = new PeerPermissions(desk);
    const id = freshId("peer");
    this.mark = h("span", { class: "wb-mark" });
    this.title = h("h4", { class: "wb-pane-title", id, tabindex: -1 });
    this.state = h("div", { class: "wb-indented wb-wrap" });
    this.facts = new Facts();
    this.refusals = h("div", {});
    this.rejections = h("div", {});
    this.published = h("div", {});
    this.blockButton = button("", "wb-button", () => this.toggleBlock());
    this.confirmBox = h("div", {});
    const close = button("×", "wb-close", on.close, "Close the node");
    this.element = h(
      "section",
      { class: "wb-pane wb-stack wb-roomy", "aria-labelledby": id, hidden: true },
      h("div", { class: "wb-pane-head" }, this.mark, this.title, close),
      this.state,
      h("div", { class: "wb-line" }, this.blockButton),
      this.confirmBox,
      this.requests.errorBox,
      this.reader.errorBox,
      this.facts.element,
      this.published,
      this.permissions.element,
      this.refusals,
      this.rejections,
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    desk.store.subscribe(() => this.onEvents(), signal);
  }

  /** @param {string} rid */
  show(rid) {
    this.hide();
    this.rid = rid;
    this.confirmBox.replaceChildren();
    this.requests.clearError();
    this.permissions.clear();
    this.refusals.replaceChildren();
    this.rejections.replaceChildren();
    this.drawn = null;
    this.element.hidden = false;
    const onError = (error) => this.reader.showError(error);
    this.reading = new Refresh(() => this.read(rid), onError);
    this.reading.now();
  }

  hide() {
    this.reading?.stop();
    this.element.hidden = true;
  }

  focus() {
    this.title.focus();
  }

  /** Read what the row does not have again, after events about the peer. */
  onEvents() {
    if (!this.element.hidden && this.desk.store.concerns(`peer:${this.rid}`)) this.reading.now();
  }

  async read(rid) {
    const found = await this.reader.send("get_peer", { peer: rid });
    if (rid !== this.rid) return;
    this.reader.clearError();
    this.permissions.show(rid, found.permissions);
    this.drawRefusals(found.refusals);
    this.drawRejections(found.rejections);
  }

  /** @param {any} peer its row @param {any} network its row @param {boolean} enabled @param {number} now in ms */
  update(peer, network, enabled, now) {
    this.peer = peer;
    const [label, mark] = STATES[peer.state];
    if (this.drawn !== peer.state) this.mark.replaceChildren(icon(mark));
    this.drawn = peer.state;
    setText(this.title, nodeName(peer.rid));
    setText(this.state, stateText(peer, label, now));
    this.drawFacts(peer, network, now);
    this.drawPublished(peer.rid);
    setText(this.blockButton, peer.blocked_at ? "Unblock" : "Block…");
    if (!this.requests.busy) enable(enabled, this.blockButton);
    this.permissions.update(enabled, Boolean(peer.blocked_at));
  }

  drawFacts(peer, { rid: own, edges }, now) {
    const edge = (from, to) => edges.find(({ source, target }) => source === from && target === to);
    this.facts.update([
      ["Address", peer.base_url && h("code", { class: "wb-id" }, peer.base_url)],
      ["RID", h("code", { class: "wb-id" }, peer.rid)],
      ["Kind", peer.node_type === "PARTIAL" ? "sends requests, but takes none" : null],
      ["Role", peer.is_relay && "first contact: passes on what other nodes publish"],
      ["Sends to us", edgeText(edge(peer.rid, own))],
      ["Gets from us", edgeText(edge(own, peer.rid))],
      ["Known since", dateTime(peer.first_seen)],
      ["Last contact", ago(peer.last_seen, now)],
      ["Waiting", peer.waiting > 0 && `${plural(peer.waiting, "event")} to be sent`],
      ["Failures", peer.failures > 0 && `${plural(peer.failures, "request")} in a row`],
    ]);
  }

  drawPublished(rid) {
    const { personalities } = this.desk.store.tables;
    const names = [...personalities.values()]
      .filter(({ provenance }) => provenance?.owner === rid)
      .map(({ name }) => name);
    const key = names.join("\n");
    if (key === this.drawnNames) return;
    this.drawnNames = key;
    const links = names.map((name) =>
      h(
        "li",
        {},
        button(name, "wb-link", () => this.on.open(name)),
      ),
    );
    this.published.replaceChildren(
      ...(links.length ? [labelled("Personalities", h("ul", { class: "wb-traits" }, ...links))] : []),
    );
  }

  drawRefusals(refusals) {
    const line = ({ code, count, last_at: last, last_reason: reason }) =>
      h(
        "li",
        { class: "wb-refusal" },
        h("div", {}, h("code", {}, code), ` × ${count.toLocaleString("en")}, last ${dateTime(last)}`),
        h("div", { class: "wb-muted wb-wrap" }, reason),
      );
    const list = h("ul", { class: "wb-stack" }, ...refusals.map(line));
    this.refusals.replaceChildren(...(refusals.length ? [labelled("Refused messages and calls", list)] : []));
  }

  /** Events of this node that the peer does not accept: for good, or until it is tried again. */
  drawRejections(rejections) {
    const line = ({ rid, code, reason, is_final: isFinal, rejected_at: at }) =>
      h(
        "li",
        { class: "wb-refusal" },
        h("div", { class: "wb-wrap" }, h("code", { class: "wb-id" }, rid), ` ${dateTime(at)}`),
        h("div", { class: "wb-wrap" }, isFinal ? REJECTED : FAILED),
        h("div", { class: "wb-muted wb-wrap" }, h("code", {}, code), ` ${reason}`),
      );
    const list = h("ul", { class: "wb-stack" }, ...rejections.map(line));
    this.rejections.replaceChildren(...(rejections.length ? [labelled("Rejected by it", list)] : []));
  }

  toggleBlock() {
    const { rid, blocked_at: blocked } = this.peer;
    const name = nodeName(rid);
    if (blocked) return this.run("unblock_peer", rid, this.blockButton, "Unblocking…", `${name} is unblocked.`);
    const words = {
      label: `Block ${name}`,
      consequence: "Nothing is accepted from it or sent to it, and what it has published is removed here.",
    };
    return askIn(this.confirmBox, this.blockButton, words, async (_, pressed) => {
      if (await this.run("block_peer", rid, pressed, "Blocking…", `${name} is blocked.`))
        this.confirmBox.replaceChildren();
      this.blockButton.focus();
    });
  }

  async run(op, peer, pressed, label, done) {
    const outcome = await this.requests.run(op, { peer }, pressed, label);
    if (outcome) this.desk.announce(done);
    return outcome;
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.matches(".wb-input")) return;
    event.preventDefault();
    this.on.close();
  }
}

/** "Unreachable: connection refused; tried again at 10:05" */
function stateText({ state, last_error: error, retry_at: retry, blocked_at: at, blocked_by: by }, label, now) {
  if (state === "blocked") return `Blocked by ${by}, ${ago(at, now)}`;
  if (state !== "unreachable") return label;
  const again =
    retry && (Date.parse(retry) > now ? ` It is tried again at ${dateTime(retry)}.` : " It is being tried again.");
  return `${label}: ${error ?? "no answer"}.${again ?? ""}`;
}
