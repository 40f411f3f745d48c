/** Peers and the edges between nodes, as a person reads them. Pure. */

import { ago } from "../lib/format.js";

/** Labels and icons of the states of peers; see `stateOf`. */
const STATES = {
  reachable: ["Answered", "completed"],
  polling: ["Fetched what is for it", "completed"],
  unreachable: ["Unreachable", "warning"],
  relayed: ["Known through the first contact", "question"],
  blocked: ["Blocked", "cancelled"],
};
/** How long an answer vouches for a node, in ms: nodes are asked more often. */
const FRESH = 120_000;

/** The state of a peer with its age, "Answered 12 s ago", and its icon. @param {any} peer @param {number} now in ms @returns {[string, string]} */
export function stateOf({ state, last_seen: last }, now) {
  const [label, shape] = STATES[state] ?? [state, "question"];
  if (state !== "reachable" && state !== "polling") return [label, shape];
  return [`${label} ${ago(last, now)}`, now - Date.parse(last) > FRESH ? "question" : shape];
}
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
  const links = new Map();
  for (const { source, target, status, edge_type: type } of edges) {
    const [one, other] = source < target ? [source, target] : [target, source];
    const key = [one, other, status, type].join(" ");
    const link = links.get(key);
    if (link) link.both = true;
    else links.set(key, { from: source, to: target, both: false, status, edge_type: type });
  }
  return [...links.values()];
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
