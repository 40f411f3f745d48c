/** The network: joined or not, this project's node, and its peers as a graph or a table, one of them opened beside it. */

import { Facts, errorContent } from "../lib/blocks.js";
import { askIn } from "../lib/confirm.js";
import { Segments, button, copyButton, enable, field, form, formButtons, input } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { ago, plural } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";
import { NetworkGraph } from "./graph.js";
import { PeerPane, refusal } from "./peer_pane.js";
import { byName, edgeText, nodeName, stateOf } from "./peers.js";
import { DataTable } from "../components/data_table.js";
import { Button, Icon, html, render } from "../components/ui.js";

/** The words of the network that are on the screen, and what they mean. */
const WORDS = {
  KOI: "Knowledge Organization Infrastructure: a protocol by which programs tell each other what they know, in signed messages. Nobody runs it for all; a network is the nodes that know each other.",
  Node: "A participant: this project is one, with a key of its own. The mark after its name, as in lab·830c0d, is the beginning of the hash of its key, which nobody can imitate.",
  "First contact":
    "The node that a project asks first. It tells of the other nodes and passes on what they publish. Give its address and, if you know it, its RID.",
  Edge: "A subscription: one node sends its news to another. The receiver proposes it and the sender approves it; by webhook the news are sent at once, by polling they are fetched.",
  RID: "The name of a node or of a personality in the whole network, such as orn:koi-net.node:lab+830c0d…. Give a colleague the RID of this node with its address: then nobody else can answer in its place.",
};
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
      glossary(),
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
    this.refusedButton = button("", "wb-link", () => this.toggleRefusals());
    this.refusalsBox = h("div", { class: "wb-box wb-stack", hidden: true, "aria-label": "Refused", role: "region" });
    this.leaveButton = button("Leave…", "wb-button", () => this.askLeave());
    this.confirmBox = h("div", {});
    this.views = new Segments(VIEWS, "Show the nodes as", (view) => this.setView(view));
    const alone = "No other node yet. Give its operator the address of this one, to be its first contact.";
    this.alone = h("p", { class: "wb-empty", hidden: true }, alone);
    const views = h("div", { class: "wb-split-list wb-stack" }, this.graph.element, this.table.element);
    this.split = h("div", { class: "wb-split" }, views, this.pane.element);
    const tools = h("div", { class: "wb-line" }, this.views.element, h("span", { class: "wb-grow" }), this.leaveButton);
    this.own = this.ownBox();
    const above = [
      h("div", {}, this.own, this.facts.element),
      this.refusalsBox,
      tools,
      this.confirmBox,
      this.requests.errorBox,
    ];
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
    if (network.is_online && network.first_contact?.error) return "Joined, but not let in by the first contact yet";
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
  drawOwn({ is_online: online, rid, base_url: address, first_contact: contact, waiting, refused, problem, notice }) {
    this.own.hidden = !online;
    setText(this.rid, rid ?? "");
    setText(this.address, address ?? "");
    const why = problem ?? "It takes part while the servers run: start Workbench.";
    const text = contact && [contact.rid && nodeName(contact.rid), contact.url].filter(Boolean).join(" · ");
    setText(this.refusedButton, `${refused.toLocaleString("en")} from other nodes`);
    this.facts.update([
      ["Not connected", !online && why],
      ["Problem", online && problem],
      ["Its key", notice],
      ["First contact", text],
      ["Its answer", contact?.error],
      ["Waiting", waiting > 0 && `${plural(waiting, "event")} to be sent`],
      ["Refused", refused > 0 && this.refusedButton],
    ]);
  }

  /** Show what was refused, of whom and why, or hide it. */
  async toggleRefusals() {
    if (!this.refusalsBox.hidden) {
      this.refusalsBox.hidden = true;
      return;
    }
    const found = await this.requests.run("list_refused_peers", {}, this.refusedButton, "Reading…");
    if (!found) return;
    render(html`<${Refusals} rows=${found.refusals} onOpen=${(rid) => this.open(rid)} />`, this.refusalsBox);
    this.refusalsBox.hidden = false;
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
      const error = joined?.first_contact?.error;
      if (error) this.desk.announce(`This project takes part, but its first contact has not let it in yet: ${error}`);
      else if (joined) this.desk.announce("This project has joined the network.");
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

/** The peers as a table: the same as the graph, in words. */
class PeerTable {
  /** @param {(rid: string) => void} onOpen */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.element = h("div", {});
  }

  /** @param {any} network its row @param {any[]} peers @param {string|null} opened @param {number} now in ms */
  update(network, peers, opened, now) {
    const about = { class: "wb-peers", columns: columnsOf(network, now), rows: peers, opened: opened ? [opened] : [] };
    const names = { id: ({ rid }) => rid, name: ({ rid }) => nodeName(rid) };
    render(html`<${DataTable} ...${about} ...${names} onOpen=${this.onOpen} />`, this.element);
  }
}

