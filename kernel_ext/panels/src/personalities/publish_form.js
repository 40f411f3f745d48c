/** A form that publishes a personality: of an agent of the project, or of a definition. */

import { enable, field, form, formButtons, input, select, setOptions } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { RequestRunner } from "../link/request_runner.js";

const NOT_ADMITTED = new Set(["pending", "rejected", "revoked"]);
const [AGENT, DEFINITION, NEITHER] = ["agent", "definition", "none"];

export class PublishForm {
  /** @param {any} desk @param {(published: any|null) => void} onDone null: it was cancelled */
  constructor(desk, onDone) {
    this.desk = desk;
    this.onDone = onDone;
    this.requests = new RequestRunner(desk);
    this.source = select([[NEITHER, "Nothing: you write its traits"]], NEITHER, {
      on: { change: () => this.propose() },
    });
    this.name = input("", { maxlength: 128, required: true, placeholder: "careful-reviewer" });
    this.version = input("", { maxlength: 128, placeholder: "that of the definition, or 1.0" });
    this.about = h("p", { class: "wb-label" });
    this.submit = h("button", { class: "wb-button wb-primary", type: "submit" }, "Publish");
    const cancel = () => onDone(null);
    this.element = form(
      { class: "wb-box wb-stack wb-roomy", "aria-label": "Publish a personality" },
      { submit: () => this.run(), escape: cancel },
      h(
        "div",
        { class: "wb-fields wb-fields-3" },
        field("Made from", this.source),
        field("Name", this.name),
        field("Version (optional)", this.version),
      ),
      this.about,
      formButtons(this.submit, cancel),
      this.requests.errorBox,
    );
    /** The name that was proposed last: another one was typed, and stays. */
    this.proposed = "";
  }

  focus() {
    this.source.focus();
  }

  /** @param {boolean} enabled whether requests can be sent */
  update(enabled) {
    const { agents, definitions, network } = this.desk.store.tables;
    const admitted = [...agents.values()].filter(({ registration_status: state }) => !NOT_ADMITTED.has(state));
    const readable = [...definitions.values()].filter(({ name }) => name);
    const groups = [
      ["", [[NEITHER, "Nothing: you write its traits"]]],
      ["Agents", admitted.map(({ id, name }) => [`${AGENT}:${id}`, name])],
      ["Definitions", readable.map(({ id, name }) => [`${DEFINITION}:${id}`, name])],
    ];
    setOptions(
      this.source,
      groups.filter(([, options]) => options.length),
    );
    const joined = Boolean(network.get("network")?.joined);
    const about =
      "Its traits come from the definition and the persona, and its tools from functions that are bound to it.";
    const later = " This project is in no network: other nodes receive it once you join one.";
    setText(this.about, about + (joined ? "" : later));
    if (!this.requests.busy) enable(enabled, this.submit);
  }

  /** Propose a name, unless one was typed. */
  propose() {
    if (this.name.value !== this.proposed) return;
    const { selectedOptions, value } = this.source;
    const name = value === NEITHER ? "" : selectedOptions[0].textContent.trim();
    this.proposed = name
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, "-")
      .replace(/^-+|-+$/g, "");
    this.name.value = this.proposed;
  }

  async run() {
    const [kind, ...rest] = this.source.value.split(":");
    const from = { [AGENT]: { agent_id: rest.join(":") }, [DEFINITION]: { definition: rest.join(":") } }[kind] ?? {};
    const version = this.version.value.trim();
    const args = { name: this.name.value.trim(), ...(version && { version }), ...from };
    const published = await this.requests.run("publish_personality", args, this.submit, "Publishing…");
    if (published) this.onDone(published);
  }
}
