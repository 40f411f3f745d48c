/** Asking again and again, only while somebody looks. */

/**
 * Calls `work` every `ms` while `element` is on screen and the page is in front; at once when it comes into sight.
 * A call waits for the one before it.
 */
export class WhileSeen {
  /** @param {HTMLElement} element @param {number} ms @param {() => Promise<unknown>} work @param {AbortSignal} signal */
  constructor(element, ms, work, signal) {
    this.work = work;
    this.ms = ms;
    this.onScreen = false;
    this.observer = new IntersectionObserver((entries) => {
      this.onScreen = entries.at(-1).isIntersecting;
      this.turn();
    });
    this.observer.observe(element);
    document.addEventListener("visibilitychange", () => this.turn(), { signal });
    signal.addEventListener("abort", () => {
      this.observer.disconnect();
      this.onScreen = false;
      clearTimeout(this.timer);
    });
  }

  get seen() {
    return this.onScreen && document.visibilityState === "visible";
  }

  turn() {
    if (this.seen && !this.timer) this.now();
  }

  /** Do it at once, if somebody looks. */
  async now() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.seen || this.busy) return;
    this.busy = true;
    await this.work();
    this.busy = false;
    if (this.seen) this.timer = setTimeout(() => this.now(), this.ms);
  }
}
