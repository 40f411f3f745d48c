/** How the check of an attempt ended. */

import { Embedded, html, useLayoutEffect, useRequests, useState } from "../components/ui.js";
import { outputOf } from "../lib/blocks.js";

/** What is said of the check of an attempt, and what it wrote. */
export function checkOf(check) {
  if (!check) return [];
  const tries = check.tries > 1 ? ` after ${check.tries} runs` : "";
  const commit = check.commit ? ` on ${check.commit.slice(0, 10)}` : "";
  const metrics = Object.entries(check.metrics ?? {}).map(([name, value]) => ` · ${name} ${value}`);
  return [`Check: ${check.state}${tries}${commit}${metrics.join("")}`, check.output && outputOf(check.output)];
}

/** The check of an attempt, where its task is not shown. @param {{desk: any, task: number, attempt: number}} props */
export function AttemptCheck({ desk, task, attempt }) {
  const requests = useRequests(desk);
  const [check, setCheck] = useState(null);
  useLayoutEffect(() => {
    requests.send("get_task", { task_id: task }).then(
      ({ attempts }) => setCheck(attempts.find((one) => one.attempt === attempt)?.check ?? null),
      (error) => requests.showError(error),
    );
  }, []);
  const [line, output] = checkOf(check);
  return html`<div class="wb-stack">
    ${line && html`<p class="wb-muted wb-wrap">${line}</p>`} ${output && html`<${Embedded} element=${output} />`}
    <${Embedded} element=${requests.errorBox} />
  </div>`;
}
