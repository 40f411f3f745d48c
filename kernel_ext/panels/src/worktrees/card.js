/** One worktree on a card: its state, and what to do next. Every line is always there, so that cards keep their height. */

import { button } from "../lib/controls.js";
import { freshId, h, setAttribute, setText } from "../lib/dom.js";
import { age, plural, shortList } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { WorktreeActions } from "./actions.js";
import { conflictsOf, PENDING, problemsOf, stateLabel } from "./state.js";

const ICONS = {
  awaiting: "integration",
  failing: "failed",
  checking: "in_progress",
  queued: "claimed",
  integrating: "in_progress",
  active: "branch",
  closed: "cancelled",
};

/** @param {string} state of a worktree */
export function stateIcon(state) {
  return icon(ICONS[state]);
}

/** The number first, because the names may be cut. @param {string[]} names */
function conflictsText(names) {
  return names.length > 2 ? `${names.length} others: ${shortList(names, 2)}` : names.join(", ");
}

export class WorktreeCard {
  /** @param {string} name @param {any} desk @param {{open: (name: string) => void, done: (text: string) => void}} on */
  constructor(name, desk, on) {
    const id = freshId("worktree");
    this.mark = h("span", { class: "wb-mark" });
    this.opener = button(name, "wb-opener", () => on.open(name));
    this.opener.id = id;
    this.state = h("span", { class: "wb-worktree-state" });
    this.branches = h("span", { class: "wb-muted wb-cut" });
    this.counts = h("div", { class: "wb-cut wb-digits" });
    this.facts = h("div", { class: "wb-muted wb-cut" });
    this.conflicts = h("div", { class: "wb-worktree-conflicts" });
    this.actions = new WorktreeActions(desk, { open: () => on.open(name), done: on.done });
    const head = h("div", { class: "wb-worktree-head" }, this.mark, this.opener, this.branches, this.state);
    this.element = h(
      "li",
      { class: "wb-worktree wb-frame wb-stack", "aria-labelledby": id },
      h("div", {}, head, this.counts, this.facts, this.conflicts),
      this.actions.buttons,
      this.actions.confirmBox,
      this.actions.requests.errorBox,
    );
    this.elements = [this.element];
  }

  /** @param {any} worktree @param {string} state @param {{agents: Set<string>, tasks: number}} occupants @param {number} now */
  show(worktree, state, occupants, now) {
    if (this.drawn !== state) this.mark.replaceChildren(stateIcon(state));
    this.drawn = state;
    this.element.classList.toggle("wb-attention", PENDING.has(state));
    setText(this.state, stateLabel(worktree, state));
    setText(this.branches, branchesText(worktree));
    setAttribute(this.branches, "title", `${worktree.branch_name} → ${worktree.integration_target}`);
    drawCounts(this.counts, worktree);
    const facts = factsText(worktree, occupants, now);
    setText(this.facts, facts);
    setAttribute(this.facts, "title", facts);
    this.drawConflicts(worktree);
    this.actions.show(worktree, state, occupants.agents);
  }

  /** What is wrong, what would conflict, or that nothing would. */
  drawConflicts(worktree) {
    const pairs = conflictsOf(worktree);
    const bad = pairs.length > 0 || Boolean(worktree.problem);
    const names = pairs.map(([other, files]) => `${other} (${plural(files.length, "file")})`);
    const conflicts = pairs.length ? `Conflicts with ${conflictsText(names)}` : "No conflicts predicted";
    const text = worktree.problem ?? conflicts;
    if (this.conflicts.textContent === text) return;
    setAttribute(this.conflicts, "title", problemsOf(worktree).join("\n"));
    this.conflicts.classList.toggle("wb-muted", !bad);
    this.conflicts.replaceChildren(...(bad ? [icon("warning")] : []), h("span", { class: "wb-cut" }, text));
  }
}

/** "wb/robust/feature → main"; a branch with the usual name is not named. */
function branchesText({ id: name, branch_name: branch, integration_target: target }) {
  return branch === `wb/${name}/main` ? `→ ${target}` : `${branch} → ${target}`;
}

/** "3 ahead, 1 behind · 4 files +3 −1", without what is zero. @param {HTMLElement} element @param {any} worktree */
export function drawCounts(element, { ahead = 0, behind = 0, changed = 0, added = 0, removed = 0 }) {
  const number = (count) => count.toLocaleString("en");
  const commits = [ahead ? `${number(ahead)} ahead` : "", behind ? `${number(behind)} behind` : ""];
  const files = changed ? `${plural(changed, "file")} +${number(added)} −${number(removed)}` : "";
  const text = [commits.filter(Boolean).join(", ") || "no new commits", files].filter(Boolean).join(" · ");
  setText(element, text);
  setAttribute(element, "title", text);
}

/** "2 uncommitted · ada · 1 open task · active 3 min ago" */
export function factsText({ uncommitted, last_activity: last }, { agents, tasks }, now) {
  const since = last && age(last, now);
  return [
    uncommitted ? `${uncommitted.toLocaleString("en")} uncommitted` : null,
    agents.size ? shortList([...agents], 2) : "no agent",
    tasks ? plural(tasks, "open task") : null,
    since && (since === "just now" ? "active just now" : `active ${since} ago`),
  ]
    .filter(Boolean)
    .join(" · ");
}
