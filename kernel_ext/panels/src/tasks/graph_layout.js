/**
 * The layout of a graph without cycles: earlier nodes on the left, few crossing edges. Layers by longest path, order by
 * barycentres, then positions near those of the neighbours. Pure.
 */

const SWEEPS = 6;
const MANY_BENDS = 3_000;
/** The height of a bend, in heights of a node. */
const BEND = 0.4;

/**
 * @typedef {{layer: number, at: number}} Place column, and row in units of one node; rows may be fractions
 * @typedef {{from: number, to: number, bends: Place[]}} Edge
 * @param {number[]} ids
 * @param {[number, number][]} pairs `[later, earlier]`, both among the ids
 * @returns {{places: Map<number, Place>, edges: Edge[], layers: number[][], columns: number, rows: number}}
 */
export function layout(ids, pairs) {
  const before = new Map(ids.map((id) => [id, []]));
  const after = new Map(ids.map((id) => [id, []]));
  for (const [later, earlier] of pairs) {
    before.get(later).push(earlier);
    after.get(earlier).push(later);
  }
  const depth = depths(ids, before, after);
  const graph = withBends(ids, pairs, depth);
  const layers = orderLayers(graph);
  const rows = placeRows(graph, layers);
  const place = (key) => ({ layer: graph.depth.get(key), at: rows.get(key) });
  return {
    places: new Map(ids.map((id) => [id, place(id)])),
    edges: graph.paths.map(({ from, to, bends }) => ({ from, to, bends: bends.map(place) })),
    layers: layers.map((layer) => layer.filter((key) => typeof key === "number")),
    columns: layers.length,
    rows: Math.max(0, ...rows.values()) + 1,
  };
}

/** The layer of each node: as far left as its dependencies allow; one without any, right before the first that needs it. */
function depths(ids, before, after) {
  const depth = new Map();
  const missing = new Map(ids.map((id) => [id, before.get(id).length]));
  const ready = ids.filter((id) => !missing.get(id));
  for (const id of ready) {
    depth.set(id, Math.max(0, ...before.get(id).map((neighbour) => depth.get(neighbour) + 1)));
    for (const next of after.get(id)) {
      missing.set(next, missing.get(next) - 1);
      if (!missing.get(next)) ready.push(next);
    }
  }
  for (const id of ids) {
    if (!before.get(id).length && after.get(id).length)
      depth.set(id, Math.min(...after.get(id).map((neighbour) => depth.get(neighbour))) - 1);
  }
  return depth;
}

/** The graph with a bend in every layer that an edge crosses, unless there are too many to be worth it. */
function withBends(ids, pairs, depth) {
  const graph = { depth: new Map(depth), left: new Map(), right: new Map(), paths: [], keys: [...ids] };
  const passed = pairs.reduce((sum, [later, earlier]) => sum + depth.get(later) - depth.get(earlier) - 1, 0);
  for (const [to, from] of pairs) {
    const bends = [];
    for (let layer = depth.get(from) + 1; passed <= MANY_BENDS && layer < depth.get(to); layer += 1) {
      const key = `${from}-${to}-${layer}`;
      graph.depth.set(key, layer);
      graph.keys.push(key);
      bends.push(key);
    }
    graph.paths.push({ from, to, bends });
    [from, ...bends].forEach((node, index) => {
      const next = bends[index] ?? to;
      join(graph.right, node, next);
      join(graph.left, next, node);
    });
  }
  return graph;
}

/** The nodes and bends of each layer from left to right, each from top to bottom. */
function orderLayers({ keys, depth, left, right }) {
  const layers = [];
  for (const key of keys) (layers[depth.get(key)] ??= []).push(key);
  for (let layer = 0; layer < layers.length; layer += 1) layers[layer] ??= [];
  const rank = new Map();
  const number = (layer) => layer.forEach((key, index) => rank.set(key, index));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    for (const layer of forward ? layers : [...layers].reverse()) {
      const centre = new Map(layer.map((key) => [key, mean((forward ? left : right).get(key), rank) ?? rank.get(key)]));
      layer.sort((a, b) => centre.get(a) - centre.get(b) || rank.get(a) - rank.get(b));
      number(layer);
    }
  }
  return layers;
}

/** The row of each node and bend, as near to its neighbours as the others in its layer allow. */
function placeRows({ left, right }, layers) {
  const row = new Map();
  for (const layer of layers) layer.forEach((key, index) => row.set(key, index));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forward = sweep % 2 === 0;
    for (const layer of forward ? layers : [...layers].reverse()) {
      const rows = layer.map((key) => mean((forward ? left : right).get(key), row) ?? row.get(key));
      separate(
        rows,
        layer.map((key) => (typeof key === "number" ? 1 : BEND)),
      ).forEach((at, index) => row.set(layer[index], at));
    }
  }
  const top = Math.min(0, ...row.values());
  for (const [key, at] of row) row.set(key, at - top);
  return row;
}

/** Rows that do not overlap and are as near to the wanted ones as possible (pool adjacent violators). */
function separate(rows, sizes) {
  let room = 0;
  const offsets = sizes.map((size, index) => (room += index ? (sizes[index - 1] + size) / 2 : 0));
  const pools = [];
  rows.forEach((row, index) => {
    pools.push({ sum: row - offsets[index], size: 1 });
    while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).size >= pools.at(-1).sum / pools.at(-1).size) {
      const { sum, size } = pools.pop();
      pools.at(-1).sum += sum;
      pools.at(-1).size += size;
    }
  });
  return pools.flatMap(({ sum, size }) => Array(size).fill(sum / size)).map((at, index) => at + offsets[index]);
}

function mean(neighbours, values) {
  if (!neighbours?.length) return null;
  return neighbours.reduce((sum, key) => sum + values.get(key), 0) / neighbours.length;
}

function join(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/**
 * At most `limit` nodes: those nearest to the first of these, then those nearest to the next one that is not among them.
 * @param {number[]} starts @param {(id: number) => number[]} neighbours @param {number} limit
 */
export function nearestToAll(starts, neighbours, limit) {
  const nodes = new Set();
  for (const start of starts) {
    if (nodes.size >= limit) break;
    if (!nodes.has(start)) for (const id of nearest(start, neighbours, limit - nodes.size)) nodes.add(id);
  }
  return [...nodes];
}

/**
 * The nodes nearest to one along edges in both directions, itself first.
 * @param {number} start @param {(id: number) => number[]} neighbours @param {number} limit
 */
export function nearest(start, neighbours, limit) {
  const nodes = new Set([start]);
  for (const id of nodes) {
    for (const next of neighbours(id)) {
      if (nodes.size >= limit) return [...nodes];
      nodes.add(next);
    }
  }
  return [...nodes];
}
