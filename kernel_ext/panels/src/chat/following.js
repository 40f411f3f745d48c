/** Follows a conversation while it is on screen: its turns, and the frames of the answer that is being made. */

import { VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";
import { Transcript } from "./transcript.js";

const PAUSE_MS = 30;
/** How long the server may wait for the next frame. */
const WAIT_SECONDS = 20;
const PAGE = 50;

export class Following {
  /**
   * @param {any} desk
   * @param {HTMLElement} element that shows the conversation
   * @param {() => void} onChange turns have come
   * @param {AbortSignal} signal
   */
  constructor(desk, element, onChange, signal) {
    this.onChange = onChange;
    this.requests = new RequestRunner(desk);
    /** The id of the conversation. @type {string|null} */
    this.id = null;
    this.transcript = new Transcript();
    const onError = (error) => this.requests.showError(error);
    this.polling = new VisiblePolling(element, PAUSE_MS, () => this.follow(), onError, signal);
  }

  /** Follow another conversation from now on; null: none. @param {string|null} id */
  begin(id) {
    this.leave?.();
    this.left = new Promise((leave) => (this.leave = leave));
    this.id = id;
    this.isRead = false;
    this.transcript = new Transcript();
    this.requests.clearError();
    this.now();
  }

  /** Read at once: the conversation may have changed in a way that no frame tells. */
  now() {
    this.polling.runNow();
  }

  /** Read its turns, or wait for the next frames. */
  async follow() {
    const { id } = this;
    if (!id) return;
    if (!this.isRead) await this.read(id);
    const { transcript } = this;
    const frames = this.send("read_frames", { after: transcript.after, wait_seconds: WAIT_SECONDS });
    const page = await Promise.race([frames, this.left]); // whoever opens another conversation does not wait for these
    if (id !== this.id) return;
    this.requests.clearError();
    if (transcript.takeFrames(page)) await this.read(id);
    else if (page.frames.length) this.onChange();
  }

  async read(id) {
    const page = await this.send("list_turns", { limit: PAGE });
    if (id !== this.id) return;
    this.transcript.takePage(page);
    this.isRead = true;
    this.requests.clearError();
    this.onChange();
  }

  /** Read the turns before those that are known. */
  async readEarlier() {
    const { id, transcript } = this;
    const page = await this.send("list_turns", { before: transcript.before, limit: PAGE });
    if (id === this.id && page.turns.at(-1)?.number < transcript.turns[0]?.number) transcript.takeEarlier(page);
    this.onChange();
  }

  send(op, more) {
    return this.requests.send(op, { conversation_id: this.id, ...more });
  }
}
