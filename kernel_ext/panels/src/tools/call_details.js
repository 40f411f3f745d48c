/** One call of a tool, opened: what it was called with, what came of it, and a button to cancel it. */

import { ActionButton } from "../components/action_form.js";
import { FactList } from "../components/detail_pane.js";
import { Embedded, html, useLayoutEffect, useMemo, useRef, useRequests, useState } from "../components/ui.js";
import { resultBlocks, valueBlock } from "../contents/values.js";
import { labelled } from "../lib/blocks.js";
import { h } from "../lib/dom.js";
import { dateTime, dollars, duration } from "../lib/format.js";
import { progressOf } from "./state.js";

/** @param {{desk: any, call: any}} props */
export function CallDetails({ desk, call }) {
  const requests = useRequests(desk);
  const [whole, setWhole] = useState(null);
  const latest = useRef(call);
  latest.current = call;
  useLayoutEffect(() => {
    const show = (read) => {
      requests.clearError();
      if (latest.current === call) setWhole(read);
    };
    requests.send("get_tool_call", { call_id: call.call_id }).then(show, (error) => requests.showError(error));
  }, [call]);
  const values = useMemo(() => valuesOf(whole, desk.announce), [whole]);
  const cancel = {
    label: "Cancel the call",
    working: "Cancelling…",
    act: () => requests.run("cancel_tool_call", { call_id: call.call_id }),
    onDone: () => desk.announce(`${call.tool_name} is cancelled.`),
  };
  return html`<div class="wb-stack wb-roomy">
    <${FactList} facts=${factsOf(call)} />
    ${!call.ended_at && html`<${ActionButton} ...${cancel} />`}
    <${Embedded} element=${requests.errorBox} />
    <div class="wb-stack">${values.map((element) => html`<${Embedded} element=${element} />`)}</div>
  </div>`;
}

/** The values, which the list does not have. */
function valuesOf(whole, announce) {
  if (!whole) return [];
  const args = labelled("Arguments", valueBlock(whole.arguments, "Copy the arguments", announce));
  if (!whole.ended_at || whole.result === null) return [args];
  return [args, labelled("Result", h("div", { class: "wb-stack" }, ...resultBlocks(whole.result, announce)))];
}

function factsOf(call) {
  return [
    ["Requested", dateTime(call.requested_at)],
    ["Waited", call.wait_ms > 0 && duration(call.wait_ms)],
    ["Progress", progressOf(call)],
    ["Error", call.error_code],
    ["Task", call.task_id && `${call.task_id}, attempt ${call.attempt}`],
    ["Tokens", call.input_tokens !== null && tokensText(call)],
    ["Cost", typeof call.cost_usd === "number" && dollars(call.cost_usd)],
    ["Version", call.version],
    ["Id", call.call_id],
  ];
}

/** "1,204 read, 88 written" */
function tokensText({ input_tokens: read, output_tokens: written }) {
  return `${read.toLocaleString("en")} read, ${(written ?? 0).toLocaleString("en")} written`;
}
