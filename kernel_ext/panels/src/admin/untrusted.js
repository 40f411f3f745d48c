/** A line below the tabs: which settings and profiles of the project are not used until the user trusts them. */

import { h, prose } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { TableWatch } from "./section.js";

export class Untrusted {
  /** @param {import("../link/store.js").Store} store */
  constructor(store) {
    this.text = h("span", { class: "wb-grow" });
    this.element = h("div", { class: "wb-banner", role: "note", hidden: true }, icon("warning"), this.text);
    this.rows = new TableWatch(
      () => store.tables.untrusted,
      (rows) => this.draw(rows),
    );
  }

  update() {
    this.rows.update();
  }

  draw(rows) {
    this.element.hidden = !rows.length;
    const files = rows.map(({ id, settings }) => (settings.length ? `${id} (${settings.join(", ")})` : id));
    const message = `Not used, because you have not trusted it: ${files.join(", ")}. \`workbench trust\` shows it.`;
    this.text.replaceChildren(...prose(message));
  }
}
