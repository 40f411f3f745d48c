/** The turns of a conversation, as far as they have come: read turns, continued by frames. Pure. */

/**
 * A part of a turn: its text, what the model thinks, a notice about the conversation, or the call of a tool.
 * @typedef {{type: "text"|"thinking"|"notice", text: string}} TextPart
 * @typedef {{type: "tool", call_id: string, tool_name: string, tool_input: string, tool_result?: string|null,
 *   source: string, server?: string|null, state: string, approval_id?: number|null, record_id?: string|null,
 *   duration_ms?: number|null, progress?: number|null, total?: number|null, message?: string|null,
 *   pictures?: {media_type: string, bytes: number}[]}} ToolPart
 * @typedef {{id: string, role: "user"|"assistant", state: string, parts: (TextPart|ToolPart)[], notice?: string,
 *   [more: string]: any}} Turn
 * @typedef {{number: number, turn_id: string, type: string, data: any}} Frame
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
    /** @type {Turn[]} oldest first */
    this.turns = [];
    /** The number of the last frame that is in the turns. */
    this.after = 0;
    /** The number before which there are earlier turns; null: there are none. @type {number|null} */
    this.before = null;
  }

  /** Take turns that were read, in place of those they are. @param {{turns: Turn[], last_frame: number, next_before: number|null}} page */
  takePage({ turns, last_frame: after, next_before: before }) {
    const first = turns[0]?.number ?? 0;
    const earlier = this.turns.filter(({ number }) => number < first);
    if (!earlier.length) this.before = before;
    this.turns = [...earlier, ...turns];
    this.after = after;
  }

  /** Take turns before the ones that are known. */
  takeEarlier({ turns, next_before: before }) {
    this.turns = [...turns, ...this.turns];
    this.before = before;
  }

  /**
   * Continue the turns by frames.
   * @param {{frames: Frame[], next_after: number, answer_id: string|null}} page
   * @returns {boolean} whether the turns must be read again: one has begun or ended
   */
  takeFrames({ frames, next_after: after, answer_id: answering }) {
    let changed = answering !== null && !this.turn(answering);
    for (const frame of frames) {
      const turn = this.turn(frame.turn_id);
      if (!turn || ENDS.has(frame.type)) changed = true;
      else takeFrame(turn, frame);
    }
    this.after = after;
    return changed;
  }

  /** @param {string} id @returns {Turn|undefined} */
  turn(id) {
    return this.turns.find((turn) => turn.id === id);
  }

  /** The answer that is being made. @returns {Turn|undefined} */
  get running() {
    return this.turns.find(({ state }) => state === "running");
  }
}

/** @param {Turn} turn @param {Frame} frame */
function takeFrame(turn, { type, data }) {
  if (type in TEXTS) addText(turn, TEXTS[type], data.content);
  else if (type === "compacted") addText(turn, "notice", data.message);
  else if (type in CALLS) takeCall(turn, { ...data, state: CALLS[type](data) });
  turn.notice = type === "retry" ? (data.message ?? "The provider failed, and is asked again.") : undefined;
}

function addText(turn, type, text) {
  const last = turn.parts.at(-1);
  if (last?.type === type) last.text += text;
  else turn.parts.push({ type, text });
}

function takeCall(turn, data) {
  const part = turn.parts.find(({ type, call_id: id }) => type === "tool" && id === data.call_id);
  if (part) Object.assign(part, withoutNull(data));
  else turn.parts.push({ type: "tool", source: "local", ...data });
}

function withoutNull(data) {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null && value !== undefined));
}
