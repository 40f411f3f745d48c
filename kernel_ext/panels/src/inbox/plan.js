/**
 * How tasks that an agent proposes look on their card: as a tree, each with a box to leave it out and a comment. What
 * needs a task that is left out, or is part of it, is left out with it.
 */

import { Button, Checkbox, Embedded, html, render } from "../components/ui.js";
import { h } from "../lib/dom.js";
import { dollars, plural, shortList } from "../lib/format.js";
import { RequestRunner } from "../link/request_runner.js";

const MOST = 500;
const LONGEST_COMMENT = 5_000;
const HEADS = ["Persona", "Worktree", "Waits for", "Limit"];

/** @type {import("./kinds.js").Kind} */
export const plan = {
  icon: "question",
  label: "plan",
  approve: ({ payload: { tasks } }, _, tree) => {
    const out = tree?.out.size ?? 0;
    return `Begin ${out ? `${(tasks - out).toLocaleString("en")} of ` : ""}${plural(tasks, "task")}`;
  },
  approving: "Beginning…",
  rejected: "Its tasks are cancelled, and its agent is told.",
  opensDetails: () => true,
  needsButton: true,
  title: ({ payload }) => payload.plan ?? `Tasks of ${payload.agent}`,
  origin: ({ payload }) => `proposed by ${payload.agent}`,
  summary: () => [],
  lines: ({ payload }) => payload.decides,
  discouraged: () => false,
  details: (approval, _, desk) => new ProposedTasks(approval, desk),
  done: ({ tasks, left_out: out, left_out_with: also, cancelled }) => {
    const left = [...out, ...also];
    return `${plural(tasks, "task")} may begin.${left.length ? ` Left out: ${shortList(left, 5, cancelled)}.` : ""}`;
  },
};

/** The tasks that go with others that are left out, each with the one that it needs or is part of, by id. */
function leftWith(without, tasks) {
  const found = new Map();
  const visit = (other) => {
    for (const { id, parent_task_id: parent, after, ignores_failure: ignores } of tasks)
      if ((parent === other || (!ignores && after.includes(other))) && !without.has(id) && !found.has(id)) {
        found.set(id, other);
        visit(id);
      }
  };
  without.forEach(visit);
  return found;
}

/** The tree, and what is chosen of it. */
class ProposedTasks {
  /** @param {any} approval @param {{channel: any, announce: (text: string) => void, changed: () => void}} desk */
  constructor({ id, payload }, desk) {
    this.id = id;
    this.payload = payload;
    this.changed = desk.changed;
    this.requests = new RequestRunner(desk);
    this.first = this.element = h("div", { class: "wb-box wb-stack wb-plan" });
    this.tasks = [];
    /** Those that the person leaves out, by id. @type {Set<number>} */
    this.without = this.out = new Set();
    /** Comments by task, also one that has just been begun. @type {Map<number, string>} */
    this.comments = new Map();
    this.comment = this.limit = "";
    this.load();
  }

  /** The question may have changed: then its tasks are read again. */
  refresh({ payload }) {
    if (JSON.stringify(payload) === JSON.stringify(this.payload)) return;
    this.payload = payload;
    this.load();
  }

  async load() {
    try {
      const { tasks } = await this.requests.send("list_proposed_tasks", { approval_id: this.id, limit: MOST });
      this.requests.clearError();
      this.tasks = tasks;
    } catch (error) {
      this.requests.showError(error);
    }
    this.without = new Set(this.tasks.map(({ id }) => id).filter((id) => this.without.has(id)));
    this.draw();
  }

  draw() {
    this.also = leftWith(this.without, this.tasks);
    this.out = new Set([...this.without, ...this.also.keys()]);
    render(html`<${Tree} of=${this} />`, this.element);
    this.changed();
  }

  toggle(id, on) {
    if (on) this.without.delete(id);
    else this.without.add(id);
    this.draw();
  }

  /** Begin a comment on a task, or remove it. */
  note(id) {
    if (!this.comments.delete(id)) this.comments.set(id, "");
    this.draw();
  }

