/** Reviewing the changes of a worktree: comments on lines, collected, and sent together as a request for changes. */

import { button, checkbox, enable, form, select, setOptions, textarea } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { personaOptions } from "../link/choices.js";
import { RequestRunner } from "../link/request_runner.js";
import { commentForm, currentPlace, draftRow, place, sentRow } from "./comments.js";
import { requestsOf } from "./requested.js";

const PREFERRED = "implementer";
const SENT = ["path", "side", "line", "end_line", "text"];
const OPEN = new Set(["pending", "claimed", "in_progress"]);

export class Review {
  /** @param {any} desk @param {{changed: () => void}} on comments were added or removed */
  constructor(desk, on) {
    this.desk = desk;
    this.on = on;
    this.requests = new RequestRunner(desk);
    /** Those not sent yet, by worktree: they outlive the page. @type {Map<string, import("./comments.js").Draft[]>} */
    this.drafts = new Map();
    /** The forms of drafts that are being changed. @type {Map<import("./comments.js").Draft, {element: HTMLElement}>} */
    this.editing = new Map();
    this.opener = button("Request changes…", "wb-button", () => this.toggle());
    this.opener.setAttribute("aria-expanded", "false");
    this.element = this.makeForm();
  }

  makeForm() {
    this.summary = h("p", { class: "wb-strong" });
    this.note = textarea("", 2, {
      placeholder: "About all of it (optional with comments)",
      "aria-label": "Note about all changes",
      maxlength: 10_000,
      on: { input: () => this.draw() },
    });
    this.note.spellcheck = true;
    this.task = checkbox("Create a task with them for", () => {});
    this.persona = select([], "", { class: "wb-input wb-narrow", "aria-label": "Persona of the task" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Request changes");
    this.discard = button("Discard comments", "wb-button", () => this.discardAll());
    const cancel = button("Cancel", "wb-button", () => this.toggle(false));
    const line = h("div", { class: "wb-line" }, this.submit, cancel, this.discard, this.task.element, this.persona);
    const hint = "Press the number of a line to comment on it; Shift and a press on another one makes it a range.";
    return form(
      { class: "wb-review wb-box wb-stack", hidden: true, "aria-label": "Request changes" },
      { submit: () => this.send(), escape: () => this.toggle(false) },
      this.summary,
      h("p", { class: "wb-muted" }, hint),
      this.note,
      line,
      this.requests.errorBox,
    );
  }

  /** The comments of this worktree that were not sent yet. */
  get mine() {
    return this.drafts.get(this.name) ?? [];
  }

  /** Begin with another worktree. @param {any} worktree */
  show(worktree) {
    this.name = worktree.id;
    this.writing = null;
    this.editing.clear();
    this.requests.clearError();
    this.note.value = "";
    const isOpen = ({ worktree: name, status }) => name === worktree.id && OPEN.has(status);
    this.task.box.checked = ![...this.desk.store.tables.tasks.values()].some(isOpen); // else an agent will read them
    this.toggle(this.mine.length > 0, false);
  }

  /** @param {any} worktree its row */
  update(worktree) {
    this.opener.hidden = worktree.status !== "active";
    const personas = personaOptions(this.desk.store.tables);
    const preferred = this.persona.value || (personas.some(([id]) => id === PREFERRED) ? PREFERRED : undefined);
    setOptions(this.persona, [["", personas]], preferred);
    this.draw();
  }

  toggle(open = this.element.hidden, focus = true) {
    this.element.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
    this.draw();
    if (focus) (open ? this.note : this.opener).focus();
  }

  draw() {
    const count = this.mine.length;
    setText(this.summary, count ? `${plural(count, "comment")}, not sent yet` : "Request changes instead of a merge");
    this.discard.hidden = count === 0;
    enable(!this.requests.busy && (count > 0 || this.note.value.trim() !== ""), this.submit);
  }

  /** Write a comment on chosen lines. @param {import("./line_selection.js").Chosen} chosen @param {string} commit @param {() => void} onEnd */
  write({ file, side, first, last, cell }, commit, onEnd) {
    this.writing?.element.remove();
    const at = { path: file.path, side, line: first, end_line: last === first ? null : last, cell };
    const close = () => {
      this.writing?.element.remove();
      this.writing = null;
      onEnd();
    };
    const save = (text) => {
      this.drafts.set(this.name, [...this.mine, { ...at, text, commit }]);
      close();
      if (this.element.hidden) this.toggle(true, false);
      this.changed(`Comment on ${file.path} added.`);
    };
    this.writing = { at, ...commentForm(at, "", { save, cancel: close }) };
    place(file, at, this.writing.element);
    this.writing.focus();
  }

  /**
   * Put the comments on a file among its lines. What is being written stays.
   * @param {any} file @param {boolean} withOld whether removed lines are those of the base
   */
  drawIn(file, withOld = true) {
    const forms = new Set([this.writing, ...this.editing.values()].map((open) => open?.element));
    for (const row of file.element.querySelectorAll(".wb-comment-row")) if (!forms.has(row)) row.remove();
    const requests = requestsOf(this.desk.store.tables, this.name);
    for (const request of requests) this.drawSent(file, request, withOld);
    for (const draft of this.mine) {
      if (draft.path === file.path && !this.hasArrived(draft, requests)) this.drawDraft(file, draft);
    }
    if (this.writing?.at.path === file.path) this.keep(file, this.writing.at, this.writing.element);
  }

  /** Put a form where it belongs, if the lines round it were drawn anew. */
  keep(file, at, element) {
    if (!file.element.contains(element)) place(file, at, element);
  }

  /** Whether a comment that is being sent is in a request already: rows may come before the answer. */
  hasArrived(draft, requests) {
    const isDraft = (comment) => SENT.every((field) => comment[field] === draft[field]);
    return this.requests.busy && requests.some(({ comments }) => comments.some(isDraft));
  }

  drawSent(file, request, withOld) {
    for (const comment of request.comments) {
      const { path, side, outdated } = comment;
      if (path !== file.path || outdated || (side === "old" && !withOld)) continue;
      const now = currentPlace(comment);
      place(file, now, sentRow(now, request.person ?? request.requested_by));
    }
  }

  drawDraft(file, draft) {
    const form = this.editing.get(draft);
    if (form) {
      this.keep(file, draft, form.element);
      return;
    }
    const edit = () => {
      const save = (text) => {
        draft.text = text;
        this.editing.delete(draft);
        this.changed("Comment changed.");
      };
      const cancel = () => {
        this.editing.delete(draft);
        this.on.changed();
      };
      const editing = commentForm(draft, draft.text, { save, cancel });
      this.editing.set(draft, editing);
      row.replaceWith(editing.element);
      editing.focus();
    };
    const remove = () => {
      this.drafts.set(
        this.name,
        this.mine.filter((one) => one !== draft),
      );
      this.changed("Comment removed.");
      this.opener.focus();
    };
    const row = draftRow(draft, { edit, remove });
    place(file, draft, row);
  }

  changed(text) {
    this.draw();
    this.on.changed();
    this.desk.announce(text);
  }

  discardAll() {
    this.drafts.delete(this.name);
    this.editing.clear();
    this.toggle(false);
    this.changed("The comments were discarded.");
  }

  /** Send all comments; those that were written about other commits are a request of their own. */
  async send() {
    const { name } = this;
    const note = this.note.value.trim();
    if (!note && !this.mine.length) return;
    const byCommit = grouped(this.mine);
    const groups = byCommit.size ? [...byCommit] : [[null, []]];
    for (const [at, [commit, drafts]] of groups.entries()) {
      const comments = drafts.map(({ path, side, line, end_line, text }) => ({ path, side, line, end_line, text }));
      const persona_id = this.task.box.checked && this.persona.value ? this.persona.value : null;
      const args = { worktree_name: name, comments, commit, note: at === 0 ? note : "", persona_id };
      if (!(await this.requests.run("request_changes", args, this.submit, "Sending…"))) return this.draw();
      this.drafts.set(
        name,
        (this.drafts.get(name) ?? []).filter((draft) => !drafts.includes(draft)),
      );
      for (const draft of drafts) this.editing.delete(draft);
      if (this.name === name) this.note.value = ""; // it was sent with the first of them
    }
    if (this.name === name) this.toggle(false);
    return this.changed(`Changes were requested in ${name}.`);
  }
}

function grouped(drafts) {
  const groups = new Map();
  for (const draft of drafts) groups.set(draft.commit, [...(groups.get(draft.commit) ?? []), draft]);
  return groups;
}
