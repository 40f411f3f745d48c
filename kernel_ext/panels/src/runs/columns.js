/** The columns of the table of runs. Those with a value sort all runs: the kernel does. */

import { Icon, html } from "../components/ui.js";
import { dateTime } from "../lib/format.js";
import { RUN_STATES, parametersText, runIcon, took, valueText } from "./state.js";

const METRIC = "metric:";

/** What runs are sorted by for a metric, whatever it is called. @param {string} name */
export function metricKey(name) {
  return METRIC + name;
}

/** The metric that runs are sorted by; null: by none. @param {string} key */
export function metricOf(key) {
  return key.startsWith(METRIC) ? key.slice(METRIC.length) : null;
}

/** @param {string[]} metrics @param {number} now in ms @returns {import("../components/data_table.js").Column[]} */
export function columnsOf(metrics, now) {
  const metric = (name) => ({
    key: metricKey(name),
    kind: "metric",
    label: html`<span title=${name}>${name}</span>`,
    value: (run) => (name in run.metrics ? valueText(run.metrics[name]) : ""),
  });
  const parameters = ({ parameters: values }) => parametersText(values);
  const tags = (run) => run.tags.join(", ");
  return [
    { key: "name", label: "Run", value: ({ id }) => id, cell: (_, opener) => opener, title: originOf },
    { key: "state", label: "State", value: ({ state }) => state, cell: stateMark },
    { key: "parameters", label: "Parameters", cell: parameters, title: parameters },
    ...metrics.map(metric),
    { key: "started", label: "Started", value: ({ started_at: at }) => dateTime(at) },
    { key: "duration", label: "Took", value: (run) => took(run, now) },
    { key: "tags", label: "Tags", cell: tags, title: tags },
  ];
}

function originOf({ name, notebook }) {
  return [name, notebook].filter(Boolean).join("\n");
}

function stateMark({ state }) {
  return html`<span class="wb-state"
    ><${Icon} name=${runIcon(state)} /><span>${RUN_STATES[state] ?? state}</span></span
  >`;
}
