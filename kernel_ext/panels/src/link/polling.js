/** Work that is repeated, and goes on after failures: while its result is visible, or whenever it may have changed. */

const RETRY_MS = 1_000;
const SLOWEST_MS = 30_000;

/** The pause before the next call: twice as long after each failure in a row, up to half a minute. @param {number} ms @param {number} failures */
function backoff(ms, failures) {
  return Math.min(ms * 2 ** failures, Math.max(ms, SLOWEST_MS));
}

/**
 * Calls `work` every `ms` while `element` is on screen and the page is in front, and at once when it becomes visible.
 * Calls never overlap. A call that fails does not end the polling: the next one comes after a longer pause.
 */
export class VisiblePolling {
  /**
   * @param {HTMLElement} element
   * @param {number} ms
   * @param {() => Promise<unknown>} work
   * @param {(error: Error) => void} onError shows the error in place
   * @param {AbortSignal} signal ends the polling
   */
  constructor(element, ms, work, onError, signal) {
    this.ms = ms;
    this.work = work;
    this.onError = onError;
    this.failures = 0;
    this.onScreen = false;
    this.observer = new IntersectionObserver((entries) => {
      this.onScreen = entries.at(-1).isIntersecting;
      this.resume();
    });
    this.observer.observe(element);
    document.addEventListener("visibilitychange", () => this.resume(), { signal });
    signal.addEventListener("abort", () => {
      this.observer.disconnect();
      this.onScreen = false;
      clearTimeout(this.timer);
    });
  }

  get visible() {
    return this.onScreen && document.visibilityState === "visible";
  }

  resume() {
    if (this.visible && !this.timer) this.runNow();
  }

  /** Do the work at once, if it is visible and not being done. */
  async runNow() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.visible || this.running) return;
    this.running = true;
    try {
      await this.work();
      this.failures = 0;
    } catch (error) {
      this.failures += 1;
      this.onError(error);
    } finally {
      this.running = false;
      if (this.visible) this.timer = setTimeout(() => this.runNow(), backoff(this.ms, this.failures));
    }
  }
}

/**
 * Reads something again whenever it may have changed, one reading at a time. A reading that fails is repeated after a
 * pause, which grows while it keeps failing.
 */
export class Refresh {
  /**
   * @param {() => Promise<unknown>} read reads it and shows it
   * @param {(error: Error) => void} onError shows the error in place
   */
  constructor(read, onError) {
    this.read = read;
    this.onError = onError;
    this.failures = 0;
  }

  /** Read it now, or once more after the reading that is under way. @returns {Promise<void>} when that has ended */
  now() {
    this.isDue = true;
    this.running ??= this.run().finally(() => (this.running = null));
    return this.running;
  }

  async run() {
    clearTimeout(this.timer);
    while (this.isDue && !this.stopped) {
      this.isDue = false;
      await this.once();
    }
  }

  async once() {
    try {
      await this.read();
      this.failures = 0;
    } catch (error) {
      if (this.stopped) return;
      this.timer = setTimeout(() => this.now(), backoff(RETRY_MS, this.failures));
      this.failures += 1;
      this.onError(error);
    }
  }

  /** Do not read it any more. */
  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
  }
}
