/** Peers and the edges between nodes, as a person reads them. Pure. */

/** Labels and icons of the states of peers. */
export const STATES = {
  reachable: ["Reachable", "completed"],
  polling: ["Fetches what is for it", "completed"],
  unreachable: ["Unreachable", "warning"],
  blocked: ["Blocked", "cancelled"],
};
/** Labels of the states of edges. */
const EDGES = { APPROVED: "approved", PROPOSED: "proposed" };
/** How events get to the target of an edge. */
const WAYS = { WEBHOOK: "by webhook", POLL: "by polling" };

/** Those with a problem first, then by name. */
export function byName(one, other) {
  return one.name.localeCompare(other.name, undefined, { numeric: true }) || (one.rid < other.rid ? -1 : 1);
}

/** What an edge from or to a peer is: "approved, by webhook". @param {any|undefined} edge */
export function edgeText(edge) {
  return edge ? `${EDGES[edge.status]}, ${WAYS[edge.edge_type]}` : "none";
}

/**
 * One line between two nodes: both directions in one where they are alike.
 * @typedef {{from: string, to: string, both: boolean, status: string, edge_type: string}} Line
 * @param {{source: string, target: string, status: string, edge_type: string}[]} edges
 * @returns {Line[]}
 */
export function linesOf(edges) {
  const found = new Map();
  for (const { source, target, status, edge_type: type } of edges) {
    const [one, other] = source < target ? [source, target] : [target, source];
    const key = [one, other, status, type].join(" ");
    const known = found.get(key);
    if (known) known.both = true;
    else found.set(key, { from: source, to: target, both: false, status, edge_type: type });
  }
  return [...found.values()];
}

/** A node for people: its name and the mark of its key, "lab·830c0d" of "orn:koi-net.node:lab+<hash>". @param {string} rid */
export function nodeName(rid) {
  const [, name, mark] = /^orn:koi-net\.node:(.+)\+([^+]{0,6})[^+]*$/.exec(rid) ?? [];
  return name ? `${name}·${mark}` : rid;
}

/** Whether a personality is one of this project. */
export function isOwn({ provenance }) {
  return provenance?.freshness === "own" || provenance?.freshness === "unpublished";
}
