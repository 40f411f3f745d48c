/** One file that a run or a task made, and what it contains when it is opened. None of it is ever run. */

import { Markdown } from "./markdown.js";
import { message, plainTable } from "../lib/blocks.js";
import { button } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { longText } from "./values.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export class Artifact {
  /**
   * @param {any} desk
   * @param {{name: string, about?: string, op: string, args: object}} file what is said about it beside its name, and
   *   the operation that reads it
   */
  constructor(desk, { name, about = "", op, args }) {
    this.desk = desk;
    this.op = op;
    this.args = args;
    this.requests = new RequestRunner(desk);
    this.opener = button("Open", "wb-link", () => this.toggle(), `Open ${name}`);
    this.opener.setAttribute("aria-expanded", "false");
    this.content = h("div", { class: "wb-stack wb-artifact", hidden: true });
    const label = h("span", { class: "wb-cut", title: name }, name);
    const line = h(
      "div",
      { class: "wb-line" },
      label,
      h("span", { class: "wb-muted wb-cut wb-grow" }, about),
      this.opener,
    );
    this.element = h("li", {}, line, this.requests.errorBox, this.content);
  }

  async toggle() {
    const open = this.content.hidden;
    this.content.hidden = !open;
    this.opener.setAttribute("aria-expanded", String(open));
    setText(this.opener, open ? "Close" : "Open");
    if (!open) return;
    this.content.replaceChildren(h("p", { class: "wb-muted" }, "Reading…"));
    try {
      const artifact = await this.requests.send(this.op, this.args);
      this.requests.clearError();
      this.content.replaceChildren(...this.shown(artifact));
    } catch (error) {
      this.content.replaceChildren();
      this.requests.showError(error);
    }
  }

  /** What it contains, and what is to be said about it. @returns {HTMLElement[]} */
  shown(artifact) {
    const { form, changed, cut, path } = artifact;
    const notes = [];
    if (changed) notes.push(message("warning", "The file has changed since the run recorded it."));
    if (form === "file")
      notes.push(h("p", { class: "wb-muted" }, "It cannot be shown here. It is at ", h("code", {}, path), "."));
    else if (cut)
      notes.push(h("p", { class: "wb-muted" }, "This is its beginning; all of it is at ", h("code", {}, path), "."));
    const element = FORMS[form]?.(artifact, this.desk);
    return element ? [element, ...notes] : notes;
  }
}

const asText = ({ text, name }, { announce }) => longText(text, `Copy ${name}`, announce);

/** @type {Record<string, (found: any, desk: any) => HTMLElement|null>} */
const FORMS = {
  picture: ({ picture_type: type, data, name }) =>
    PICTURES.has(type)
      ? h("img", { class: "wb-artifact-picture", src: `data:${type};base64,${data}`, alt: name })
      : null,
  table: ({ columns, rows, name }) => {
    const attributes = { class: "wb-figure-table", tabindex: 0, role: "group", "aria-label": name };
    return h("div", attributes, plainTable(columns, rows));
  },
  markdown: ({ text }, desk) => {
    const markdown = new Markdown(desk);
    markdown.show(text);
    return markdown.element;
  },
  json: asText,
  text: asText,
};
