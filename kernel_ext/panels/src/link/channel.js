/** The comm to the kernel: fills the store, asks for what was missed, and answers requests by id. */

const ANSWER_MS = 30_000;
const decoder = new TextDecoder();

/** A failure with a stable code, as the kernel sends it or as this side found it. */
export class CodedError extends Error {
  /** @param {{code: string, message: string, details?: object}} error */
  constructor({ code, message, details }) {
    super(message);
    this.code = code;
    this.details = details ?? {};
  }
}

const GONE = {
  code: "KERNEL_GONE",
  message: "The kernel was restarted or shut down. Run this cell again to go on.",
};
const STOPPED = {
  code: "NOT_STARTED",
  message: "Workbench is not running in this kernel. Run `%workbench start`, then reconnect.",
};
const SILENT = {
  code: "NO_ANSWER",
  message: "The kernel has not answered yet. It may be busy; trying again is safe, it is done only once.",
};

/**
 * How the panel is connected.
 * @typedef {{state: "connecting"|"live"|"trouble"|"stopped"|"gone", error: {code: string, message: string}|null}} Link
 */

export class Channel {
  /**
   * @param {any} model the anywidget model
   * @param {import("./store.js").Store} store
   * @param {AbortSignal} signal ends the channel
   */
  constructor(model, store, signal) {
    this.model = model;
    this.store = store;
    /** @type {Link} */
    this.link = { state: "connecting", error: null };
    this.waiting = new Map();
    const take = (message, buffers) => this.take(message, buffers);
    const live = () => this.resync(); // to a comm that has died nothing can be sent
    model.on("msg:custom", take);
    model.on("comm_live_update", live);
    signal.addEventListener("abort", () => {
      model.off("msg:custom", take);
      model.off("comm_live_update", live);
    });
    this.resync();
  }

  /** Ask the kernel for everything. */
  resync() {
    if (this.link.state === "stopped") this.setLink("connecting");
    this.post({ kind: "resync" });
  }

  /**
   * Ask for an operation; asking again with the same id is answered again, not done again.
   * @param {string} id @param {string} op @param {object} args
   * @returns {Promise<any>} the outcome; rejects with a CodedError
   */
  request(id, op, args) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.settle(id, (w) => w.reject(new CodedError(SILENT))), ANSWER_MS);
      this.waiting.set(id, { resolve, reject, timer });
      if (!this.post({ kind: "action", id, op, arguments: args })) {
        this.settle(id, (w) => w.reject(new CodedError(GONE)));
      }
    });
  }

  /** @param {any} message @param {DataView[]} buffers */
  take(message, buffers) {
    switch (message.kind) {
      case "snapshot":
        this.store.takeSnapshot(message.ver, parse(buffers));
        return this.setLink("live");
      case "diff":
        if (!this.store.takeDiff(message.base, message.ver, parse(buffers), message.touched)) this.resync();
        return undefined;
      case "answer":
        return this.settle(message.id, (w) =>
          message.ok ? w.resolve(message.outcome) : w.reject(new CodedError(message.error)),
        );
      case "trouble":
        return this.setLink("trouble", message.error);
      case "stopped":
        return this.setLink("stopped", message.error ?? STOPPED);
      default:
        return undefined;
    }
  }

  /** @returns {boolean} whether it could be sent */
  post(message) {
    try {
      this.model.send(message);
      return true;
    } catch {
      this.setLink("gone", GONE);
      return false;
    }
  }

  setLink(state, error = null) {
    if (this.link.state === "gone" || (this.link.state === state && !error && !this.link.error)) return;
    this.link = { state, error };
    if (state === "gone" || state === "stopped") {
      for (const id of [...this.waiting.keys()]) this.settle(id, (w) => w.reject(new CodedError(error)));
    }
    this.store.tell();
  }

  settle(id, how) {
    const waiter = this.waiting.get(id);
    if (!waiter) return;
    clearTimeout(waiter.timer);
    this.waiting.delete(id);
    how(waiter);
  }
}

/** An id for a request; works where the page has no secure context too. @returns {string} */
export function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function parse(buffers) {
  return JSON.parse(decoder.decode(buffers[0]));
}
