/** The graph of dependencies, from left to right, live; of many tasks a few hundred. */

import { button, checkbox } from "../lib/controls.js";
import { freshId, h, setAttribute, setText, svg } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { layout, nearest, nearestToAll } from "./graph_layout.js";
import { STATES } from "./outline.js";

const MOST = 300;
const [WIDTH, HEIGHT, ACROSS, DOWN, EDGE] = [184, 44, 236, 56, 12];
const ZOOMS = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.5];
const DRAG_PX = 4;

export class Graph {
  /** @param {{open: (id: number) => void, move: (id: number) => void}} on */
  constructor(on) {
    this.on = on;
    this.nodes = new Map();
    this.zoom = 1;
    /** Whether all of it is to stay in view. */
    this.fitted = false;
    this.active = null;
    this.note = h("span", { class: "wb-muted wb-grow wb-graph-note" });
    this.around = checkbox("Only around the selected task", () => this.redraw());
    const tool = (label, name, act) => button(label, "wb-button wb-compact", act, name);
    const zooms = [
      tool("−", "Zoom out", () => this.step(-1)),
      tool("+", "Zoom in", () => this.step(1)),
      tool("Fit", "Zoom to fit", () => this.fit()),
    ];
    this.lines = svg("svg", { class: "wb-edges", "aria-hidden": "true" });
    this.sheet = h("div", { class: "wb-graph-sheet" }, this.lines);
    this.room = h("div", { class: "wb-graph-room" }, this.sheet);
    this.box = h(
      "div",
      {
        class: "wb-graph wb-frame",
        role: "listbox",
        tabindex: 0,
        "aria-label": "Dependency graph; tasks on the left come first",
      },
      this.room,
    );
    this.none = h("p", { class: "wb-empty" });
    this.element = h(
      "div",
      { class: "wb-stack", hidden: true },
      h("div", { class: "wb-line" }, this.note, this.around.element, h("span", { class: "wb-line" }, ...zooms)),
      this.none,
      this.box,
    );
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("focus", () => this.active === null && this.goTo(this.plan?.layers.flat()[0]));
    this.box.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.box.addEventListener("pointerdown", (event) => this.onDown(event));
    new ResizeObserver(() => this.fitted && this.fit()).observe(this.box);
  }

  /**
   * Draw these tasks, or those around the active one.
   * @param {number[]} ids @param {import("./outline.js").Outline} outline @param {number|null} active
   */
  update(ids, outline, active) {
    this.ids = ids;
    this.outline = outline;
    this.active = outline.tasks.has(active) ? active : null;
    this.redraw();
  }

  redraw() {
    const { ids, note } = this.choose();
    const inside = new Set(ids);
    const pairs = ids.flatMap((id) =>
      this.before(id)
        .filter((on) => inside.has(on))
        .map((on) => [id, on]),
    );
    const linked = new Set(pairs.flat());
    const drawn = ids.filter((id) => linked.has(id));
    const left = ids.length - drawn.length;
    setText(
      this.note,
      [note, drawn.length && left ? `${left} without dependencies are not drawn` : ""].filter(Boolean).join(" · "),
    );
    setText(
      this.none,
      this.around.box.checked && this.active !== null
        ? `Task ${this.active} has no dependencies, and no task depends on it.`
        : "None of these tasks depends on another.",
    );
    this.none.hidden = drawn.length > 0;
    this.box.hidden = drawn.length === 0;
    const key = JSON.stringify([drawn, pairs]);
    const fresh = key !== this.key;
    if (fresh) this.arrange(drawn, pairs, key);
    this.colour(pairs);
    if (fresh) this.show(this.active);
  }

  /** The tasks to draw, and what to say about them. */
  choose() {
    const { ids, outline, active } = this;
    if (this.around.box.checked && active !== null) {
      const nearby = nearest(active, (id) => this.neighbours(id), MOST);
      return { ids: nearby, note: `${plural(nearby.length, "task")} around #${active}` };
    }
    const inside = new Set(ids);
    const neighbours = (id) => this.neighbours(id).filter((other) => inside.has(other));
    const linked = ids.filter((id) => neighbours(id).length);
    if (linked.length <= MOST) return { ids, note: plural(ids.length, "task") };
    const isBegun = (id) => outline.states.get(id) === "in_progress";
    const starts = [...linked.filter((id) => id === active), ...linked.filter(isBegun), ...linked];
    const nearby = nearestToAll(starts, neighbours, MOST);
    const many = `${ids.length.toLocaleString("en")} tasks are too many to draw`;
    return {
      ids: nearby,
      note: `${many}; these are the ${nearby.length} around #${starts[0]}. Select another task, or filter by plan`,
    };
  }

