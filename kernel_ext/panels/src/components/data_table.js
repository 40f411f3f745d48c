/** A table: columns that sort, rows kept by their ids, which are opened below their lines or beside the table. */

import { moveBetweenRows } from "../lib/controls.js";
import { NEXT, sortedBy } from "../lib/sorting.js";
import { Button, html, useFocusKept, useLayoutEffect, useRef, useState } from "./ui.js";

/**
 * A column sorts by its `value`, and shows it unless there is a `cell`. Its class says its `kind`: its key, if there is none.
 * A `wide` one is cut where there is too little room, and an `optional` one is left out while that is nothing for every row.
 * @typedef {{key: string, kind?: string, wide?: boolean, optional?: (row: any) => any, label: any, value?: (row: any) => any, cell?: (row: any, opener: any) => any, title?: (row: any) => string|null|undefined}} Column
 *
 * Sorted by which column, and in which direction; null: by none.
 * @typedef {{by: string, direction: string}|null} Sort
 */

/**
 * @param {object} props
 * @param {any[]} props.rows
 * @param {Column[]} props.columns
 * @param {(row: any) => string} [props.id]
 * @param {(row: any) => string} [props.name] on the button that opens a row
 * @param {string} [props.opener] the key of the column with this button, which its `cell` is given
 * @param {string[]} [props.opened] the ids of the rows that are opened
 * @param {(id: string) => void} [props.onOpen] opens a row, or closes it; without it none can be opened
 * @param {() => void} [props.onGone] the row with the focus is not shown any more: something else needs it
 * @param {(row: any) => any} [props.detail] what is below a row that is opened; without it, it is shown elsewhere
 * @param {(row: any) => string} [props.rowClass]
 * @param {Sort} [props.sort] how the rows are sorted; without it, the table sorts them
 * @param {(sort: Sort) => void} [props.onSort] a heading was pressed
 * @param {number} [props.step] how many rows there are before a button shows more of them
 * @param {any} [props.filters] others begin with the first rows again
 */
export function DataTable({ rows, columns: every, id = (row) => row.id, name = id, opener = every[0].key, ...more }) {
  const { opened = [], onOpen, onGone, detail, rowClass = () => "", step = Infinity, ...others } = more;
  const { filters, sort: given, onSort, ...attributes } = others;
  const [own, setOwn] = useState(null);
  const [limit, setLimit] = useState(step);
  const body = useRef(null);
  useFocusAfterClosing(body, opened, onGone);
  useFocusKept(body, () => onGone?.());
  useLayoutEffect(() => setLimit(step), [filters, own]);
  const sorted = given === undefined ? sortedRows(rows, every, own) : rows;
  const present = (given === undefined ? own : given)?.by;
  const isUsed = ({ key, optional }) => !optional || key === present || rows.some(optional);
  const columns = every.filter(isUsed);
  const resort = (chosen) => {
    setOwn(chosen);
    onSort?.(chosen);
  };
  const line = (row) => {
    const isOpen = opened.includes(id(row));
    const about = { row, columns, isOpen, opener, detail, name: name(row), id: id(row), class: rowClass(row) };
    return html`<${Line} key=${about.id} ...${about} onOpen=${onOpen && (() => onOpen(about.id))} />`;
  };
  const onKeyDown = (event) => moveBetweenRows(event, body.current);
  return html`<table ...${attributes} class="wb-table ${attributes.class}" onKeyDown=${onKeyDown}>
      <thead>
        <tr>
          ${columns.map((column) => html`<${Heading} key=${column.key} class=${classOf(column, opener)} column=${column} sort=${given === undefined ? own : given} onSort=${resort} />`)}
        </tr>
      </thead>
      <tbody ref=${body}>
        ${sorted.slice(0, limit).map(line)}
      </tbody>
    </table>
    ${sorted.length > limit && html`<${Button} label="Show more" onClick=${() => setLimit(limit + step)} />`}`;
}

/** The rows in an order. @param {any[]} rows @param {Column[]} columns @param {Sort} sort */
export function sortedRows(rows, columns, sort) {
  const column = columns.find(({ key }) => key === sort?.by);
  return column ? sortedBy(rows, column.value, sort.direction) : rows;
}

/** The class of a column; the one with the names has the room that the others leave. */
function classOf({ key, kind = key, wide }, opener) {
  return `wb-col-${kind} ${key === opener ? "wb-col-main" : wide ? "wb-col-wide" : ""}`;
}

function Heading({ column: { key, label, value }, class: className, sort, onSort }) {
  if (!value) return html`<th scope="col" class=${className}>${label}</th>`;
  const present = sort?.by === key ? sort.direction : "none";
  const press = () => onSort(NEXT[present] === "none" ? null : { by: key, direction: NEXT[present] });
  return html`<th scope="col" class=${className} aria-sort=${present}>
    <${Button} class="wb-sort" label=${label} onClick=${press} />
  </th>`;
}

function Line({ id, name, row, columns, opener, isOpen, onOpen, detail, class: className }) {
  const button = html`<${Button}
    class="wb-opener"
    label=${name}
    data-row=${id}
    aria-expanded=${isOpen}
    onClick=${onOpen}
  />`;
  const content = ({ key, cell, value }) =>
    key === opener ? (cell ? cell(row, button) : button) : (cell ?? value)(row);
  const cells = columns.map(
    (column) => html`<td class=${classOf(column, opener)} title=${column.title?.(row) || null}>${content(column)}</td>`,
  );
  const onClick = (event) => onOpen && !detail && !isOpen && !event.target.closest("button") && onOpen();
  const onKeyDown = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !event.target.matches(".wb-input")) onOpen();
  };
  const below = html`<tr class="wb-table-details" onKeyDown=${onKeyDown}>
    <td colspan=${columns.length}>${isOpen && detail?.(row)}</td>
  </tr>`;
  const state = isOpen ? (detail ? "wb-opened" : "wb-active") : "";
  return html`<tr class="wb-table-row ${state} ${className}" onClick=${onClick}>
      ${cells}
    </tr>
    ${isOpen && detail && below}`;
}

/** When a row is closed, the button that opened it has the focus. */
function useFocusAfterClosing(body, opened, onGone) {
  const before = useRef(opened);
  useLayoutEffect(() => {
    for (const id of before.current.filter((key) => !opened.includes(key))) {
      const opener = body.current.querySelector(`[data-row="${CSS.escape(id)}"]`);
      if (opener) opener.focus();
      else if (document.activeElement === document.body) onGone?.();
    }
    before.current = opened;
  }, [opened.join("\n")]);
}
