/** Agents that claim no tasks for now: a line for each account, profile or agent that waits for a time. */

import { ActionButton } from "../components/action_form.js";
import { Embedded, Icon, drawnIn, html, useRequests } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { dateTime, hourMinute, oneLine, plural } from "../lib/format.js";

const DAY_MS = 86_400_000;
const WHY = { limit: "because of a limit", overloaded: "because its provider is overloaded" };

/** "until 14:05"; for another day "until Nov 28, 14:05". @param {string|null} until */
export function untilText(until) {
  if (!until) return "until you answer";
  const ms = Date.parse(until);
  return `until ${ms - Date.now() < DAY_MS / 2 ? hourMinute(ms) : dateTime(ms)}`;
}

/** "until 14:05: 429, the limit of the day is used up" @param {{until: string|null, reason: string}} hold */
export function holdText({ until, reason }) {
  return `${untilText(until)}: ${oneLine(reason.split("\n")[0], 300)}`;
}

/** The waits that end by themselves; what the person is asked about is in the inbox. */
export class Holds {
  /** @param {any} desk @param {AbortSignal} signal */
  constructor(desk, signal) {
    this.desk = desk;
    this.element = h("div", {});
    this.draw = drawnIn(this.element, signal);
  }

  update() {
    const { desk } = this;
    const holds = [...desk.store.tables.holds.values()].filter(({ until }) => until);
    this.draw(holds.map((hold) => html`<${Hold} key=${hold.id} ...${{ desk, hold }} />`));
  }
}

function Hold({ desk, hold: { scope, what, failure, reason, until, agents } }) {
  const requests = useRequests(desk);
  const act = () => requests.run("end_hold", { scope });
  const onDone = () => desk.announce(`${what}: its agents go on.`);
  const why = WHY[failure] ?? `(${failure})`;
  const count = agents ? `${plural(agents, "agent")} ${agents === 1 ? "waits" : "wait"}` : "Waiting";
  return html`<div class="wb-banner" role="status">
    <${Icon} name="pending" />
    <span class="wb-grow wb-wrap" title=${reason}>
      ${count} ${untilText(until)} ${why}, for ${what}. ${oneLine(reason.split("\n")[0], 200)}
    </span>
    <${ActionButton} label="Go on now" working="Going on…" name="Go on now with ${what}" ...${{ act, onDone }} />
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}
