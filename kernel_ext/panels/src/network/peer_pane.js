/** One peer, opened: its address, its state, what was refused of it, what it may call, and blocking it. */

import { useAction, useQuestion } from "../components/action_form.js";
import { DetailPane, FactList } from "../components/detail_pane.js";
import { Button, Embedded, Icon, drawnIn, html } from "../components/ui.js";
import { useLayoutEffect, useOnce, useRequests, useState } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { ago, dateTime, plural } from "../lib/format.js";
import { Refresh } from "../link/polling.js";
import { PeerPermissions } from "./peer_permissions.js";
import { edgeText, nodeName, stateOf } from "./peers.js";

const REJECTED =
  "Rejected for good: it is not sent again as it is. Change what is published, or have the node updated.";
const FAILED =
  "The node failed with it: it is sent again when both nodes are compared. If it stays here, tell who runs the node.";

export class PeerPane {
  /** @param {any} desk @param {{close: () => void, open: (name: string) => void}} on @param {AbortSignal} signal */
  constructor(desk, on, signal) {
    this.desk = desk;
    this.on = on;
    const keydown = (event) => this.onKey(event);
    this.element = h("div", { style: "display: contents", on: { keydown } });
    this.draw = drawnIn(this.element, signal);
  }

  /** @param {any} peer its row; null: none is opened @param {any} network its row @param {boolean} enabled @param {number} now in ms */
  update(peer, network, enabled, now) {
    const { desk, on } = this;
    this.draw(peer && html`<${Peer} key=${peer.rid} ...${{ desk, on, peer, network, enabled, now }} />`);
  }

  focus() {
    this.element.querySelector("h4")?.focus();
  }

  onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.target.matches(".wb-input")) return;
    event.preventDefault();
    this.on.close();
  }
}

function Peer({ desk, on, peer, network, enabled, now }) {
  const { rid } = peer;
  const reader = useRequests(desk);
  const permissions = useOnce(() => new PeerPermissions(desk));
  const [{ refusals, rejections }, setDetails] = useState({ refusals: [], rejections: [] });
  useLayoutEffect(() => {
    const read = async () => {
      const details = await reader.send("get_peer", { peer: rid });
      reader.clearError();
      permissions.show(rid, details.permissions);
      setDetails(details);
    };
    return followed(desk.store, rid, new Refresh(read, (error) => reader.showError(error)));
  }, []);
  useLayoutEffect(() => permissions.update(enabled, Boolean(peer.blocked_at)));
  const [label, shape] = stateOf(peer, now);
  const mark = html`<${Icon} name=${shape} />`;
  const names = publishedBy(rid, desk.store.tables);
  return html`<${DetailPane} ...${{ title: nodeName(rid), noun: "node", mark, onClose: on.close }}>
    <div class="wb-indented wb-wrap">${stateText(peer, label, now)}</div>
    <${Block} ...${{ desk, peer, enabled }} />
    <${Embedded} element=${reader.errorBox} />
    <${FactList} facts=${factsOf(peer, network, now)} />
    <${Listed} label="Personalities" class="wb-traits" items=${names.map((name) => personality(name, on.open))} />
    <${Embedded} element=${permissions.element} />
    <${Listed} label="Refused messages and calls" class="wb-stack" items=${refusals.map(refusal)} />
    <${Listed} label="Rejected by it" class="wb-stack" items=${rejections.map(rejection)} />
  <//>`;
}

/** Read what the row of a peer does not have, and again after events about it. @returns {() => void} ends that */
function followed(store, rid, reading) {
  const ended = new AbortController();
  store.subscribe(() => store.concerns(`peer:${rid}`) && reading.now(), ended.signal);
  ended.signal.addEventListener("abort", () => reading.stop());
  reading.now();
  return () => ended.abort();
}