/** @returns {import("../components/data_table.js").Column[]} */
function columnsOf({ rid: own, edges }, now) {
  const edge = (from, to) => edgeText(edges.find(({ source, target }) => source === from && target === to));
  return [
    { key: "peer", label: "Node", title: ({ rid }) => rid },
    { key: "state", label: "State", cell: (peer) => stateMark(stateOf(peer, now)) },
    { key: "sends", label: "Sends to us", cell: ({ rid }) => edge(rid, own) },
    { key: "gets", label: "Gets from us", cell: ({ rid }) => edge(own, rid) },
    { key: "last", label: "Last contact", cell: ({ last_seen: last }) => ago(last, now) },
    { key: "refused", label: "Refused", cell: ({ refused }) => (refused ? refused.toLocaleString("en") : "") },
  ];
}

/** What was refused, by sender: of a node that is known, with a link to it. */
function Refusals({ rows, onOpen }) {
  const senders = [...new Set(rows.map(({ rid }) => rid))];
  const name = (rid, known) =>
    known
      ? html`<${Button} class="wb-link" label=${nodeName(rid)} onClick=${() => onOpen(rid)} />`
      : html`<span>${rid ? `${nodeName(rid)}, which is not known here` : "Senders that are not known here"}</span>`;
  return senders.map((sender) => {
    const own = rows.filter(({ rid }) => rid === sender);
    return html`<div key=${sender ?? ""}>
      <div class="wb-strong">${name(sender, own[0].is_known)}</div>
      <ul class="wb-stack">
        ${own.map(refusal)}
      </ul>
    </div>`;
  });
}

/** What the words mean, folded. */
function glossary() {
  const words = Object.entries(WORDS).map(([word, meaning]) =>
    h("li", {}, h("span", { class: "wb-strong" }, `${word}: `), meaning),
  );
  return h("details", {}, h("summary", {}, "What the words mean"), h("ul", { class: "wb-stack" }, ...words));
}

function stateMark([label, shape]) {
  return html`<span class="wb-state"><${Icon} name=${shape} /><span class="wb-cut">${label}</span></span>`;
}

/** A form to join a network: the node to contact first, and the name of this one. */
class JoinForm {
  /** @param {any} desk @param {any} network its row: what was used the last time @param {(joined: any) => void} onDone */
  constructor(desk, network, onDone) {
    this.desk = desk;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.url = input(network?.first_contact?.url ?? "", {
      maxlength: 2_000,
      placeholder: "URL that ends with /koi-net",
    });
    this.rid = input(network?.first_contact?.rid ?? "", {
      class: "wb-input wb-mono",
      maxlength: 300,
      placeholder: "orn:koi-net.node:…",
    });
    this.name = input(network?.name ?? "", { maxlength: 100, placeholder: "lab" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Join");
    const about =
      "Leave the address empty if this node is the first one: others then contact it. The RID of the first contact, if you know it, makes sure that it is that node which answers.";
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "Join a network" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Address of the first contact", this.url),
        field("RID of the first contact (optional)", this.rid),
        field("Name of this node", this.name),
      ),
      h("p", { class: "wb-label" }, about),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    this.url.focus();
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    if (!this.requests.busy) enable(enabled, this.submit);
  }

  async run() {
    const typed = { first_contact: this.url, first_contact_rid: this.rid, name: this.name };
    const values = Object.entries(typed).map(([name, control]) => [name, control.value.trim()]);
    const args = Object.fromEntries(values.filter(([, value]) => value));
    const joined = await this.requests.run("join_network", args, this.submit, "Joining…");
    if (joined) this.onDone(joined);
  }
}