  before(id) {
    return (this.outline.tasks.get(id)?.dependencies ?? []).filter((on) => this.outline.tasks.has(on));
  }

  neighbours(id) {
    return [...this.before(id), ...this.outline.dependents(id)];
  }

  arrange(ids, pairs, key) {
    this.key = key;
    this.plan = layout(ids, pairs);
    const { places, edges, columns, rows } = this.plan;
    this.size = [columns * ACROSS - (ACROSS - WIDTH) + 2 * EDGE, rows * DOWN - (DOWN - HEIGHT) + 2 * EDGE];
    for (const [id, node] of this.nodes) if (!places.has(id)) this.nodes.delete(id) && node.remove();
    for (const [id, place] of places) this.node(id).style.transform = `translate(${left(place)}px, ${top(place)}px)`;
    this.paths = edges.map((edge) => svg("path", { class: "wb-edge", d: curve(edge, places) }));
    this.lines.replaceChildren(...this.paths);
    setAttribute(this.lines, "width", this.size[0]);
    setAttribute(this.lines, "height", this.size[1]);
    this.scale(this.zoom);
    if (this.fitted) this.fit();
  }

  node(id) {
    let node = this.nodes.get(id);
    if (!node) {
      node = h(
        "div",
        { class: "wb-node", role: "option", id: freshId("node"), "data-id": id },
        h("span", { class: "wb-mark" }),
        h(
          "span",
          { class: "wb-node-text" },
          h("span", { class: "wb-title wb-cut" }),
          h("span", { class: "wb-node-state wb-cut" }),
        ),
      );
      this.nodes.set(id, node);
      this.sheet.append(node);
    }
    return node;
  }

  /** What changes while the layout stays: states, titles, and which edges are satisfied. */
  colour(pairs) {
    const { tasks, states } = this.outline;
    for (const [id, node] of this.nodes) {
      const { title, progress, status } = tasks.get(id);
      const state = states.get(id);
      if (node.dataset.state !== state) node.firstChild.replaceChildren(icon(state));
      node.dataset.state = state;
      setText(node.lastChild.firstChild, title);
      setText(node.lastChild.lastChild, `#${id} · ${STATES[state]}${status === "in_progress" ? ` ${progress} %` : ""}`);
      setAttribute(node, "title", title);
      setAttribute(node, "aria-selected", id === this.active);
    }
    pairs.forEach(([, on], at) => setAttribute(this.paths[at], "data-state", tasks.get(on).status));
    setAttribute(this.box, "aria-activedescendant", this.nodes.get(this.active)?.id);
  }

  goTo(id) {
    if (id === undefined || id === null) return;
    this.active = id;
    for (const [other, node] of this.nodes) setAttribute(node, "aria-selected", other === id);
    setAttribute(this.box, "aria-activedescendant", this.nodes.get(id)?.id);
    this.show(id);
    this.on.move(id);
  }

  /** Scroll a node into view. */
  show(id) {
    const place = this.plan?.places.get(id);
    if (!place) return;
    const { box, zoom } = this;
    const [x, y] = [left(place) * zoom, top(place) * zoom];
    if (x < box.scrollLeft || x + WIDTH * zoom > box.scrollLeft + box.clientWidth)
      box.scrollLeft = x - (box.clientWidth - WIDTH * zoom) / 2;
    if (y < box.scrollTop || y + HEIGHT * zoom > box.scrollTop + box.clientHeight)
      box.scrollTop = y - (box.clientHeight - HEIGHT * zoom) / 2;
  }

  scale(zoom) {
    this.zoom = zoom;
    this.sheet.style.transform = `scale(${zoom})`;
    this.room.style.width = `${this.size[0] * zoom}px`;
    this.room.style.height = `${this.size[1] * zoom}px`;
  }

  /** Zoom one step in or out around the middle. */
  step(by) {
    const { box } = this;
    const at = ZOOMS.findIndex((zoom) => zoom >= this.zoom - 0.01);
    const next = ZOOMS[Math.max(0, Math.min(ZOOMS.length - 1, (at < 0 ? ZOOMS.length - 1 : at) + by))];
    const [x, y] = [box.scrollLeft + box.clientWidth / 2, box.scrollTop + box.clientHeight / 2].map(
      (middle) => (middle * next) / this.zoom,
    );
    this.fitted = false;
    this.scale(next);
    box.scrollTo(x - box.clientWidth / 2, y - box.clientHeight / 2);
  }

