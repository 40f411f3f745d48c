/** The peers as a table: the same as the graph, in words. */

import { DataTable } from "../components/data_table.js";
import { Icon, html, render } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { ago } from "../lib/format.js";
import { edgeText, nodeName, STATES } from "./peers.js";

export class PeerTable {
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
    { key: "state", label: "State", cell: ({ state }) => stateMark(STATES[state]) },
    { key: "sends", label: "Sends to us", cell: ({ rid }) => edge(rid, own) },
    { key: "gets", label: "Gets from us", cell: ({ rid }) => edge(own, rid) },
    { key: "last", label: "Last contact", cell: ({ last_seen: last }) => ago(last, now) },
    { key: "refused", label: "Refused", cell: ({ refused }) => (refused ? refused.toLocaleString("en") : "") },
  ];
}

function stateMark([label, shape]) {
  return html`<span class="wb-state"><${Icon} name=${shape} /><span class="wb-cut">${label}</span></span>`;
}
