/** What was told an agent, or about a task, with how far each message has come; and a field to say more. */

import { Button, Checkbox, Embedded, html } from "../components/ui.js";
import { useLayoutEffect, usePolling, useRef, useRequests, useState } from "../components/ui.js";
import { dateTime, timeOfDay } from "../lib/format.js";

const POLL_MS = 2_000;
/** Messages shown at first, and added at a time. */
const STEP = 20;
const STATES = { queued: "queued", seen: "seen", acted: "acted on" };
const QUESTION = { queued: "waits for your answer", seen: "waits for your answer", acted: "closed" };
const KINDS = { question: " asks", answer: " answers", comment: " comments" };

/**
 * @param {object} props
 * @param {any} props.desk
 * @param {{task_id: number}|{agent_id: string}} props.of whose messages
 * @param {any} props.version they are read again when it is another one
 * @param {boolean} props.canTell whether something can still be told
 * @param {boolean} [props.canInterrupt] whether a turn can be ended for it
 */
export function Messages({ desk, of, version, canTell, canInterrupt = false }) {
  const requests = useRequests(desk);
  const [messages, setMessages] = useState(null);
  const [limit, setLimit] = useState(STEP);
  const work = async () => {
    const page = await requests.send("list_messages", { ...of, limit: limit + 1 });
    requests.clearError();
    setMessages(page.messages);
  };
  const { ref, runNow } = usePolling(POLL_MS, work, (error) => requests.showError(error));
  useLayoutEffect(runNow, [version, limit]);
  const shown = (messages ?? []).slice(0, limit).reverse();
  const hasEarlier = (messages ?? []).length > limit;
  const line = (message) => html`<${Line} key=${message.id} message=${message} ofTask=${"task_id" in of} />`;
  const earlier = () => setLimit(limit + STEP);
  return html`<div ref=${ref} class="wb-messages wb-stack" role="group" aria-label="Messages">
    <div class="wb-label">Messages</div>
    ${hasEarlier && html`<${Button} class="wb-link" label="Show earlier" onClick=${earlier} />`}
    ${messages && !shown.length && html`<p class="wb-muted">${emptyText(of)}</p>`}
    <ul class="wb-messages-list">
      ${shown.map(line)}
    </ul>
    <${Embedded} element=${requests.errorBox} />
    ${canTell && html`<${Say} ...${{ desk, of, canInterrupt }} onSaid=${runNow} />`}
  </div>`;
}

function emptyText(of) {
  return "task_id" in of ? "Nobody has commented on this task." : "Nothing was told this agent.";
}

function Line({ message, ofTask }) {
  const { kind, sender, agent_id: to, task_id: task, text, sent_at: at } = message;
  const whom = kind === "question" ? "" : to && kind !== "comment" ? ` → ${to}` : "";
  const about = task && !ofTask ? ` · task ${task}` : "";
  return html`<li data-state=${message.state}>
    <div class="wb-line">
      <span class="wb-strong wb-cut">${sender}${KINDS[kind] ?? ""}${whom}</span>
      <span class="wb-muted wb-grow wb-cut">${about}</span>
      <span class="wb-muted" title=${receipts(message)}>${stateText(message)}</span>
      <time class="wb-muted" datetime=${at} title=${dateTime(at)}>${timeOfDay(at)}</time>
    </div>
    <p class="wb-prose">${text}</p>
  </li>`;
}

function stateText({ kind, state }) {
  return (kind === "question" ? QUESTION : STATES)[state];
}

/** When a message came how far. */
function receipts({ sent_at: sent, seen_at: seen, acted_at: acted }) {
  const times = [
    ["queued", sent],
    ["seen", seen],
    ["acted on", acted],
  ].filter(([, at]) => at);
  return times.map(([word, at]) => `${word} ${dateTime(at)}`).join("\n");
}

/** The field for what is told. */
function Say({ desk, of, canInterrupt, onSaid }) {
  const requests = useRequests(desk);
  const field = useRef(null);
  const [isBusy, setBusy] = useState(false);
  const [interrupts, setInterrupts] = useState(false);
  const say = async (event) => {
    event.preventDefault();
    const text = field.current.value.trim();
    if (isBusy || !text) return;
    setBusy(true);
    const [op, more] = "task_id" in of ? ["comment_on_task", {}] : ["tell", { interrupt: canInterrupt && interrupts }];
    const sent = await requests.run(op, { ...of, text, ...more });
    setBusy(false);
    if (sent) {
      field.current.value = "";
      setInterrupts(false);
      onSaid();
    }
    field.current.focus();
  };
  const onKeyDown = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && say(event);
  const interrupting = { name: "End its turn for this", checked: interrupts, onChange: setInterrupts };
  return html`<form class="wb-stack" onSubmit=${say}>
    <${Field} field=${field} name=${fieldName(of)} onKeyDown=${onKeyDown} />
    <div class="wb-line">
      <${Button} type="submit" disabled=${isBusy} label=${isBusy ? "Sending…" : fieldName(of).split(" ")[0]} />
      ${canInterrupt && html`<label class="wb-line"><${Checkbox} ...${interrupting} /> ${interrupting.name}</label>`}
    </div>
    <${Embedded} element=${requests.errorBox} />
  </form>`;
}

function fieldName(of) {
  return "task_id" in of ? "Comment on this task" : `Tell ${of.agent_id}`;
}

function Field({ field, name, onKeyDown }) {
  const shown = { "aria-label": name, placeholder: name, rows: 2, spellcheck: "true", onKeyDown };
  return html`<textarea ref=${field} class="wb-input wb-area" ...${shown} />`;
}
