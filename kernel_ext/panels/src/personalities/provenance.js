/** Where a personality comes from, and what was checked: its owner, the node that sent it, its hash, and when. */

import { Facts } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { dateTime } from "../lib/format.js";
import { FRESHNESS } from "./state.js";

export class Provenance {
  constructor() {
    this.facts = new Facts();
    this.element = h(
      "div",
      { class: "wb-stack" },
      h("h4", { class: "wb-strong" }, "Where it comes from"),
      this.facts.element,
    );
  }

  /** @param {any} personality as `get_personality` gives it */
  show({ rid, profile, provenance }) {
    const { owner, owner_name: name, origin, origin_name: sender, sha256, freshness } = provenance;
    this.element.hidden = freshness === "unpublished";
    if (this.element.hidden) return;
    const own = freshness === "own";
    this.facts.update([
      ["RID", code(rid)],
      ["Owner", h("div", {}, own ? `this project, ${name}` : name, code(owner))],
      ["Sent by", !own && (origin === owner ? "its owner" : h("div", {}, sender, code(origin)))],
      ["State", !own && (freshness === "live" ? "the node that sent it answers" : FRESHNESS.stale)],
      ["SHA-256", code(sha256)],
      ["Published", dateTime(provenance.published_at)],
      [own ? "First published" : "First received", dateTime(provenance.first_seen)],
      ["Changed", dateTime(provenance.changed_at)],
      ["Last received", !own && dateTime(provenance.last_seen)],
      ["Node", profile.base_url && code(profile.base_url)],
      ["Agent", profile.mcp_url && code(profile.mcp_url)],
    ]);
  }
}

function code(text) {
  return h("div", { class: "wb-id" }, h("code", {}, text));
}
