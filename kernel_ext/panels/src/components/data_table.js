/** A table: columns that sort, rows kept by their ids, one of which is opened below or beside the table. */

import { moveBetweenRows } from "../lib/controls.js";
import { NEXT, sortedBy } from "../lib/sorting.js";
import { html, useLayoutEffect, useRef, useState } from "./ui.js";

/** `value` is sorted by, and shown unless there is a `cell`. @typedef {{key: string, label: string, value?: (row: any) => any, cell?: (row: any) => any, title?: (row: any) => string|null|undefined}} Column */

/**
 * @param {object} props
 * @param {any[]} props.rows
 * @param {Column[]} props.columns the first one has the button that opens a row
 * @param {(row: any) => string} [props.id]
 * @param {(row: any) => string} [props.name] on that button
 * @param {string|null} [props.opened] the id of the row that is opened
 * @param {(id: string) => void} [props.onOpen] without it rows cannot be opened
 * @param {(row: any) => any} [props.detail] what is below the row that is opened; without it, it is shown elsewhere
 */
export function DataTable({ rows, columns, id = (row) => row.id, name = id, opened = null, onOpen, detail, ...more }) {
  const [sort, setSort] = useState({ by: null, direction: "none" });
  const body = useRef(null);
  useFocusAfterClosing(body, opened);
  const column = columns.find(({ key }) => key === sort.by);
  const sorted = column ? sortedBy(rows, valueOf(column), sort.direction) : rows;
  const press = (key) => {
    const direction = NEXT[sort.by === key ? sort.direction : "none"];
    setSort({ by: direction === "none" ? null : key, direction });
  };
  const head = ({ key, label }) =>
    html`<th scope="col" class="wb-col-${key}" aria-sort=${sort.by === key ? sort.direction : "none"}>
      <button type="button" class="wb-sort" onClick=${() => press(key)}>${label}</button>
    </th>`;
  const line = (row) => html`<${Line} key=${id(row)} ...${{ row, columns, id, name, opened, onOpen, detail }} />`;
  return html`<table
    ...${more}
    class="wb-table ${more.class ?? ""}"
    onKeyDown=${(event) => moveBetweenRows(event, body.current)}
  >
    <thead>
      <tr>
        ${columns.map(head)}
      </tr>
    </thead>
    <tbody ref=${body}>
      ${sorted.map(line)}
    </tbody>
  </table>`;
}

function Line({ row, columns, id, name, opened, onOpen, detail }) {
  const isOpen = id(row) === opened;
  const open = () => onOpen(id(row));
  const opener = html`<button
    type="button"
    class="wb-opener"
    data-row=${id(row)}
    aria-expanded=${isOpen}
    onClick=${open}
  >
    ${name(row)}
  </button>`;
  const cell = ({ title, ...column }, at) =>
    html`<td class="wb-col-${column.key}" title=${title?.(row) || null}>
      ${at === 0 && onOpen ? opener : null}${(column.cell ?? valueOf(column))(row)}
    </td>`;
  const state = isOpen ? (detail ? "wb-opened" : "wb-active") : "";
  const click = (event) => onOpen && !detail && !event.target.closest("button") && open();
  return html`<tr class="wb-table-row ${state}" onClick=${click}>
      ${columns.map(cell)}
    </tr>
    ${
      isOpen && detail
        ? html`<tr class="wb-table-details">
            <td colspan=${columns.length}>${detail(row)}</td>
          </tr>`
        : null
    }`;
}

/** When the row that was opened is closed, its button has the focus. */
function useFocusAfterClosing(body, opened) {
  const before = useRef(opened);
  useLayoutEffect(() => {
    if (opened === null && before.current !== null)
      body.current.querySelector(`[data-row="${CSS.escape(before.current)}"]`)?.focus();
    before.current = opened;
  }, [opened]);
}

function valueOf({ key, value }) {
  return value ?? ((row) => row[key]);
}
