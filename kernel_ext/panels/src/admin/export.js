/** Downloads a table as a file. */

import { button, download, select } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { section } from "./section.js";

const RESOURCES = ["agents", "teams", "contexts", "sessions", "projects", "events"];

export class Export {
  /** @param {any} desk */
  constructor(desk) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    const options = RESOURCES.map((name) => [name, name[0].toUpperCase() + name.slice(1)]);
    this.resource = select(options, "agents", { class: "wb-input wb-narrow", "aria-label": "What to export" });
    const line = h("div", { class: "wb-line" }, this.resource, this.button("csv"), this.button("json"));
    this.element = section("Export", "", line, this.requests.errorBox);
  }

  button(format) {
    const label = format.toUpperCase();
    return button(label, "wb-button", (event) => this.run(format, event.currentTarget), `Download as ${label}`);
  }

  async run(format, pressed) {
    const file = await this.requests.run("export", { resource: this.resource.value, format }, pressed, "…");
    if (!file) return;
    download(file.filename, file.content_type, file.content);
    this.desk.announce(`${file.filename} was downloaded.`);
  }
}
