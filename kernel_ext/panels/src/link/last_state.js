/**
 * The panel's last state in a notebook that is saved: as HTML for programs that show no widgets, such as GitHub, and as a
 * plain widget in the panel's place for those that do, for when its kernel has ended. Pure, but for `keepLastState`.
 */

const VIEW = "application/vnd.jupyter.widget-view+json";
const STATE = "application/vnd.jupyter.widget-state+json";

/** From now on, when the notebook is saved, it contains what `last_state` then is. @param {any} model the anywidget model */
export function keepLastState(model) {
  const notebook = model.widget_manager?.context?.model; // only in JupyterLab and Notebook
  if (typeof notebook?.toJSON !== "function") return;
  const toJSON = notebook.toJSON.bind(notebook);
  notebook.toJSON = () => withLastState(toJSON(), model.get("panel_id"), model.get("last_state"));
}

/**
 * A notebook with the last state of a panel where that is displayed.
 * @param {any} notebook its content, as it would be saved @param {string} id of the widget @param {string} html
 */
export function withLastState(notebook, id, html) {
  const ids = new Set(outputsOf(notebook).map(idOf));
  if (!html || !ids.has(id)) return notebook;
  const cells = notebook.cells.map((cell) => (cell.outputs ? withHtml(cell, id, html) : cell));
  const { [STATE]: saved, ...others } = notebook.metadata.widgets ?? {};
  const state = { ...withoutRemoved(saved?.state ?? {}, ids), ...standIn(id, html) };
  const widgets = { ...others, [STATE]: { version_major: 2, version_minor: 0, ...saved, state } };
  return { ...notebook, cells, metadata: { ...notebook.metadata, widgets } };
}

function outputsOf({ cells }) {
  return cells.flatMap(({ outputs }) => outputs ?? []);
}

function idOf({ data }) {
  return data?.[VIEW]?.model_id;
}

function withHtml(cell, id, html) {
  const outputs = cell.outputs.map((output) =>
    idOf(output) === id ? { ...output, data: { ...output.data, "text/html": html } } : output,
  );
  return { ...cell, outputs };
}

/** A widget with the same id that only shows HTML. */
function standIn(id, html) {
  const controls = { model_module: "@jupyter-widgets/controls", model_module_version: "2.0.0" };
  const base = { model_module: "@jupyter-widgets/base", model_module_version: "2.0.0" };
  const layout = layoutOf(id);
  return {
    [id]: { ...controls, model_name: "HTMLModel", state: { value: html, layout: `IPY_MODEL_${layout}` } },
    [layout]: { ...base, model_name: "LayoutModel", state: {} },
  };
}

function layoutOf(id) {
  return `${id}-last-state`;
}

/** The states of widgets, without those that stand in for a panel whose output is no longer there. */
function withoutRemoved(state, ids) {
  const removed = Object.keys(state).filter((id) => layoutOf(id) in state && !ids.has(id));
  const dropped = new Set(removed.flatMap((id) => [id, layoutOf(id)]));
  return Object.fromEntries(Object.entries(state).filter(([id]) => !dropped.has(id)));
}
