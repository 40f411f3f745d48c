/** The peers as a table: the same as the graph, in words. */

import { button, moveBetweenRows } from "../lib/controls.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { KeyedList } from "../lib/keyed_list.js";
import { icon } from "../lib/icons.js";
import { edgeText, nodeName, STATES } from "./peers.js";
import { ago } from "../lib/format.js";

const COLUMNS = {
  peer: "Node",
  state: "State",
  sends: "Sends to us",
  gets: "Gets from us",
  last: "Last contact",
  refused: "Refused",
};

export class PeerTable {
  /** @param {(rid: string) => void} onOpen */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.body = h("tbody", {});
    const heads = Object.entries(COLUMNS).map(([key, label]) =>
      h("th", { scope: "col", class: `wb-col-${key}` }, label),
    );
    const on = { keydown: (event) => moveBetweenRows(event, this.body) };
    this.element = h("table", { class: "wb-table wb-peers", on }, h("thead", {}, h("tr", {}, ...heads)), this.body);
    this.rows = new KeyedList(this.body, (rid) => this.row(rid));
  }

  row(rid) {
    const opener = button("", "wb-opener", () => this.onOpen(rid));
    const cells = Object.fromEntries(Object.keys(COLUMNS).map((key) => [key, h("td", { class: `wb-col-${key}` })]));
    const mark = h("span", { class: "wb-state" });
    cells.peer.append(opener);
    cells.state.append(mark);
    return { elements: [h("tr", { class: "wb-table-row" }, ...Object.values(cells))], cells, opener, mark };
  }

  /** @param {any} network its row @param {any[]} peers @param {string|null} opened @param {number} now in ms */
  update(network, peers, opened, now) {
    const known = new Map(peers.map((peer) => [peer.rid, peer]));
    const draw = (row, rid) => this.draw(row, known.get(rid), network, opened, now);
    this.rows.show([...known.keys()], draw);
  }

  draw({ elements: [element], cells, opener, mark }, peer, { rid: own, edges }, opened, now) {
    const { rid, state, last_seen: last, refused } = peer;
    const edge = (from, to) => edges.find(({ source, target }) => source === from && target === to);
    setText(opener, nodeName(rid));
    setAttribute(opener, "title", rid);
    setAttribute(opener, "aria-expanded", rid === opened);
    element.classList.toggle("wb-active", rid === opened);
    const [label, shape] = STATES[state];
    if (mark.dataset.state !== state) mark.replaceChildren(icon(shape), h("span", { class: "wb-cut" }, label));
    mark.dataset.state = state;
    setText(cells.sends, edgeText(edge(rid, own)));
    setText(cells.gets, edgeText(edge(own, rid)));
    setText(cells.last, ago(last, now));
    setText(cells.refused, refused ? refused.toLocaleString("en") : "");
  }

  /** Give the row of a peer the focus. @param {string} rid */
  focus(rid) {
    this.rows.items.get(rid)?.opener.focus();
  }
}
