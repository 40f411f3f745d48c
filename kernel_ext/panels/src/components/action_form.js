/** The question before something is done, with the button that does it; and buttons that do something at once. */

import { Button, html, useLayoutEffect, useRef, useState } from "./ui.js";

const PLAIN = { type: "text", spellcheck: false, autocomplete: "off" };

/** A line of text in a form. @param {{name: string, label?: string, value?: string}} props for screen readers, and what is shown while it is empty */
export function TextField({ name, label = name, value = "", ...more }) {
  return html`<input
    ...${PLAIN}
    class="wb-input wb-grow"
    aria-label=${name}
    placeholder=${label}
    defaultValue=${value}
    ...${more}
  />`;
}

/**
 * @param {object} props
 * @param {string} props.label of the button that does it
 * @param {string} [props.working] on the button while it is done
 * @param {string} [props.consequence] what happens then
 * @param {string} [props.reason] placeholder of the field for a reason; without it there is no field
 * @param {any} [props.control] a field or a choice instead, which has the focus again when it has failed
 * @param {string} [props.note] what is to be known about that
 * @param {boolean} [props.danger] whether something may be lost
 * @param {(value: string) => Promise<any>} props.act with what is in the field; false or null: it has failed
 * @param {(outcome: any) => void} props.onDone
 * @param {() => void} props.onCancel
 */
function ActionForm({ label, working = "Working…", consequence, reason, control, note, danger = !control, ...more }) {
  const { act, onDone, onCancel } = more;
  const form = useRef(null);
  const field = () => form.current.querySelector("input, select");
  const failed = () => control && field().focus();
  const [isBusy, run] = useAction(() => act(field()?.value.trim() ?? ""), onDone, failed);
  useLayoutEffect(() => {
    (field() ?? form.current.querySelector("button")).focus();
    field()?.select?.();
  }, []);
  const onSubmit = (event) => {
    event.preventDefault();
    run();
  };
  const onKeyDown = (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    } else if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault(); // inside a notebook browsers do not submit
      form.current.requestSubmit();
    }
  };
  const kind = danger ? "wb-danger" : "wb-primary";
  const submit = { type: "submit", class: `wb-button ${kind}`, label: isBusy ? working : label, disabled: isBusy };
  return html`<form ref=${form} class=${consequence ? "wb-confirm wb-stack" : "wb-stack"} ...${{ onSubmit, onKeyDown }}>
    ${consequence && html`<p class="wb-muted">${consequence}</p>`}
    <div class="wb-line">
      ${control} ${reason && html`<${TextField} name="Reason" label=${reason} maxlength="1000" />`}
      <${Button} ...${submit} />
      <${Button} label="Cancel" onClick=${onCancel} />
    </div>
    ${note && html`<p class="wb-muted">${note}</p>`}
  </form>`;
}

/**
 * The question that a button asks: an `ActionForm`, or another `form`. `where` says where it is asked. It ends when it
 * is done, unless it has an `onDone` of its own, or when it is cancelled; the button then has the focus again.
 * @returns {{question: any, where: any, ask: (event: Event, question: object) => void}}
 */
export function useQuestion() {
  const [asked, setAsked] = useState(null);
  const ask = (event, words) => setAsked({ words, opener: event.currentTarget });
  const end = () => {
    setAsked(null);
    asked.opener.focus();
  };
  const { form: Form = ActionForm, where = null, onDone = end, ...words } = asked?.words ?? {};
  const about = { ...words, onCancel: end, onDone: (outcome) => onDone(outcome, end) };
  const question = asked && html`<${Form} key=${`${where} ${words.label}`} ...${about} />`;
  return { question, where, ask };
}

/** A button that does something at once, and says so meanwhile. @param {{label: string, working?: string, act: () => Promise<any>, onDone: (outcome: any) => void}} props */
export function ActionButton({ label, working = "Working…", act, onDone, disabled = false, ...more }) {
  const [isBusy, run] = useAction(act, onDone);
  return html`<${Button} ...${more} label=${isBusy ? working : label} disabled=${isBusy || disabled} onClick=${run} />`;
}

/** Whether something is being done, and what does it, unless it is. @returns {[boolean, () => Promise<void>]} */
export function useAction(act, onDone, onFailed = () => {}) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    const outcome = await act();
    setBusy(false);
    if (outcome) onDone(outcome);
    else onFailed();
  };
  return [isBusy, run];
}
