/** Personalities and nodes as a person reads them. Pure. */

import { ago } from "../lib/format.js";
import { isOwn } from "../network/peers.js";

/** What a change of a personality was, by the type of its event. */
export const CHANGES = { NEW: "Published", UPDATE: "Changed", FORGET: "Forgotten" };

/** Whether it is the latest version. @param {any} personality as `get_personality` gives it */
export function isLatest({ version, versions }) {
  return version === versions[0];
}

/** Whose a personality is, and the attributes of the badge that says so. @param {any} provenance @returns {[string, object]} */
export function ownerBadge(provenance) {
  const own = isOwn({ provenance });
  const title = own ? "An agent of this project" : `Owned by ${provenance.owner}`;
  return [own ? "Yours" : provenance.owner_name, { "data-own": own, title }];
}

/** Own personalities first, then by name. */
export function byOwnership(one, other) {
  return Number(isOwn(other)) - Number(isOwn(one)) || compare(one.name, other.name);
}

/** Whether every word is found in the name, the owner, or what is known of its traits. @param {any} row @param {string} text in lower case */
export function matches(row, text) {
  if (!text) return true;
  const { name, version, description = "", highlights, tools, provenance } = row;
  const traits = highlights.map((trait) => `${trait.name} ${trait.text}`);
  const words = [name, version, description, ...traits, ...tools, provenance.owner_name ?? ""].join("\n").toLowerCase();
  return text.split(/\s+/).every((word) => words.includes(word));
}

/** What the freshness of a personality means. */
export const FRESHNESS = {
  own: "An agent of this project",
  unpublished: "This project is in no network: other nodes receive it when it joins one",
  live: "The node that sent it answered when it was last asked",
  stale: "The node that sent it does not answer, is blocked, or this project is in no network",
};

/** "2 versions · through coordinator · received 3 min ago" @param {any} row @param {number} now in ms */
export function freshnessText({ versions, provenance }, now) {
  const {
    freshness,
    owner,
    origin,
    origin_name: through,
    changed_at: changed,
    last_seen: last,
    answered_at: answered,
  } = provenance;
  if (freshness === "unpublished") return "not published yet";
  const own = freshness === "own";
  const relay = own || origin === owner ? null : `through ${through}`;
  const many = versions.length > 1 ? `${versions.length.toLocaleString("en")} versions` : null;
  const since = own ? `changed ${ago(changed, now)}` : `received ${ago(last, now)}`;
  const old = freshness === "stale" && (answered ? `stale, answered ${ago(answered, now)}` : "stale");
  return [many, relay, old, since].filter(Boolean).join(" · ");
}

function compare(one, other) {
  return one < other ? -1 : Number(one > other);
}
