/** The messages of a conversation, as far as they have come: read messages, continued by frames. Pure. */

/**
 * A part of a message: its text, what the model thinks, or the call of a tool.
 * @typedef {{type: "text"|"thinking", text: string}} TextPart
 * @typedef {{type: "tool", call_id: string, tool_name: string, tool_input: string, tool_result?: string|null,
 *   source: string, server?: string|null, state: string, approval_id?: number|null, record_id?: string|null,
 *   duration_ms?: number|null, progress?: number|null, total?: number|null, message?: string|null,
 *   pictures?: {media_type: string, bytes: number}[]}} ToolPart
 * @typedef {{id: string, role: "user"|"assistant", state: string, parts: (TextPart|ToolPart)[], notice?: string,
 *   [more: string]: any}} Message
 * @typedef {{number: number, message_id: string, type: string, data: any}} Frame
 */

const TEXTS = { token: "text", thinking: "thinking" };
/** The state of a call, by the frame about it. */
const CALLS = {
  tool_start: () => "running",
  tool_waiting: () => "waiting",
  tool_progress: () => "running",
  tool_complete: ({ is_error: isError }) => (isError ? "failed" : "completed"),
};
const ENDS = new Set(["complete", "error"]);

export class Transcript {
  constructor() {
    /** @type {Message[]} oldest first */
    this.messages = [];
    /** The number of the last frame that is in the messages. */
    this.after = 0;
    /** The number before which there are earlier messages; null: there are none. @type {number|null} */
    this.before = null;
  }

  /** Take messages that were read, in place of those they are. @param {{messages: Message[], last_frame: number, next_before: number|null}} page */
  takePage({ messages, last_frame: after, next_before: before }) {
    const first = messages[0]?.number ?? 0;
    const earlier = this.messages.filter(({ number }) => number < first);
    if (!earlier.length) this.before = before;
    this.messages = [...earlier, ...messages];
    this.after = after;
  }

  /** Take messages before the ones that are known. */
  takeEarlier({ messages, next_before: before }) {
    this.messages = [...messages, ...this.messages];
    this.before = before;
  }

  /**
   * Continue the messages by frames.
   * @param {{frames: Frame[], next_after: number, answer_id: string|null}} page
   * @returns {boolean} whether the messages must be read again: one has begun or ended
   */
  takeFrames({ frames, next_after: after, answer_id: answering }) {
    let changed = answering !== null && !this.message(answering);
    for (const frame of frames) {
      const message = this.message(frame.message_id);
      if (!message || ENDS.has(frame.type)) changed = true;
      else takeFrame(message, frame);
    }
    this.after = after;
    return changed;
  }

  /** @param {string} id @returns {Message|undefined} */
  message(id) {
    return this.messages.find((message) => message.id === id);
  }

  /** The answer that is being made. @returns {Message|undefined} */
  get running() {
    return this.messages.find(({ state }) => state === "running");
  }
}

/** @param {Message} message @param {Frame} frame */
function takeFrame(message, { type, data }) {
  if (type in TEXTS) addText(message, TEXTS[type], data.content);
  else if (type in CALLS) takeCall(message, { ...data, state: CALLS[type](data) });
  message.notice = type === "retry" ? (data.message ?? "The provider failed, and is asked again.") : undefined;
}

function addText(message, type, text) {
  const last = message.parts.at(-1);
  if (last?.type === type) last.text += text;
  else message.parts.push({ type, text });
}

function takeCall(message, data) {
  const known = message.parts.find(({ type, call_id: id }) => type === "tool" && id === data.call_id);
  if (known) Object.assign(known, withoutNull(data));
  else message.parts.push({ type: "tool", source: "local", ...data });
}

function withoutNull(data) {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null && value !== undefined));
}