  choices() {
    const comments = Object.fromEntries([...this.comments].filter(([, text]) => text.trim()));
    const limit = this.limit && { usd: Number(this.limit) };
    return { without: [...this.without], comment: this.comment, comments, ...limit };
  }

  fieldOf() {
    return null;
  }
}

function Tree({ of }) {
  const { tasks, payload } = of;
  const names = new Map(tasks.map(({ id, name, title }) => [id, name ?? title]));
  const set = (name) => (event) => (of[name] = event.target.value);
  const about = `Comment for ${payload.agent}`;
  const limit = html`<label class="wb-plan-limit wb-muted">
    Limit in US dollars
    <input class="wb-input" inputmode="decimal" placeholder=${payload.limits.usd} onInput=${set("limit")} />
  </label>`;
  return html`<${Embedded} element=${of.requests.errorBox} />
    <div class="wb-plan-tasks">
      <table class="wb-table wb-by-need" aria-label=${`Tasks of ${payload.plan ?? payload.agent}`}>
        <tr>
          <th class="wb-col-main">Task</th>
          ${HEADS.map((head) => html`<th>${head}</th>`)}
          <th />
        </tr>
        ${tasks.map((task) => html`<${Line} key=${task.id} of=${of} task=${task} names=${names} />`)}
      </table>
    </div>
    ${
      payload.tasks > tasks.length &&
      html`<p class="wb-muted">
        These are ${tasks.length} of them; <code>workbench proposed ${of.id}</code> lists all.
      </p>`
    }
    <div class="wb-line">
      <input
        class="wb-input wb-grow"
        aria-label=${about}
        placeholder=${about}
        maxlength=${LONGEST_COMMENT}
        onInput=${set("comment")}
      />
      ${payload.plan && limit}
    </div>`;
}

function Line({ of, task, names }) {
  const { id, after, budget } = task;
  const name = names.get(id);
  const cause = of.also.get(id);
  const commented = of.comments.has(id);
  const waits = cause
    ? `left out with ${names.get(cause)}`
    : shortList(after.map((other) => names.get(other) ?? other));
  const limits = Object.entries(budget ?? {}).map(([what, value]) =>
    what === "usd" ? dollars(value) : `${value} ${what}`,
  );
  const facts = [task.persona_id, task.worktree, waits, limits.join(", ")];
  const begins = { name: `Begin ${name}`, checked: !of.out.has(id), disabled: Boolean(cause) };
  const note = { label: commented ? "Remove" : "Comment", name: `Comment on ${name}`, onClick: () => of.note(id) };
  return html`<tr class=${of.out.has(id) ? "wb-plan-out" : ""}>
      <td class="wb-col-main" style=${{ paddingLeft: `${8 + 16 * Math.min(task.depth, 8)}px` }}>
        <${What} task=${task}><${Checkbox} ...${begins} onChange=${(on) => of.toggle(id, on)} /><//>
      </td>
      ${facts.map((text) => html`<td title=${text}>${text}</td>`)}
      <td><${Button} class="wb-link wb-quiet" ...${note} /></td>
    </tr>
    ${commented && html`<${Comment} of=${of} id=${id} name=${name} />`}`;
}

function What({ task: { title, run, check, needs }, children }) {
  const commands = [run, check && ["check:", check.run ?? check], needs && ["needs", needs]]
    .filter(Boolean)
    .map((words) => [words].flat(2).join(" "));
  return html`<label class="wb-check-label">
    ${children}
    <span title=${title}>${title}</span>
    ${commands.map((command) => html`<code title=${command}>${command}</code>`)}
  </label>`;
}

function Comment({ of, id, name }) {
  return html`<tr>
    <td colspan="6">
      <input
        class="wb-input"
        aria-label=${`Text of the comment on ${name}`}
        placeholder=${`For ${of.payload.agent}, and for whoever does it`}
        maxlength=${LONGEST_COMMENT}
        ref=${(input) => of.comments.get(id) || input?.focus()}
        value=${of.comments.get(id)}
        onInput=${(event) => of.comments.set(id, event.target.value)}
      />
    </td>
  </tr>`;
}
