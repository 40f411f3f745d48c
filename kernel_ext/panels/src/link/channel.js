/** The connection to the kernel, over the widget's comm: fills the store, and sends requests. */

/** So long the kernel may stay silent about a request before that counts as a failure. */
const SILENCE_MS = 30_000;
/**
 * When to ask again for the first snapshot. The first request of a panel that a running cell has made may wait for the
 * end of that cell: JupyterLab sends it before the comm has a subshell of its own. A later one does not wait.
 */
const ASK_AGAIN_MS = [1_000, 3_000, 9_000];
const decoder = new TextDecoder();

/** A failure with a stable code: what the kernel answered, or what was found on this side. */
export class CodedError extends Error {
  /** @param {{code: string, message: string, details?: object}} error */
  constructor({ code, message, details }) {
    super(message);
    this.code = code;
    this.details = details ?? {};
  }
}

const DISCONNECTED = {
  code: "KERNEL_GONE",
  message: "The kernel was restarted or shut down. Start Workbench again, then run the panel's cell again.",
};
const STOPPED = {
  code: "NOT_STARTED",
  message: "Workbench is not running in this kernel. Run `%workbench start`, then reconnect.",
};
const NO_ANSWER = {
  code: "NO_ANSWER",
  message: "The kernel has not answered yet; it may be busy. You can try again: the action is done only once.",
};

/**
 * The state of the connection.
 * @typedef {{state: "connecting"|"live"|"retrying"|"stopped"|"disconnected", error: {code: string, message: string}|null}} Link
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
    /** Requests without an answer, by id. */
    this.waiting = new Map();
    const receive = (message, buffers) => this.receive(message, buffers);
    const resync = () => this.resync(); // after a reconnection; to a comm that has died nothing can be sent
    model.on("msg:custom", receive);
    model.on("comm_live_update", resync);
    const timers = ASK_AGAIN_MS.map((ms) => setTimeout(() => this.link.state === "connecting" && this.resync(), ms));
    signal.addEventListener("abort", () => {
      timers.forEach(clearTimeout);
      model.off("msg:custom", receive);
      model.off("comm_live_update", resync);
    });
    this.resync();
  }

  /** Ask the kernel for a snapshot. */
  resync() {
    if (this.link.state === "stopped") this.setLink("connecting");
    this.post({ kind: "resync", shared: isShared(this.model) });
  }

  /** Tell the kernel that somebody looks: what changes with time alone is sent only then. */
  look() {
    if (this.link.state === "live") this.post({ kind: "look" });
  }

  /**
   * Run an operation. A request that comes to the kernel twice with the same id is run once and answered twice.
   * @param {string} id @param {string} op @param {object} args
   * @returns {Promise<any>} the result; rejects with a CodedError
   */
  request(id, op, args) {
    const person = personOf(notebookOf(this.model)?.sharedModel?.awareness?.getLocalState()?.user);
    const by = person ? { person } : {};
    return this.send(id, { kind: "action", request: id, op, arguments: args, ...by });
  }

  /** Read a part of the panel that is not in its bundle. @param {string} name @returns {Promise<string>} its source */
  async asset(name) {
    const id = requestId();
    return this.send(id, { kind: "asset", request: id, name });
  }

  send(id, message) {
    const request = this.waiting.get(id);
    if (request) return request.promise;
    const waiting = { message };
    waiting.promise = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
    this.waiting.set(id, waiting);
    this.ask(id);
    return waiting.promise;
  }

  ask(id) {
    const waiting = this.waiting.get(id);
    waiting.accepted = false;
    waiting.timer = setTimeout(() => this.onSilence(id), SILENCE_MS);
    if (!this.post(waiting.message)) this.settle(id, ({ reject }) => reject(new CodedError(DISCONNECTED)));
  }

  /** Work that the kernel has accepted may take any time: ask about it again. Silence alone is a failure. */
  onSilence(id) {
    if (this.waiting.get(id).accepted) this.ask(id);
    else this.settle(id, ({ reject }) => reject(new CodedError(NO_ANSWER)));
  }

  /** @param {any} message @param {DataView[]} buffers */
  receive(message, buffers) {
    switch (message.kind) {
      case "snapshot":
        this.store.takeSnapshot(message.ver, JSON.parse(text(buffers)));
        return this.setLink("live");
      case "diff":
        if (!this.store.takeDiff(message.base, message.ver, JSON.parse(text(buffers)), message.touched)) this.resync();
        return undefined;
      case "accepted":
        if (this.waiting.has(message.request)) this.waiting.get(message.request).accepted = true;
        return undefined;
      case "answer":
        return this.settle(message.request, ({ resolve, reject }) => {
          if (!message.ok) reject(new CodedError(message.error));
          else resolve(buffers?.length ? text(buffers) : message.outcome);
        });
      case "retrying":
        return this.setLink("retrying", message.error);
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
      this.setLink("disconnected", DISCONNECTED);
      return false;
    }
  }

  /** A lost connection stays lost: a new kernel does not know this comm. */
  setLink(state, error = null) {
    if (this.link.state === "disconnected" || (this.link.state === state && !error && !this.link.error)) return;
    this.link = { state, error };
    if (state === "disconnected" || state === "stopped") {
      for (const id of [...this.waiting.keys()]) this.settle(id, ({ reject }) => reject(new CodedError(error)));
    }
    this.store.notify();
  }

  settle(id, how) {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    clearTimeout(waiting.timer);
    this.waiting.delete(id);
    how(waiting);
  }
}

/** Whether the notebook is edited together: then the server saves it, not this page. @param {any} model @returns {boolean} */
function isShared(model) {
  return notebookOf(model)?.collaborative === true;
}

/** The notebook in JupyterLab, if it is one. @param {any} model */
function notebookOf(model) {
  return model.widget_manager?.context?.model;
}

/**
 * The name by which the Jupyter server knows who edits a shared notebook here; null if it does not: a server without
 * users gives each browser an invented name. @param {{username: string, name: string} | undefined} user
 */
function personOf(user) {
  if (!user?.username || /^[0-9a-f]{32}$/.test(user.username) || user.name?.startsWith("Anonymous ")) return null;
  return user.username;
}

/** A random id; works without a secure context too, where `crypto.randomUUID` is missing. @returns {string} */
export function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function text(buffers) {
  return decoder.decode(buffers[0]);
}
