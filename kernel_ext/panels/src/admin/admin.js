/** The Admin tab: who is admitted by rule, who may act, what tools may do, how to connect, how busy the server is. */

import { h } from "../lib/dom.js";
import { Allowlist } from "./allowlist.js";
import { Connect } from "./connect.js";
import { Export } from "./export.js";
import { Performance } from "./performance.js";
import { Rules } from "./rules.js";
import { Tools } from "./tools.js";

export class Admin {
  /**
   * @param {import("../link/store.js").Store} store
   * @param {import("../link/channel.js").Channel} channel
   * @param {(text: string) => void} announce
   * @param {AbortSignal} signal
   */
  constructor(store, channel, announce, signal) {
    const desk = { store, channel, announce };
    this.connect = new Connect(desk, signal);
    this.updated = [new Rules(desk), new Allowlist(desk), new Tools(desk), this.connect];
    const others = [new Performance(desk, signal), new Export(desk)];
    this.element = h("div", {}, ...[...this.updated, ...others].map((part) => part.element));
  }

  /** Bring it up to date. Called only while it is shown. */
  update() {
    for (const part of this.updated) part.update();
  }
}
