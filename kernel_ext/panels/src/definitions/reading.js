/** One definition as it is in its files: read whole, and again when its content has changed. */

import { Refresh, VisiblePolling } from "../link/polling.js";
import { RequestRunner } from "../link/request_runner.js";

/** Files that are changed with an editor cause no event: its hash is read so often while it is on screen. */
const POLL_MS = 3_000;

export class Reading {
  /**
   * @param {any} desk
   * @param {HTMLElement} element which is on screen while somebody reads the definition
   * @param {(definition: any) => void} onRead
   * @param {AbortSignal} signal
   */
  constructor(desk, element, onRead, signal) {
    this.onRead = onRead;
    this.requests = new RequestRunner(desk);
    /** The path of the definition. @type {string|null} */
    this.path = null;
    this.definition = null;
    const onError = (error) => this.requests.showError(error);
    this.refresh = new Refresh(() => this.read(), onError);
    this.polling = new VisiblePolling(element, POLL_MS, () => this.check(), onError, signal);
    signal.addEventListener("abort", () => this.refresh.stop(), { once: true });
  }

  /** Read another definition from now on; null: none. @param {string|null} path */
  begin(path) {
    this.path = path;
    this.definition = null;
    this.requests.clearError();
    if (path) this.now();
  }

  /** Read it again. @returns {Promise<void>} when it has been read, or could not be */
  async now() {
    await this.refresh.now();
  }

  /** Read it again if its content has changed. */
  async check() {
    const { path } = this;
    if (!path || !this.definition) return;
    const info = await this.send("agent_get_info");
    if (path !== this.path) return;
    if (info.contentHash === this.definition?.info.contentHash) this.requests.clearError();
    else await this.now();
  }

  async read() {
    const { path } = this;
    if (!path) return;
    try {
      await this.readAt(path);
    } catch (error) {
      if (path === this.path) throw error; // else another one is open by now, or none
    }
  }

  async readAt(path) {
    const info = await this.send("agent_get_info"); // first: a change during the rest is found by the next check
    if (path !== this.path) return;
    const parts = await Promise.all([
      this.send("agent_get_system_prompt"),
      this.send("agent_get_system_prompt", { composed: true }),
      ...["rules", "references", "tools", "mcp_servers"].map((things) => this.send(`agent_list_${things}`)),
      this.providers(),
      this.send("agent_validate"),
      this.send("agent_get_trust").then((trust) => ({ trust })),
    ]);
    if (path !== this.path) return;
    this.requests.clearError();
    this.definition = definitionOf(info, ...parts);
    this.onRead(this.definition);
  }

  /** What is known about providers, and the configuration of those that are installed. */
  async providers() {
    const { installed, providerInfo } = await this.send("agent_list_providers");
    const configs = await Promise.all(
      installed.map((providerType) => this.send("agent_get_provider_config", { providerType })),
    );
    return { providerInfo, providers: installed.map((name, at) => ({ name, config: configs[at].config })) };
  }

  send(op, more = {}) {
    return this.requests.send(op, { agentTarget: this.path, ...more });
  }
}

/** A definition as the views take it: what they list has names. */
function definitionOf(info, { prompt }, composed, ...parts) {
  const { servers, ...lists } = Object.assign({}, ...parts);
  const list = Object.entries(servers).map(([name, config]) => ({ name, config }));
  return { ...lists, info, prompt, systemPrompt: composed.prompt, servers: list };
}
