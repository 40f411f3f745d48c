/** What is kept of an attempt that did not complete its task: how much it is, and its changes on request. */

import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { loadHighlighter } from "../link/assets.js";
import { RequestRunner } from "../link/request_runner.js";
import { FileDiff } from "../lib/file_diff.js";

const LABELS = { open: "Hide the changes", closed: "Show the changes" };

export class KeptWork {
  /**
   * @param {{channel: import("../link/channel.js").Channel, announce: (text: string) => void}} desk
   * @param {number} task its id
   * @param {any} attempt of get_task, with `kept`
   */
  constructor(desk, task, { attempt, kept }) {
    this.desk = desk;
    this.of = { task_id: task, attempt };
    this.requests = new RequestRunner(desk);
    this.toggle = button(LABELS.closed, "wb-link", () => this.onToggle(), `${LABELS.closed} of attempt ${attempt}`);
    this.toggle.setAttribute("aria-expanded", "false");
    this.files = h("div", { class: "wb-stack", hidden: true });
    const size = `Kept: ${plural(kept.commits, "commit")}, ${plural(kept.files, "file")}. `;
    const adopt = h("code", {}, `workbench adopt ${task} ${attempt}`);
    const advice = h("p", { class: "wb-muted" }, "To merge it after all: ", adopt);
    this.files.append(advice);
    this.element = h("div", { title: kept.ref }, size, this.toggle, this.requests.errorBox, this.files);
  }

  async onToggle() {
    if (!this.found && !(await this.load())) return;
    const open = this.files.hidden;
    this.files.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    setText(this.toggle, open ? LABELS.open : LABELS.closed);
  }

  async load() {
    this.found = await this.requests.run("get_attempt_diff", this.of, this.toggle, "Loading…");
    if (!this.found) return false;
    for (const file of this.found.files) {
      const shown = new FileDiff(file, {
        readAll: (path) => this.readAll(path),
        highlighter: () => loadHighlighter(this.desk.channel),
      });
      shown.approach();
      this.files.append(shown.element);
    }
    return true;
  }

  async readAll(path) {
    const found = await this.requests.run("get_attempt_diff", { ...this.of, path });
    return found?.files.find((file) => file.path === path) ?? null;
  }
}