/** The button that blocks a peer, after a question, or unblocks it. */
function Block({ desk, peer: { rid, blocked_at: blocked }, enabled }) {
  const name = nodeName(rid);
  const requests = useRequests(desk);
  const { question, ask } = useQuestion();
  const unblock = () => requests.run("unblock_peer", { peer: rid });
  const [isBusy, run] = useAction(unblock, () => desk.announce(`${name} is unblocked.`));
  const words = {
    label: `Block ${name}`,
    working: "Blocking…",
    consequence: "Nothing is accepted from it or sent to it, and what it has published is removed here.",
    act: () => requests.run("block_peer", { peer: rid }),
    onDone: (_, end) => {
      end();
      desk.announce(`${name} is blocked.`);
    },
  };
  const label = isBusy ? "Unblocking…" : blocked ? "Unblock" : "Block…";
  const press = (event) => (blocked ? run() : ask(event, words));
  return html`<div class="wb-line"><${Button} label=${label} disabled=${isBusy || !enabled} onClick=${press} /></div>
    ${question}
    <${Embedded} element=${requests.errorBox} />`;
}

function factsOf(peer, { rid: own, edges }, now) {
  const edge = (from, to) => edgeText(edges.find(({ source, target }) => source === from && target === to));
  const code = (text) => html`<code class="wb-id">${text}</code>`;
  return [
    ["Address", peer.base_url && code(peer.base_url)],
    ["RID", code(peer.rid)],
    ["Kind", peer.node_type === "PARTIAL" ? "sends requests, but takes none" : null],
    ["Role", peer.is_relay && "first contact: passes on what other nodes publish"],
    ["Sends to us", edge(peer.rid, own)],
    ["Gets from us", edge(own, peer.rid)],
    ["Known since", dateTime(peer.first_seen)],
    ["Last contact", ago(peer.last_seen, now)],
    ["Waiting", peer.waiting > 0 && `${plural(peer.waiting, "event")} to be sent`],
    ["Failures", peer.failures > 0 && `${plural(peer.failures, "request")} in a row`],
  ];
}

/** What there is of a kind, under its label; nothing where there is none. */
function Listed({ label, items, class: className }) {
  if (!items.length) return null;
  return html`<div>
    <div class="wb-label">${label}</div>
    <ul class=${className}>
      ${items}
    </ul>
  </div>`;
}

function publishedBy(rid, { personalities }) {
  const all = [...personalities.values()];
  return all.filter(({ provenance }) => provenance?.owner === rid).map(({ name }) => name);
}

function personality(name, open) {
  return html`<li key=${name}><${Button} class="wb-link" label=${name} onClick=${() => open(name)} /></li>`;
}

/** What was refused of a node for a reason. @param {any} row */
export function refusal({ code, count, last_at: last, last_reason: reason, is_usual: usual }) {
  const note = usual ? " (news that crossed: usual, and not counted)" : "";
  return html`<li class="wb-refusal">
    <div><code>${code}</code> × ${count.toLocaleString("en")}, last ${dateTime(last)}${note}</div>
    <div class="wb-muted wb-wrap">${reason}</div>
  </li>`;
}

/** An event of this node that the peer does not accept: for good, or until it is tried again. */
function rejection({ rid, code, reason, is_final: isFinal, rejected_at: at }) {
  return html`<li class="wb-refusal">
    <div class="wb-wrap"><code class="wb-id">${rid}</code> ${dateTime(at)}</div>
    <div class="wb-wrap">${isFinal ? REJECTED : FAILED}</div>
    <div class="wb-muted wb-wrap"><code>${code}</code> ${reason}</div>
  </li>`;
}

/** "Unreachable: connection refused; tried again at 10:05" */
function stateText({ state, last_error: error, retry_at: retry, blocked_at: at, blocked_by: by }, label, now) {
  if (state === "blocked") return `Blocked by ${by}, ${ago(at, now)}`;
  if (state !== "unreachable") return label;
  const again =
    retry && (Date.parse(retry) > now ? ` It is tried again at ${dateTime(retry)}.` : " It is being tried again.");
  return `${label}: ${error ?? "no answer"}.${again ?? ""}`;
}
