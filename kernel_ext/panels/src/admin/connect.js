/** Instructions that connect an agent, to be copied. */

import { codeBlock } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { Refresh } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { section } from "./section.js";

export class Connect {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.requests = new RequestRunner(desk);
    this.content = h("div", {});
    const description = "Give one of these to the agent. It registers, waits, and appears in the inbox.";
    this.element = section("Connect an agent", description, this.content, this.requests.errorBox);
    this.heading = this.element.querySelector("h3");
    this.heading.tabIndex = -1;
    this.refresh = new Refresh(
      () => this.load(),
      (error) => this.requests.showError(error),
    );
    signal.addEventListener("abort", () => this.refresh.stop(), { once: true });
  }

  /** Called while the tab is shown: the instructions are read once. */
  update() {
    if (this.begun) return;
    this.begun = true;
    this.refresh.now();
  }

  /** Bring it into view, with the focus on its heading. */
  focus() {
    this.heading.focus();
    this.element.scrollIntoView({ block: "nearest" });
  }

  async load() {
    const { instructions } = await this.requests.send("connection_instructions", {});
    this.requests.clearError();
    this.content.replaceChildren(...instructions.map((one) => this.instruction(one)));
  }

  instruction({ title, text }) {
    const code = codeBlock(text, `Copy: ${title}`, this.desk.announce);
    return h("details", { class: "wb-instructions" }, h("summary", { tabindex: 0 }, title), code);
  }
}
