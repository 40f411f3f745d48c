/** A form for the configuration of an MCP server, as manuals write it: JSON, with or without the name around it. */

import { field, form, formButtons, input, textarea } from "../lib/controls.js";
import { h } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";
import { json } from "./json_schema.js";

const EXAMPLE = { command: "npx", args: ["-y", "some-mcp-server"], env: { TOKEN: "env://TOKEN" } };

export class ServerForm {
  /**
   * @param {any} desk
   * @param {any|null} server its row; null: a new one
   * @param {(saved: any|null) => void} onDone null: it was cancelled
   */
  constructor(desk, server, onDone) {
    this.server = server;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.name = input("", { maxlength: 100, placeholder: "github" });
    const configuration = JSON.stringify(server?.config ?? EXAMPLE, null, 2);
    this.config = textarea(configuration, 8, { required: true });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, server ? "Save" : "Add");
    const cancel = () => onDone(null);
    const about =
      "Write secrets as references: env://NAME, file://path, op://vault/item/field, keyring://service/name.";
    this.element = form(
      { class: "wb-confirm wb-stack", "aria-label": server ? `Server ${server.name}` : "New server" },
      { submit: () => this.save(), escape: cancel },
      server ? null : field("Name", this.name),
      field("Configuration (JSON)", this.config),
      h("p", { class: "wb-label" }, about),
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
  }

  focus() {
    (this.server ? this.config : this.name).focus();
  }

  async save() {
    const args = this.read();
    if (!args) return;
    const op = this.server ? "update_tool_server" : "add_tool_server";
    const saved = await this.requests.run(op, args, this.submit, "Saving…");
    if (saved) this.onDone(saved);
  }

  /** The name and the configuration, which may be inside of `mcpServers` and the name. */
  read() {
    try {
      const typed = json(this.config.value);
      const servers = typed?.mcpServers ?? typed;
      const [[name, config] = [], ...others] = Object.entries(servers ?? {});
      const isNamed = !others.length && typeof config === "object" && !Array.isArray(config);
      const own = this.server?.name ?? (this.name.value.trim() || (isNamed ? name : ""));
      return { name: own, config: isNamed ? config : servers };
    } catch (error) {
      this.requests.showError(Object.assign(error, { code: "INVALID_ARGUMENTS" }));
      this.config.focus();
      return null;
    }
  }
}