  /** Show all of it, however small that makes it; not larger than life. */
  fit() {
    if (!this.plan || !this.box.offsetWidth) return;
    const { maxHeight, borderLeftWidth: border } = getComputedStyle(this.box);
    const edges = 2 * parseFloat(border);
    const [width, height] = [this.box.offsetWidth - edges, parseFloat(maxHeight) - edges]; // without scrollbars
    const whole = Math.min(1, width / this.size[0], height / this.size[1]);
    this.fitted = true;
    this.scale(Math.floor(whole * 1_000) / 1_000);
  }

  onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const move = event.shiftKey ? PANS[event.key] : null;
    const place = this.plan?.places.get(this.active);
    const actions = {
      ArrowLeft: () => this.goTo(this.closest(this.before(this.active))),
      ArrowRight: () => this.goTo(this.closest(this.outline.dependents(this.active))),
      ArrowUp: () => this.goTo(this.beside(place, -1)),
      ArrowDown: () => this.goTo(this.beside(place, 1)),
      Home: () => this.goTo(this.plan.layers[0][0]),
      End: () => this.goTo(this.plan.layers.at(-1)[0]),
      Enter: () => this.active !== null && this.on.open(this.active),
      "+": () => this.step(1),
      "=": () => this.step(1),
      "-": () => this.step(-1),
      0: () => this.fit(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    if (move) this.box.scrollBy(...move);
    else if (place || !event.key.startsWith("Arrow")) actions[event.key]();
    else this.goTo(this.plan?.layers.flat()[0]);
  }

  /** The neighbour nearest in height. */
  closest(ids) {
    const { places } = this.plan;
    const { at } = places.get(this.active);
    const drawn = ids.filter((id) => places.has(id));
    return drawn.sort((a, b) => Math.abs(places.get(a).at - at) - Math.abs(places.get(b).at - at))[0];
  }

  beside({ layer }, by) {
    const column = this.plan.layers[layer];
    return column[column.indexOf(this.active) + by];
  }

  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // without a modifier the wheel scrolls as everywhere
    event.preventDefault();
    this.step(event.deltaY < 0 ? 1 : -1);
  }

  /** A click opens a task; dragging scrolls the graph. */
  onDown(event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    const node = event.target.closest(".wb-node");
    const { box } = this;
    const start = {
      x: event.clientX + box.scrollLeft,
      y: event.clientY + box.scrollTop,
      clientX: event.clientX,
      clientY: event.clientY,
    };
    let dragged = false;
    const ending = new AbortController();
    const move = (now) => {
      dragged ||= Math.hypot(now.clientX - start.clientX, now.clientY - start.clientY) > DRAG_PX;
      if (dragged) box.scrollTo(start.x - now.clientX, start.y - now.clientY);
    };
    const up = () => {
      ending.abort();
      if (!node || dragged) return;
      this.active = Number(node.dataset.id);
      this.on.open(this.active);
    };
    window.addEventListener("pointermove", move, { signal: ending.signal });
    window.addEventListener("pointerup", up, { signal: ending.signal });
    window.addEventListener("pointercancel", () => ending.abort(), { signal: ending.signal });
  }
}

const PANS = { ArrowLeft: [-ACROSS, 0], ArrowRight: [ACROSS, 0], ArrowUp: [0, -DOWN], ArrowDown: [0, DOWN] };

function left({ layer }) {
  return EDGE + layer * ACROSS;
}

function top({ at }) {
  return EDGE + at * DOWN;
}

/** The path from the right side of one node, through the bends, to the left side of the other. */
function curve({ from, to, bends }, places) {
  const start = [left(places.get(from)) + WIDTH, top(places.get(from)) + HEIGHT / 2];
  const stops = bends.flatMap((bend) => [
    [left(bend), top(bend) + HEIGHT / 2],
    [left(bend) + WIDTH, top(bend) + HEIGHT / 2],
  ]);
  const points = [start, ...stops, [left(places.get(to)), top(places.get(to)) + HEIGHT / 2]];
  const parts = points.slice(1).map(([x, y], at) => {
    const [x0, y0] = points[at];
    const middle = (x0 + x) / 2;
    return y === y0 ? `L${x} ${y}` : `C${middle} ${y0} ${middle} ${y} ${x} ${y}`;
  });
  return `M${start.join(" ")}${parts.join("")}`;
}
