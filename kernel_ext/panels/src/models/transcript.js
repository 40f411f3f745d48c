/** What an attempt's program and its model said to each other: each message once, the end of it first, live. */

import { TextFilter } from "../components/filters.js";
import { Button, Embedded, Icon, html } from "../components/ui.js";
import { useLayoutEffect, useOnce, usePolling, useRef, useRequests, useState } from "../components/ui.js";
import { longText } from "../contents/values.js";
import { oneLine, plural, timeOfDay } from "../lib/format.js";
import { LogTail } from "../lib/log_tail.js";

const POLL_MS = 1_000;
/** Messages shown at first, and added at a time. */
const STEP = 50;
const NEAR_PX = 24;
/** Longer texts are cut at first. */
const LONG = 2_000;
const ROLES = {
  user: "To the model",
  assistant: "Model",
  system: "Instructions",
  tools: "Tools",
  tool: "To the model",
};
/** What is the same in every transcript, and long: shown when it is opened. */
const FOLDED = new Set(["system", "tools"]);

/** @param {{desk: any, task: number, attempt: number, underway: boolean}} props */
export function TranscriptView({ desk, task, attempt, underway }) {
  const [containing, search] = useState("");
  const name = `Search the transcript of attempt ${attempt}`;
  return html`<div class="wb-stack wb-said">
    <${TextFilter} name=${name} placeholder="Search" value=${containing} onChoose=${search} />
    <${Messages} key=${containing} ...${{ desk, task, attempt, underway, containing }} />
  </div>`;
}

