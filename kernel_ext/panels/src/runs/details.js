/** What is known of one run, below its line: facts, parameters, series, artifacts, and what a person says about it. */

import { Artifact } from "../contents/artifact.js";
import { Figure } from "../charts/figure.js";
import { line } from "../charts/lines.js";
import { codeBlock, Facts, labelled, message } from "../lib/blocks.js";
import { button, checkbox, field, form, formButtons, input, textarea } from "../lib/controls.js";
import { h, setText } from "../lib/dom.js";
import { byteSize, dateTime } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { Refresh } from "../link/polling.js";
import { requestId } from "../link/channel.js";
import { RequestRunner } from "../link/request_runner.js";
import { MOST_COMPARED, RUN_STATES, runIcon, took, valueText } from "./state.js";

const POINTS = 300;
/** The most series that are drawn. */
const DRAWN = 24;
const PAUSE_MS = 500;

export class RunDetails {
  /**
   * @param {any} desk @param {number} id
   * @param {{change: (run: any) => void, open: (id: number) => void, compare: (ids: number[], from: HTMLElement) => void}} on
   *   takes the run when it was changed here, opens another one, compares some
   */
  constructor(desk, id, on) {
    this.desk = desk;
    this.id = id;
    this.on = on;
    this.requests = new RequestRunner(desk);
    this.reader = new RequestRunner(desk);
    this.ended = new AbortController();
    this.figures = new Map();
    this.files = new Map();
    this.error = h("div", {});
    this.facts = new Facts();
    this.parameters = new Facts();
    this.values = new Facts();
    this.series = h("div", { class: "wb-figures" });
    this.log = checkbox("Log axis", () => this.drawSeries(this.run, this.points));
    this.inner = h("ul", { class: "wb-list" });
    this.artifacts = h("ul", { class: "wb-artifacts" });
    this.notes = h("p", { class: "wb-prose wb-grow" });
    this.tags = h("p", { class: "wb-grow" });
    this.edit = button("Edit notes and tags", "wb-button", () => this.startEditing());
    this.put = button("Archive", "wb-button", () => this.archive());
    this.editor = h("div", { hidden: true });
    this.element = this.assemble();
    this.refresh = new Refresh(
      () => this.read(),
      (error) => this.reader.showError(error),
    );
    this.refresh.now();
  }

  assemble() {
    this.blocks = {
      parameters: labelled("Parameters", this.parameters.element),
      values: labelled("Last values", this.values.element),
      inner: labelled("Runs within it", this.inner),
      series: labelled("Series", this.log.element, this.series),
      artifacts: labelled("Artifacts", this.artifacts),
      notes: labelled("Notes", this.notes),
      tags: labelled("Tags", this.tags),
    };
    for (const block of Object.values(this.blocks)) block.hidden = true;
    const columns = h(
      "div",
      { class: "wb-run-columns" },
      labelled("Run", this.facts.element),
      this.blocks.parameters,
      this.blocks.values,
    );
    const { inner, series, artifacts, notes, tags } = this.blocks;
    this.actions = h("div", { class: "wb-line" }, this.edit, this.put);
    const parts = [this.reader.errorBox, this.error, columns, inner, series, artifacts, notes, tags];
    return h("div", { class: "wb-stack wb-roomy" }, ...parts, this.actions, this.requests.errorBox, this.editor);
  }

  /** Read it again if events were about it. */
  refreshIfStale() {
    if (this.isStale) this.refresh.now();
    this.isStale = false;
  }

  /** End what goes on. */
  stop() {
    this.refresh.stop();
    this.ended.abort();
  }

