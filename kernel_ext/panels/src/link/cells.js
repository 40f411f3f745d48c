/** The cells of the notebook in which a panel stands: in JupyterLab and Notebook. Elsewhere there are none to write to. */

const VIEW = "application/vnd.jupyter.widget-view+json";

export class Cells {
  /** @param {any} model the anywidget model */
  constructor(model) {
    this.model = model;
    /** The id of the cell that was inserted last: the next one stands below it. @type {string|null} */
    this.last = null;
  }

  /** The notebook that the front end and its users edit together. */
  get notebook() {
    const shared = this.model.widget_manager?.context?.model?.sharedModel;
    return typeof shared?.insertCell === "function" ? shared : null;
  }

  /** Insert a cell of code below the panel, or below the one that was inserted before. @param {string} source */
  insert(source) {
    const before = this.placeOf(this.last) ?? this.panelPlace();
    const place = before === null ? this.notebook.cells.length : before + 1;
    const cell = this.notebook.insertCell(place, { cell_type: "code", source, metadata: {}, outputs: [] });
    this.last = cell?.id ?? this.notebook.getCell(place).id;
  }

  /**
   * Put code in the place of a cell's. The front end can undo it.
   * @param {string} source @param {string|null} id of the cell
   * @returns {boolean} whether there is such a cell, other than the one of the panel
   */
  replace(source, id) {
    const place = this.placeOf(id);
    if (place === null || place === this.panelPlace()) return false;
    this.notebook.getCell(place).setSource(source);
    return true;
  }

  /** The id of the cell at a place, if it has these lines: a page may show other notebooks. @param {number} place @param {string[]} lines @returns {string|null} */
  idAt(place, lines) {
    const cell = this.notebook?.cells[place];
    return cell && lines.every((line) => cell.getSource().includes(line)) ? cell.id : null;
  }

  placeOf(id) {
    const place = this.notebook.cells.findIndex((cell) => cell.id === id);
    return place < 0 ? null : place;
  }

  panelPlace() {
    const id = this.model.get("panel_id");
    const shows = (output) => output.data?.[VIEW]?.model_id === id;
    const place = this.notebook.cells.findIndex((cell) => (cell.toJSON().outputs ?? []).some(shows));
    return place < 0 ? null : place;
  }
}

/** The cell of the panel's notebook that has, or had last, the focus: on a page of JupyterLab. */
export class LastCell {
  /** @param {Cells} cells @param {AbortSignal} signal ends the watch */
  constructor(cells, signal) {
    this.cells = cells;
    /** Cells move: its place may be that of another one when it is asked for. @type {string|null} */
    this.id = null;
    document.addEventListener("focusin", (event) => this.note(event.target), { signal });
  }

  note(target) {
    const cell = target instanceof Element ? target.closest(".jp-Notebook .jp-Cell") : null;
    // A click into the panel makes JupyterLab focus the cell that shows it. That is not the cell a person works in.
    if (!cell || cell.querySelector(".wb-desk")) return;
    const place = Number(cell.dataset.windowedListIndex ?? [...cell.parentElement.children].indexOf(cell));
    const lines = [...cell.querySelectorAll(".cm-line")].map(({ textContent }) => textContent);
    this.id = this.cells.idAt(place, lines) ?? this.id;
  }
}
