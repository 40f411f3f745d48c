/** One process's details beside the table: what it uses, its log, and the buttons to restart or terminate it. */

import { useQuestion } from "../components/action_form.js";
import { DetailPane, FactList } from "../components/detail_pane.js";
import { Button, Dot, Embedded, Icon, html } from "../components/ui.js";
import { useLayoutEffect, useOnce, usePolling, useRequests, useState } from "../components/ui.js";
import { byteSize, dateTime, duration } from "../lib/format.js";
import { ProcessLog } from "./log.js";
import { confinementState, limitsText, processDot, processLabel, uptime } from "./state.js";

const POLL_MS = 750;
const LOG_LINES = 200;

/** @param {{desk: any, row: any, usage: any, task: any, now: number, onClose: () => void}} props with what it uses, and the task it works on */
export function ProcessDetails({ desk, row, usage, task, now, onClose }) {
  const reader = useRequests(desk);
  const log = useOnce(() => new ProcessLog());
  const [process, setProcess] = useState(null);
  const read = async () => {
    if (process?.state === "ended" && row.state === "ended") return; // what has ended is read once
    const answer = await reader.send("get_agent_process_info", { agent_id: row.id, log_lines: LOG_LINES });
    reader.clearError();
    setProcess(answer);
    log.update(answer.log_tail, answer.log);
  };
  const { ref, runNow } = usePolling(POLL_MS, read, (error) => reader.showError(error));
  useLayoutEffect(runNow, [row, process === null]);
  const { label, missing, complete } = confinementState(row.confinement);
  const mark = html`<${Dot} state=${processDot(row)} />`;
  const onDone = () => {
    setProcess(null);
    ref.current.querySelector("h4").focus();
  };
  return html`<${DetailPane} ...${{ title: row.id, noun: "process", mark, onClose, pane: ref, class: "wb-process" }}>
    <div>
      <div class="wb-muted wb-indented">
        ${[processLabel(row), row.reason, uptime(row, now)].filter(Boolean).join(" · ")}
      </div>
      <div class="wb-message wb-indented">
        <${Icon} name=${complete ? "shield" : "warning"} /><span>${missing ? `${label}: ${missing}` : label}</span>
      </div>
    </div>
    <${Actions} desk=${desk} row=${row} onDone=${onDone} />
    <div><${Embedded} element=${log.element} /></div>
    <${Embedded} element=${reader.errorBox} />
    <${FactList} facts=${factsOf(row, process, row.state === "running" && usage, task)} />
    <${ChildProcesses} processes=${process?.children ?? []} />
  <//>`;
}

/** The buttons, and the question that one of them asks. @param {{desk: any, row: any, onDone: () => void}} props */
function Actions({ desk, row, onDone }) {
  const { id, state } = row;
  const requests = useRequests(desk);
  const { question, ask } = useQuestion();
  const done = (what) => (_, end) => {
    end();
    desk.announce(`${id}: ${what}.`);
    onDone();
  };
  const terminate = {
    label: `Terminate ${id}`,
    working: "Terminating…",
    consequence: "The process and everything it started are ended. Its tasks can be claimed by other agents.",
    reason: "Reason (optional; kept in the history)",
    act: (reason) => requests.run("terminate_agent", { agent_id: id, reason }),
    onDone: done("terminated"),
  };
  const running = state === "running" ? "Its process is ended first. " : "";
  const restart = {
    label: `Restart ${id}`,
    working: "Restarting…",
    consequence: `${running}It is started again with the same settings.`,
    danger: false,
    act: () => requests.run("restart_agent", { agent_id: id }),
    onDone: done("restarted"),
  };
  const button = (label, words) => {
    const onClick = (event) => {
      requests.clearError();
      ask(event, words);
    };
    return html`<${Button} label=${label} name="${label} ${id}" onClick=${onClick} />`;
  };
  return html`<div class="wb-line wb-indented">
      ${state !== "queued" && button("Restart…", restart)} ${state !== "ended" && button("Terminate…", terminate)}
    </div>
    ${question}
    <${Embedded} element=${requests.errorBox} />`;
}

function factsOf(row, read, usage, task) {
  const process = { ...row, ...read };
  const mode = process.mode === "task" ? "for one task" : "claims tasks as they come";
  const cpu = usage && `${Math.round(usage.percent)} % of a processor, ${duration(usage.cpu_seconds * 1000)} in total`;
  return [
    ["Works on", task && `${task.title} #${task.id}`],
    ["Persona", row.persona_id],
    ["Profile", process.profile && `${process.profile}, ${mode}`],
    ["Worktree", process.worktree],
    ["Process", process.pid],
    ["Machine", process.machine],
    ["CPU", cpu],
    ["Memory", usage && byteSize(usage.memory_bytes)],
    ["Limits", limitsText(process.limits) || "none"],
    ["Started", process.spawned_at && dateTime(process.spawned_at)],
    ["Ended", process.ended_at && dateTime(process.ended_at)],
  ];
}

function ChildProcesses({ processes }) {
  const heads = ["Child process", "Process", "CPU", "Memory"].map((name) => html`<th scope="col">${name}</th>`);
  const line = ({ pid, name, cpu_seconds: cpu, memory_bytes: memory }) => {
    const cells = [name, String(pid), duration(cpu * 1000), byteSize(memory)];
    return html`<tr key=${pid}>
      ${cells.map((text) => html`<td>${text}</td>`)}
    </tr>`;
  };
  if (!processes.length) return null;
  return html`<table class="wb-table wb-children">
    <thead>
      <tr>
        ${heads}
      </tr>
    </thead>
    <tbody>
      ${processes.map(line)}
    </tbody>
  </table>`;
}