  async read() {
    const [run, { series }] = await Promise.all([
      this.desk.channel.request(requestId(), "get_run", { run_id: this.id }),
      this.desk.channel.request(requestId(), "get_run_series", { run_id: this.id, max_points: POINTS }),
    ]);
    this.reader.clearError();
    this.draw(run);
    this.points = series;
    this.drawSeries(run, series);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  draw(run) {
    this.run = run;
    const commit =
      run.git_commit && `${run.git_commit.slice(0, 12)}${run.git_dirty ? ", with uncommitted changes" : ""}`;
    this.facts.update([
      ["Name", `${run.id} ${run.name}`],
      ["Sweep", run.sweep],
      ["Within run", run.parent_id && this.link(run.parent_id, String(run.parent_id))],
      ["Notebook", run.notebook],
      ["Started", `${dateTime(run.started_at)} by ${run.created_by}`],
      ["Took", run.ended_at && took(run, 0)],
      ["Started", run.tries > 1 && `${run.tries} times`],
      ["Commit", commit],
      ["Output", run.output],
      ["Session", run.session_id],
      ["Definitions", Object.keys(run.definitions).join(", ")],
      ["Archived", run.archived_at && dateTime(run.archived_at)],
    ]);
    this.drawError(run);
    this.drawFacts("parameters", Object.entries(run.parameters));
    const single = run.series.filter(({ count }) => count === 1).map(({ name, last }) => [name, last]);
    this.drawFacts("values", single);
    this.drawInner(run.inner);
    this.drawArtifacts(run.files);
    setText(this.notes, run.notes);
    setText(this.tags, run.tags.join(", "));
    this.drawSaid();
    setText(this.put, run.archived_at ? "Restore" : "Archive");
    this.put.hidden = run.state === "running";
  }

  /** Notes and tags, and what can be done; while they are edited, only the form. */
  drawSaid() {
    const isEditing = !this.editor.hidden;
    this.blocks.notes.hidden = isEditing || !this.run.notes;
    this.blocks.tags.hidden = isEditing || !this.run.tags.length;
    this.actions.hidden = isEditing;
  }

  drawFacts(name, pairs) {
    this[name].update(pairs.map(([key, value]) => [key, valueText(value) || "–"]));
    this.blocks[name].hidden = !pairs.length;
  }

  drawError({ error_code: code, error }) {
    const key = `${code} ${error}`;
    if (key === this.drawnError) return;
    this.drawnError = key;
    const parts = [];
    if (code) parts.push(message("warning", h("code", {}, code), " ", (error ?? "").split("\n")[0]));
    if (error?.includes("\n")) parts.push(codeBlock(error, "Copy the error", this.desk.announce));
    this.error.replaceChildren(...parts);
  }

  drawSeries({ series: summaries }, series) {
    const drawable = series.filter(
      ({ points }) => points.length > 1 && points.some(([, value]) => typeof value === "number"),
    );
    this.blocks.series.hidden = !drawable.length;
    for (const { name, points, thinned } of drawable.slice(0, DRAWN)) {
      if (!this.figures.has(name)) {
        const figure = new Figure(name, this.ended.signal);
        this.figures.set(name, figure);
        this.series.append(figure.element);
      }
      const { count, low, high, last } = summaries.find((summary) => summary.name === name) ?? { count: points.length };
      const numbers = points.filter(([, value]) => typeof value === "number");
      const span = Number.isFinite(low) ? `, from ${valueText(low)} to ${valueText(high)}` : "";
      const sentence = `${count.toLocaleString("en")} values${span}; the last is ${valueText(last ?? points.at(-1)[1])}.`;
      const log = this.log.box.checked && numbers.some(([, value]) => value > 0);
      const draw = (width) => line(width, { points: numbers, name, log });
      const table = { columns: [thinned ? "Step (thinned)" : "Step", name], rows: points };
      this.figures.get(name).show({ sentence, table, draw });
    }
  }

  link(id, label) {
    return button(label, "wb-link", () => this.on.open(id), `Open run ${id}`);
  }

  drawInner(runs) {
    this.blocks.inner.hidden = !runs.length;
    const key = JSON.stringify(runs);
    if (key === this.drawnInner) return;
    this.drawnInner = key;
    const line = ({ id, name, state }) =>
      h(
        "li",
        {},
        icon(runIcon(state)),
        this.link(id, `${id} ${name}`),
        h("span", { class: "wb-muted" }, RUN_STATES[state]),
      );
    const ids = runs.slice(0, MOST_COMPARED).map(({ id }) => id);
    const text = ids.length < runs.length ? `Compare the first ${ids.length}` : `Compare these ${ids.length}`;
    const compare = button(text, "wb-button", () => this.on.compare(ids, compare));
    this.inner.replaceChildren(...runs.map(line), ...(ids.length > 1 ? [h("li", {}, compare)] : []));
  }

  drawArtifacts(files) {
    this.blocks.artifacts.hidden = !files.length;
    const keys = new Set(files.map(({ name, added_at: at }) => `${name}\n${at}`));
    for (const [key, artifact] of this.files) if (!keys.has(key)) this.files.delete(key) && artifact.element.remove();
    for (const file of files) {
      const key = `${file.name}\n${file.added_at}`;
      if (this.files.has(key)) continue;
      const { name, bytes, path } = file;
      const args = { run_id: this.id, name };
      const about = `${byteSize(bytes)} · ${path}`;
      const artifact = new Artifact(this.desk, { name, about, op: "get_run_artifact", args });
      this.files.set(key, artifact);
      this.artifacts.append(artifact.element);
    }
  }

  startEditing() {
    if (!this.run) return;
    const notes = textarea(this.run.notes, 4);
    const tags = input(this.run.tags.join(", "));
    const fields = [field("Notes, in Markdown", notes), field("Tags, with commas", tags)];
    const save = h("button", { class: "wb-button wb-primary", type: "submit" }, "Save");
    const close = () => this.stopEditing();
    const on = { submit: () => this.save(notes.value, tags.value, save), escape: close };
    const editor = form({ class: "wb-stack" }, on, ...fields, formButtons(save, close));
    this.editor.replaceChildren(editor);
    this.editor.hidden = false;
    this.drawSaid();
    notes.focus();
  }

  stopEditing() {
    this.editor.hidden = true;
    this.drawSaid();
    this.edit.focus();
  }

  async save(notes, text, submit) {
    const tags = text.split(/[\s,]+/).filter(Boolean);
    const before = this.run.tags;
    const args = {
      run_id: this.id,
      notes,
      add_tags: tags.filter((tag) => !before.includes(tag)),
      remove_tags: before.filter((tag) => !tags.includes(tag)),
    };
    const run = await this.requests.run("update_run", args, submit, "Saving…");
    if (!run) return;
    this.take(run, "Saved.");
    this.stopEditing();
  }

  async archive() {
    const away = !this.run.archived_at;
    const run = await this.requests.run(away ? "archive_run" : "restore_run", { run_id: this.id }, this.put);
    if (run) this.take({ ...this.run, ...run }, away ? "The run is archived." : "The run is restored.");
  }

  take(run, announcement) {
    this.draw(run);
    this.on.change(run);
    this.desk.announce(announcement);
  }
}
