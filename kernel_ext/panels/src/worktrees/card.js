/** One worktree on a card: how it stands, and what to do next. Every line is always there: cards keep their height. */

import { button } from "../lib/controls.js";
import { freshId, h, setText } from "../lib/dom.js";
import { age, counted, some } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { WorktreeActions } from "./actions.js";
import { conflictsOf, stateWords, troublesOf, YOURS } from "./state.js";

const ICONS = {
  awaiting: "integration",
  failing: "failed",
  checking: "in_progress",
  queued: "claimed",
  integrating: "in_progress",
  active: "branch",
  closed: "cancelled",
};

/** The picture of a state. @param {string} state */
export function stateIcon(state) {
  return icon(ICONS[state]);
}

export class WorktreeCard {
  /** @param {any} desk @param {{open: (name: string) => void, said: (text: string) => void}} on */
  constructor(name, desk, on) {
    const id = freshId("worktree");
    this.mark = h("span", { class: "wb-mark" });
    this.opener = button(name, "wb-opener", () => on.open(name));
    this.opener.id = id;
    this.word = h("span", { class: "wb-worktree-state" });
    this.branches = h("span", { class: "wb-muted wb-cut" });
    this.commits = h("div", { class: "wb-cut wb-digits" });
    this.more = h("div", { class: "wb-muted wb-cut" });
    this.clash = h("div", { class: "wb-worktree-conflicts" });
    this.actions = new WorktreeActions(desk, { open: () => on.open(name), said: on.said });
    this.element = h(
      "li",
      { class: "wb-worktree wb-frame wb-stack", "aria-labelledby": id },
      h(
        "div",
        {},
        h("div", { class: "wb-worktree-head" }, this.mark, this.opener, this.branches, this.word),
        this.commits,
        this.more,
        this.clash,
      ),
      this.actions.buttons,
      this.actions.asked,
      this.actions.asker.problem,
    );
  }

  /** @param {any} worktree @param {string} state @param {{agents: Set<string>, tasks: number}} there @param {number} now */
  show(worktree, state, there, now) {
    if (this.state !== state) this.mark.replaceChildren(stateIcon(state));
    this.state = state;
    this.element.classList.toggle("wb-attention", YOURS.has(state));
    setText(this.word, stateWords(worktree, state));
    setText(this.branches, branchesOf(worktree));
    this.branches.title = `${worktree.branch_name} → ${worktree.integration_target}`;
    setCounts(this.commits, worktree);
    const facts = factsOf(worktree, there, now).join(" · ");
    setText(this.more, facts);
    this.more.title = facts;
    setClash(this.clash, worktree);
    this.actions.show(worktree, state, there.agents);
  }
}

/** "wb/robust/main → main"; a branch that is called as usual is not named. */
function branchesOf({ id: name, branch_name: branch, integration_target: target }) {
  return branch === `wb/${name}/main` ? `→ ${target}` : `${branch} → ${target}`;
}

/** "3 ahead, 1 behind · 4 files +3 −1"; what there is none of is left out. */
export function setCounts(element, { ahead = 0, behind = 0, changed = 0, added = 0, removed = 0 }) {
  const number = (count) => count.toLocaleString("en");
  const commits = [ahead ? `${number(ahead)} ahead` : "", behind ? `${number(behind)} behind` : ""]
    .filter(Boolean)
    .join(", ");
  const files = changed ? `${counted(changed, "file")} +${number(added)} −${number(removed)}` : "";
  const text = [commits || "no new commits", files].filter(Boolean).join(" · ");
  setText(element, text);
  element.title = text;
}

/** What is not committed, who works there, what is to be done, when something happened. @returns {string[]} */
export function factsOf({ uncommitted, last_activity: last }, { agents, tasks }, now) {
  const active = last ? age(last, now) : null;
  return [
    uncommitted ? `${uncommitted.toLocaleString("en")} uncommitted` : null,
    agents.size ? some([...agents], 2) : "no agent",
    tasks ? counted(tasks, "open task") : null,
    active && (active === "just now" ? "active just now" : `active ${active} ago`),
  ].filter(Boolean);
}

/** What is wrong, or would conflict, or that nothing does. */
export function setClash(element, worktree) {
  const found = conflictsOf(worktree);
  const bad = found.length > 0 || Boolean(worktree.problem);
  const text = worktree.problem
    ? worktree.problem
    : found.length
      ? `Conflicts with ${some(
          found.map(([other, files]) => `${other} (${files.length})`),
          2,
        )}`
      : "No conflicts predicted";
  if (element.textContent === text) return;
  element.title = troublesOf(worktree).join("\n");
  element.classList.toggle("wb-muted", !bad);
  element.replaceChildren(...(bad ? [icon("warning")] : []), h("span", { class: "wb-cut" }, text));
}
