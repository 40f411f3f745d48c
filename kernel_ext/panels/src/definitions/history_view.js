/** The versions of a definition, the newest first, and what each changed. */

import { button } from "../lib/controls.js";
import { h, setAttribute } from "../lib/dom.js";
import { FileDiff } from "../lib/file_diff.js";
import { dateTime } from "../lib/format.js";
import { loadHighlighter } from "../link/assets.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";

const MOST = 50;
const LETTERS = { added: "A", changed: "M", removed: "D" };

export class HistoryView {
  /** @param {any} desk @param {string} agentTarget @param {any} definition */
  constructor(desk, agentTarget, definition) {
    this.desk = desk;
    this.target = agentTarget;
    this.requests = new RequestRunner(desk);
    const onError = (error) => this.requests.showError(error);
    this.refreshing = new Refresh(() => this.read(), onError);
    this.heading = h("h4", { class: "wb-strong", tabindex: -1 }, "History");
    this.list = h("ul", { class: "wb-entries" });
    this.note = h("p", { class: "wb-muted" }, "Reading…");
    this.element = h("div", { class: "wb-stack" }, this.heading, this.requests.errorBox, this.note, this.list);
    this.update(definition);
  }

  get isChanged() {
    return false;
  }

  focus() {
    this.heading.focus();
  }

  /** Read the versions again if the definition has changed. */
  update({ info }) {
    if (info.contentHash === this.shown) return;
    this.shown = info.contentHash;
    this.refreshing.now();
  }

  async read() {
    const { versions, message } = await this.requests.send("agent_history", { agentTarget: this.target, limit: MOST });
    this.requests.clearError();
    const about = "Each change that Workbench made or found, and each commit of git.";
    this.note.replaceChildren([about, message].filter(Boolean).join(" "));
    this.list.replaceChildren(...versions.map((version, at) => this.entry(version, versions[at + 1])));
  }

  /** @param {any} version @param {any} before the one before it, if it is listed */
  entry({ summary, by, at, commit, contentHash }, before) {
    const name = commit ?? contentHash;
    const below = h("div", { class: "wb-version", hidden: true });
    const facts = [by ?? "found", dateTime(at), commit ? `commit ${commit.slice(0, 8)}` : contentHash.slice(0, 8)];
    const line = h("div", { class: "wb-entry" }, h("span", { class: "wb-strong wb-wrap" }, summary));
    line.append(h("span", { class: "wb-muted wb-grow wb-cut" }, facts.join(" · ")));
    if (name && before) line.append(this.opener(summary, [nameOf(before), name], below));
    return h("li", {}, line, below);
  }

  opener(summary, [fromVersion, toVersion], below) {
    const press = async () => {
      const isOpen = !below.hidden;
      below.hidden = isOpen;
      setAttribute(opener, "aria-expanded", !isOpen);
      if (isOpen || below.hasChildNodes()) return;
      const args = { agentTarget: this.target, fromVersion, toVersion };
      const diff = await this.requests.run("agent_diff", args, opener, "Comparing…");
      if (diff) below.replaceChildren(...this.files(diff.changes));
    };
    const opener = button("Changes", "wb-link wb-quiet", press, `Changes: ${summary}`);
    opener.setAttribute("aria-expanded", "false");
    return opener;
  }

  files(changes) {
    if (!changes.length)
      return [h("p", { class: "wb-muted" }, "Nothing but secrets, or the time it was created, has changed.")];
    return changes.map((change) => {
      const on = { readAll: async () => null, highlighter: () => loadHighlighter(this.desk.channel) };
      const file = new FileDiff({ ...change, ...counts(change.patch ?? ""), status: LETTERS[change.status] }, on);
      file.approach();
      return file.element;
    });
  }
}

function nameOf({ commit, contentHash }) {
  return commit ?? contentHash;
}

/** The numbers of lines that a patch adds and removes. */
function counts(patch) {
  const lines = patch.split("\n").filter((line) => !/^(\+\+\+|---) /.test(line));
  const starting = (sign) => lines.filter((line) => line.startsWith(sign)).length;
  return { added: starting("+"), removed: starting("-") };
}