function Messages({ desk, task, attempt, underway, containing }) {
  const requests = useRequests(desk);
  const which = { task_id: task, attempt, containing };
  const { tail, isRead, limit, readEarlier, place } = useTail(requests, which, underway);
  const calls = useOnce(() => new Map());
  const { box, stay } = useEndKept(`${tail.lines.length} ${limit}`);
  const shown = tail.lines.slice(-limit);
  const earlier = async () => {
    if (await readEarlier()) stay();
  };
  const hasEarlier = isRead && (!tail.complete || tail.lines.length > limit);
  const line = (message, at) => {
    const before = containing ? undefined : shown[at - 1]; // what is found does not follow each other
    return html`<${Message} key=${message.id} ...${{ message, before, calls, announce: desk.announce }} />`;
  };
  return html`<div ref=${place}>
    <div class="wb-label">${isRead ? labelOf(tail, containing) : "Reading the transcript…"}</div>
    <div ref=${box} class="wb-said-box" role="log" tabindex="0" aria-label="Transcript" hidden=${!shown.length}>
      ${hasEarlier && html`<${Button} class="wb-link" label="Show earlier" onClick=${earlier} />`}
      <ol>
        ${shown.map(line)}
      </ol>
    </div>
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}

/** The end of a transcript, which grows while its attempt is under way, and how much of it is shown. */
function useTail(requests, which, underway) {
  const [, draw] = useState(-1);
  const [limit, setLimit] = useState(STEP);
  const tail = useOnce(() => new LogTail((range) => readRange(requests, which, range), STEP));
  const read = useRef({ isRead: false, wasUnderway: false });
  const fail = (error) => requests.showError(error);
  const work = async () => {
    if (read.current.isRead && !underway && !read.current.wasUnderway) return;
    await tail.readNew();
    requests.clearError();
    read.current = { isRead: true, wasUnderway: underway };
    draw(tail.lines.length);
  };
  const { ref: place } = usePolling(POLL_MS, work, fail);
  useLayoutEffect(() => {
    const shown = () => place.current?.scrollIntoView({ block: "nearest" });
    work().then(shown, fail); // it may be opened below what is visible
  }, []);
  const readEarlier = async () => {
    try {
      if (!tail.complete && tail.lines.length < limit + STEP) await tail.readEarlier();
    } catch (error) {
      fail(error);
      return false;
    }
    requests.clearError();
    setLimit(limit + STEP);
    return true;
  };
  return { tail, isRead: read.current.isRead, limit, readEarlier, place };
}

/** A box that stays at its end while it grows, if it is there; `stay`: what comes above leaves the rest where it is. @param {string} length another one when it has grown */
function useEndKept(length) {
  const box = useRef(null);
  const below = useRef(0);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const { current } = box;
    if (isAtEnd.current) current.scrollTop = current.scrollHeight;
    const onScroll = () =>
      (isAtEnd.current = current.scrollHeight - current.scrollTop - current.clientHeight < NEAR_PX);
    current.addEventListener("scroll", onScroll);
    return () => current.removeEventListener("scroll", onScroll);
  }, [length]);
  useLayoutEffect(() => {
    const { current } = box;
    if (below.current) current.scrollTop = current.scrollHeight - below.current;
    below.current = 0;
  }, [length]);
  const stay = () => {
    isAtEnd.current = false;
    below.current = box.current.scrollHeight - box.current.scrollTop;
  };
  return { box, stay };
}

/** What a `LogTail` asks for. */
async function readRange(requests, which, { cursor, limit, newest_first: isBackward }) {
  const range = isBackward ? { before: cursor || Number.MAX_SAFE_INTEGER } : { after: cursor };
  const { messages } = await requests.send("get_transcript", { ...which, ...range, limit });
  return isBackward ? [...messages].reverse() : messages; // an answer may be shared
}

function labelOf(tail, containing) {
  const count = plural(tail.lines.length, "message");
  if (containing)
    return tail.lines.length
      ? `${tail.complete ? "" : "The last "}${count} with “${oneLine(containing, 40)}”`
      : `No message contains “${oneLine(containing, 40)}”.`;
  if (!tail.lines.length) return "Nothing was said by way of this server.";
  return tail.complete ? `Transcript · ${count}` : `Transcript · the last ${count}`;
}

/** A message. One that does not follow the one above it belongs to another conversation of the attempt. */
function Message({ message, before, calls, announce }) {
  const { role, parts, at } = message;
  for (const part of parts) if (part.tool_call) calls.set(part.id ?? part.tool_call, part.tool_call);
  const isOther = before && message.chain !== before.node;
  const folded = FOLDED.has(role) && parts.map(({ text }) => text).join(role === "tools" ? ", " : "\n");
  const content = folded
    ? html`<${Folded}
        head=${ROLES[role]}
        line=${foldedLine(role, parts, folded)}
        text=${folded}
        announce=${announce}
      />`
    : parts.map((part) => html`<${Part} part=${part} calls=${calls} announce=${announce} />`);
  const who = ROLES[role] ?? (role === "note" ? null : role);
  return html`${isOther && html`<li class="wb-said-other wb-muted">Another conversation of this attempt</li>`}
    <li data-role=${role}>
      <time class="wb-muted" datetime=${at} title=${at}>${timeOfDay(at)}</time>
      <div>${!folded && who && html`<span class="wb-sr">${who}: </span>`}${content}</div>
    </li>`;
}

function foldedLine(role, parts, text) {
  return role === "tools" ? `${parts.length.toLocaleString("en")}: ${text}` : text;
}

function Part({ part, calls, announce }) {
  if ("tool_call" in part) {
    const text = typeof part.arguments === "string" ? part.arguments : JSON.stringify(part.arguments, null, 2);
    return html`<${Folded}
      head=${part.tool_call}
      line=${oneLine(part.arguments ?? "")}
      text=${text ?? ""}
      announce=${announce}
    />`;
  }
  if ("tool_result" in part) {
    const text = part.content.map(({ text, other }) => text ?? `<${other}>`).join("\n");
    const name = calls.get(part.tool_result);
    const mark = part.failed ? "failed" : "completed";
    return html`<${Folded}
      head=${name ? `Result of ${name}` : "Result"}
      line=${text || "empty"}
      ...${{ text, mark, announce }}
    />`;
  }
  if ("thinking" in part)
    return html`<${Folded} head="Thinking" line=${part.thinking} text=${part.thinking} announce=${announce} />`;
  if ("text" in part) return html`<${Said} text=${part.text} />`;
  return html`<p class="wb-muted">${part.other}: not kept</p>`;
}

/** A text; the rest of a long one on request. */
function Said({ text }) {
  const [isWhole, show] = useState(text.length <= LONG);
  return html`<p class="wb-prose">${isWhole ? text : `${text.slice(0, LONG)}…`}</p>
    ${!isWhole && html`<${Button} class="wb-link" label="Show all ${plural(text.length, "character")}" onClick=${() => show(true)} />`}`;
}

/** One line that opens. */
function Folded({ head, line, text, mark, announce }) {
  const [isOpen, open] = useState(false);
  const onToggle = (event) => open(event.currentTarget.open);
  return html`<details class="wb-said-folded" onToggle=${onToggle}>
    <summary tabindex="0">
      <${Icon} name="twisty" />${mark && html`<${Icon} name=${mark} />`} <span class="wb-strong">${head}</span
      ><span class="wb-muted wb-cut wb-grow">${oneLine(line)}</span>
    </summary>
    ${isOpen && html`<${Whole} text=${text} head=${head} announce=${announce} />`}
  </details>`;
}

function Whole({ text, head, announce }) {
  const block = useOnce(() => longText(text, `Copy: ${head}`, announce));
  return html`<${Embedded} element=${block} />`;
}
