/** The changes that were requested in a worktree: who, when, with which comments, and which of them are outdated. */

import { button } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { ago, plural } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { currentPlace, placeText } from "./comments.js";

const MOST = 5;

/** The requests about a worktree, the newest first. @param {any} tables @param {string} name @returns {any[]} */
export function requestsOf(tables, name) {
  const all = [...tables.change_requests.values()].filter((request) => request.worktree === name);
  return all.sort((a, b) => b.id - a.id);
}

/** What a card says of the changes that were requested; null if none were. @param {any} approval @param {any} tables */
export function requestedText({ payload, changes_requested_at: open }, tables) {
  const [newest] = requestsOf(tables, payload.worktree);
  if (!newest) return open ? "Changes were requested. The question stays open." : null;
  const { comments, commits_since: since } = newest;
  const outdated = comments.filter((comment) => comment.outdated).length;
  const count = comments.length ? plural(comments.length, "comment") : "a note";
  if (!since) return `Changes were requested, with ${count}; the agents were told. The question stays open.`;
  const changed = outdated ? ` ${plural(outdated, "comment")} ${outdated === 1 ? "is" : "are"} outdated.` : "";
  return `Changes were requested, with ${count}. ${plural(since, "commit")} came since.${changed}`;
}

export class Requested {
  /** @param {any} desk @param {{since: (request: any) => void, goTo: (comment: any) => void}} on */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    this.element = h("ul", { class: "wb-requested", "aria-label": "Requested changes" });
  }

  /** @param {string} name of the worktree @param {number} now in ms */
  update(name, now) {
    const requests = requestsOf(this.desk.store.tables, name).slice(0, MOST);
    const key = JSON.stringify([name, requests, Math.floor(now / 60_000)]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.element.replaceChildren(...requests.map((request) => this.request(request, now)));
  }

  request(request, now) {
    const { person, requested_by: by, requested_at: at, commit, commits_since: since, task_id: task } = request;
    const facts = [ago(at, now), `at ${commit.slice(0, 7)}`, task && `task ${task}`].filter(Boolean).join(" · ");
    const link = button(`Show what changed since (${plural(since, "commit")})`, "wb-link", () =>
      this.on.since(request),
    );
    const head = [
      h("span", { class: "wb-strong" }, `Changes requested by ${person ?? by}`),
      h("span", { class: "wb-muted wb-grow" }, facts),
      since ? link : null,
    ];
    return h(
      "li",
      { class: "wb-stack" },
      h("div", { class: "wb-line" }, ...head),
      request.note ? h("p", { class: "wb-comment-text" }, request.note) : null,
      h("ul", { class: "wb-list" }, ...request.comments.map((comment) => this.comment(comment))),
    );
  }

  comment(comment) {
    const where = placeText(currentPlace(comment));
    const outdated = h("span", { class: "wb-state wb-muted" }, icon("cancelled"), "outdated");
    const opener = button(where, "wb-link wb-mono", () => this.on.goTo(comment));
    const text = h("span", { class: "wb-grow wb-comment-text" }, comment.text);
    return h("li", {}, comment.outdated ? h("code", {}, where) : opener, text, comment.outdated ? outdated : null);
  }
}
