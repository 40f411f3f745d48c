/** The network as a graph: the nodes that are known here, and who sends events to whom. */

import { freshId, h, setAttribute, setText, svg } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { arrowAt, layout, pathOf } from "./graph_layout.js";
import { linesOf, nodeName, stateOf } from "./peers.js";

/** Between two lines that join the same nodes. */
const APART = 6;

export class NetworkGraph {
  /** @param {(rid: string) => void} onOpen */
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.nodes = new Map();
    this.active = null;
    this.lines = svg("svg", { class: "wb-links", "aria-hidden": "true" });
    this.sheet = h("div", { class: "wb-network-sheet" }, this.lines);
    const label = "Nodes of the network; arrows move, Enter opens";
    this.box = h(
      "div",
      { class: "wb-network-graph wb-frame", role: "listbox", tabindex: 0, "aria-label": label },
      this.sheet,
    );
    this.element = h("div", { class: "wb-stack" }, this.box, legend());
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("focus", () => this.active === null && this.goTo(this.plan?.columns[0][0]));
    this.box.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => this.arrange()).observe(this.box);
  }

  /** @param {any} network its row @param {any[]} peers @param {string|null} opened @param {number} now in ms */
  update(network, peers, opened, now) {
    this.now = now;
    const own = { rid: network.rid ?? "", name: network.name, own: true };
    this.own = own.rid;
    this.byRid = new Map([own, ...peers].map((node) => [node.rid, node]));
    this.links = linesOf(
      network.edges.filter(({ source, target }) => this.byRid.has(source) && this.byRid.has(target)),
    );
    if (opened) this.active = opened;
    this.opened = opened;
    this.arrange();
    for (const [rid, element] of this.nodes) this.drawNode(element, this.byRid.get(rid));
    this.mark();
  }

  /** Place the nodes and lines anew, if they or the width have changed. */
  arrange() {
    const width = this.box.clientWidth;
    if (!width || !this.byRid) return;
    const key = JSON.stringify([width, [...this.byRid.keys()], this.links]);
    if (key === this.arranged) return;
    this.arranged = key;
    this.plan = layout([...this.byRid.keys()], this.links, this.own, width);
    for (const [rid, element] of this.nodes) if (!this.byRid.has(rid)) this.nodes.delete(rid) && element.remove();
    for (const [rid, { x, y }] of this.plan.places) this.node(rid).style.transform = `translate(${x}px, ${y}px)`;
    this.drawLines();
    for (const [rid, element] of this.nodes) this.drawNode(element, this.byRid.get(rid));
    this.mark();
  }

  node(rid) {
    if (this.nodes.has(rid)) return this.nodes.get(rid);
    const text = h(
      "span",
      { class: "wb-node-text" },
      h("span", { class: "wb-title wb-cut" }),
      h("span", { class: "wb-node-state wb-cut" }),
    );
    const element = h(
      "div",
      { class: "wb-node", role: "option", id: freshId("node") },
      h("span", { class: "wb-mark" }),
      text,
    );
    element.dataset.rid = rid;
    this.nodes.set(rid, element);
    this.sheet.append(element);
    return element;
  }

  drawNode(element, node) {
    const [label, mark] = node.own ? ["This project", "registration"] : stateOf(node, this.now);
    const state = node.own ? "own" : node.state;
    if (element.dataset.mark !== mark) element.firstChild.replaceChildren(icon(mark));
    element.dataset.mark = mark;
    element.dataset.state = state;
    setText(element.lastChild.firstChild, node.rid ? nodeName(node.rid) : node.name);
    setText(element.lastChild.lastChild, node.is_relay ? `${label} · first contact` : label);
    setAttribute(element, "title", node.rid);
  }

  drawLines() {
    const { width, height } = this.plan;
    const pairs = new Set();
    this.drawn = this.links.map((link) => {
      const pair = [link.from, link.to].sort().join(" ");
      const shift = pairs.has(pair) ? APART : 0;
      pairs.add(pair);
      return this.line(link, shift);
    });
    this.lines.replaceChildren(...this.drawn);
    setAttribute(this.lines, "width", width);
    setAttribute(this.lines, "height", height);
    this.sheet.style.width = `${width}px`;
    this.sheet.style.height = `${height}px`;
  }

  /** A line with its arrows, and a word if events are fetched. */
  line({ from, to, both, status, edge_type: type }, shift) {
    const { places, columns } = this.plan;
    const [start, end] = [places.get(from), places.get(to)];
    const hub = columns.length === 3 ? places.get(columns[1][0]) : null;
    const { path, middle } = pathOf(start, end, hub, shift);
    const drawn = [svg("path", { class: "wb-link-line", d: path, "data-status": status })];
    const arrow = (one, other) => svg("path", { class: "wb-arrow", d: arrowAt(one, other, shift) });
    drawn.push(arrow(start, end), ...(both ? [arrow(end, start)] : []));
    const [x, y] = middle;
    if (type === "POLL") drawn.push(svg("text", { class: "wb-link-label", x, y: y - 4 }, "poll"));
    return svg("g", { class: "wb-link-group", "data-from": from, "data-to": to }, ...drawn);
  }

  /** Show which node is active, and which lines are its own. */
  mark() {
    for (const [rid, element] of this.nodes) setAttribute(element, "aria-selected", rid === this.active);
    setAttribute(this.box, "aria-activedescendant", this.nodes.get(this.active)?.id);
    const { opened } = this;
    for (const group of this.drawn ?? []) {
      const { from, to } = group.dataset;
      setAttribute(group, "data-faint", Boolean(opened) && from !== opened && to !== opened ? "true" : null);
    }
  }

  goTo(rid) {
    if (!rid) return;
    this.active = rid;
    this.mark();
    this.nodes.get(rid)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.plan) return;
    const { columns } = this.plan;
    const at = columns.findIndex((column) => column.includes(this.active));
    const row = columns[at]?.indexOf(this.active);
    const to = (column) =>
      column?.[Math.min(column.length - 1, Math.round(((row + 0.5) / columns[at].length) * column.length - 0.5))];
    const actions = {
      ArrowUp: () => this.goTo(columns[at]?.[row - 1]),
      ArrowDown: () => this.goTo(columns[at]?.[row + 1]),
      ArrowLeft: () => this.goTo(to(columns[at - 1])),
      ArrowRight: () => this.goTo(to(columns[at + 1])),
      Home: () => this.goTo(columns[0][0]),
      End: () => this.goTo(columns.at(-1).at(-1)),
      Enter: () => this.open(this.active),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  onClick(event) {
    const rid = event.target.closest(".wb-node")?.dataset.rid;
    if (!rid) return;
    this.goTo(rid);
    this.open(rid);
  }

  /** The project's own node has nothing to open: all about it stands above. */
  open(rid) {
    if (rid && rid !== this.own) this.onOpen(rid);
  }
}

function legend() {
  const sample = (status) =>
    svg(
      "svg",
      { class: "wb-link-sample", viewBox: "0 0 28 8", "aria-hidden": "true" },
      svg("path", { class: "wb-link-line", d: "M0 4H28", "data-status": status }),
    );
  const entry = (status, text) => h("span", { class: "wb-state" }, sample(status), text);
  const about = "An arrow points to the node that receives events; “poll”: it fetches them.";
  return h(
    "div",
    { class: "wb-line wb-label wb-network-legend" },
    entry("APPROVED", "approved"),
    entry("PROPOSED", "proposed"),
    h("span", {}, about),
  );
}
