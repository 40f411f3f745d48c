/** The network: joined or not, this project's node, and its peers as a graph or a table, one of them opened beside it. */

import { errorContent, Facts } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { button, copyButton, enable } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { Segments } from "../lib/segments.js";
import { RequestRunner } from "../link/request_runner.js";
import { NetworkGraph } from "./graph.js";
import { JoinForm } from "./join_form.js";
import { PeerPane } from "./peer_pane.js";
import { PeerTable } from "./peer_table.js";
import { byName, nodeName } from "./peers.js";

const VIEWS = { graph: "Graph", table: "Table" };

export class Network {
  /** @param {any} desk @param {{open: (name: string) => void}} on @param {AbortSignal} signal */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.view = "graph";
    /** The RID of the peer that is opened. @type {string|null} */
    this.opened = null;
    const open = (rid) => this.open(rid);
    this.graph = new NetworkGraph(open);
    this.table = new PeerTable(open);
    this.pane = new PeerPane(desk, { close: () => this.close(), open: on.open }, signal);
    this.errorBox = h("div", { class: "wb-message wb-error", hidden: true });
    this.off = this.offBox();
    this.joined = this.joinedBox();
    this.formBox = h("div", {});
    this.element = h(
      "div",
      { class: "wb-network-view wb-stack wb-roomy" },
      this.errorBox,
      this.off,
      this.formBox,
      this.joined,
    );
  }

  /** What a network is, while there is none. */
  offBox() {
    this.joinButton = button("Join a network…", "wb-button wb-primary", () => this.openForm());
    const about =
      "In a KOI network every project is a node: agents publish their personalities, signed with the key of their node, and call each other's tools. This project is in no network, so nothing is published or received.";
    return h("div", { class: "wb-empty wb-stack", hidden: true }, h("p", {}, about), this.joinButton);
  }

  joinedBox() {
    this.facts = new Facts();
    this.leaveButton = button("Leave…", "wb-button", () => this.askLeave());
    this.confirmBox = h("div", {});
    this.views = new Segments(VIEWS, "Show the nodes as", (view) => this.setView(view));
    const alone = "No other node yet. Give its operator the address of this one, to be its first contact.";
    this.alone = h("p", { class: "wb-empty", hidden: true }, alone);
    const views = h("div", { class: "wb-split-list wb-stack" }, this.graph.element, this.table.element);
    this.split = h("div", { class: "wb-split" }, views, this.pane.element);
    const tools = h("div", { class: "wb-line" }, this.views.element, h("span", { class: "wb-grow" }), this.leaveButton);
    this.own = this.ownBox();
    const above = [h("div", {}, this.own, this.facts.element), tools, this.confirmBox, this.requests.errorBox];
    return h("div", { class: "wb-stack wb-roomy", hidden: true }, ...above, this.alone, this.split);
  }

  /** This project's node, to be given to others. */
  ownBox() {
    this.rid = h("code", { class: "wb-id" });
    this.address = h("code", { class: "wb-id" });
    const line = (label, value, name) => {
      const copy = copyButton(() => value.textContent, name, this.desk.announce);
      return h("li", {}, h("span", { class: "wb-muted wb-term" }, label), value, copy);
    };
    const address = line("Address", this.address, "Copy the address");
    return h("ul", { class: "wb-own-node" }, address, line("RID", this.rid, "Copy the RID"));
  }

  /** @returns {any|undefined} the row of the network */
  get network() {
    return this.desk.store.tables.network.get("network");
  }

  /** @returns {any[]} */
  get peers() {
    return [...this.desk.store.tables.peers.values()].filter(({ id }) => id !== "").sort(byName);
  }

  summary() {
    const { network } = this;
    if (!network) return "";
    if (!network.joined) return "Not joined";
    const state = network.is_online ? "Joined" : "Joined, but not connected now,";
    return `${state} as ${network.rid ? nodeName(network.rid) : network.name}, ${plural(this.peers.length, "other node")}`;
  }

  /** @param {boolean} [enabled] whether requests can be sent @param {number} [now] in ms */
  update(enabled = this.enabled, now = Date.now()) {
    this.enabled = enabled;
    const { network } = this;
    const error = this.desk.store.tables.network.get("")?.error;
    this.errorBox.hidden = !error;
    if (error) this.errorBox.replaceChildren(...errorContent(error));
    this.off.hidden = !network || network.joined || Boolean(this.form);
    this.joined.hidden = !network?.joined;
    this.form?.update(enabled);
    enable(enabled, this.joinButton);
    if (network?.joined) this.drawJoined(network, now);
  }

  drawJoined(network, now) {
    const { peers } = this;
    this.drawOwn(network);
    this.views.show(this.view);
    this.views.element.hidden = !peers.length;
    this.alone.hidden = peers.length > 0;
    this.split.hidden = !peers.length;
    const peer = peers.find(({ rid }) => rid === this.opened) ?? null;
    this.split.classList.toggle("wb-open", Boolean(peer));
    for (const view of Object.keys(VIEWS)) this[view].element.hidden = view !== this.view;
    this.table.update(network, peers, peer?.rid ?? null, now);
    if (this.view === "graph") this.graph.update(network, peers, peer?.rid ?? null, now);
    this.pane.update(peer, network, this.enabled, now);
    if (!this.requests.busy) enable(this.enabled, this.leaveButton);
  }

  /** The project has an address only while its servers run. */
  drawOwn({ is_online: online, rid, base_url: address, first_contact: contact, waiting, refused, problem }) {
    this.own.hidden = !online;
    setText(this.rid, rid ?? "");
    setText(this.address, address ?? "");
    const why = problem ?? "It takes part while the servers run: start Workbench.";
    const found = contact && [contact.rid && nodeName(contact.rid), contact.url].filter(Boolean).join(" · ");
    this.facts.update([
      ["Not connected", !online && why],
      ["First contact", found],
      ["Its answer", contact?.error],
      ["Waiting", waiting > 0 && `${plural(waiting, "event")} to be sent`],
      ["Refused", refused > 0 && `${refused.toLocaleString("en")} from other nodes`],
    ]);
  }

  setView(view) {
    this.view = view;
    this.update();
  }

  open(rid) {
    this.opened = rid;
    this.update();
    this.pane.focus();
  }

  close() {
    this.opened = null;
    this.update();
    if (this.view === "graph") this.graph.box.focus(); // the table does so itself
  }

  focus() {
    if (this.opened) this.pane.focus();
  }

  openForm() {
    this.form = new JoinForm(this.desk, this.network, (joined) => {
      this.form = null;
      this.formBox.replaceChildren();
      this.update();
      if (joined) this.desk.announce("This project has joined the network.");
      else this.joinButton.focus();
    });
    this.formBox.replaceChildren(this.form.element);
    this.update();
    this.form.focus();
  }

  askLeave() {
    const words = {
      label: "Leave the network",
      consequence:
        "The other nodes forget the personalities of this project, and theirs are forgotten here. Yours are kept, and published again when the project joins a network.",
    };
    askIn(this.confirmBox, this.leaveButton, words, async (_, pressed) => {
      if (!(await this.requests.run("leave_network", {}, pressed, "Leaving…"))) return;
      this.confirmBox.replaceChildren();
      this.desk.announce("This project has left the network.");
    });
  }
}
