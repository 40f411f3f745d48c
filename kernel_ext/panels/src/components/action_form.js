/** The question before something that cannot simply be undone, with the button that does it. */

import { Button, html, useLayoutEffect, useRef, useState } from "./ui.js";

/**
 * @param {object} props
 * @param {string} props.label of the button that does it
 * @param {string} props.working on the button while it is done
 * @param {string} props.consequence what happens then
 * @param {string} [props.reason] placeholder of the field for a reason; without it there is no field
 * @param {boolean} [props.danger] whether something may be lost
 * @param {(reason: string) => Promise<any>} props.act false or null: it has failed
 * @param {(outcome: any) => void} props.onDone
 * @param {() => void} props.onCancel
 */
export function ActionForm({ label, working, consequence, reason, danger = true, act, onDone, onCancel }) {
  const form = useRef(null);
  const [isBusy, run] = useAction(() => act(form.current.querySelector("input")?.value.trim() ?? ""), onDone);
  useLayoutEffect(() => form.current.querySelector("input, button").focus(), []);
  const submit = (event) => {
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
  return html`<form ref=${form} class="wb-confirm wb-stack" onSubmit=${submit} onKeyDown=${onKeyDown}>
    <p class="wb-muted">${consequence}</p>
    <div class="wb-line">
      ${reason && html`<input class="wb-input wb-grow" type="text" maxlength="1000" placeholder=${reason} aria-label="Reason" spellcheck=${false} autocomplete="off" />`}
      <${Button}
        type="submit"
        class="wb-button ${danger ? "wb-danger" : "wb-primary"}"
        label=${isBusy ? working : label}
        disabled=${isBusy}
      />
      <${Button} label="Cancel" onClick=${onCancel} />
    </div>
  </form>`;
}

/**
 * The question that is asked below the buttons that ask one; cancelling gives the focus back to the button. It is an
 * `ActionForm`, or another `form`.
 * @returns {{question: any, ask: (event: Event, question: object) => void, close: () => void}}
 */
export function useQuestion() {
  const [asked, setAsked] = useState(null);
  const close = () => setAsked(null);
  const ask = (event, words) => setAsked({ words, opener: event.currentTarget });
  const cancel = () => {
    close();
    asked.opener.focus();
  };
  const { form: Form = ActionForm, ...words } = asked?.words ?? {};
  const question = asked && html`<${Form} key=${words.label} ...${words} onCancel=${cancel} />`;
  return { question, ask, close };
}

/** A button that does something at once, and says so meanwhile. @param {{label: string, working: string, act: () => Promise<any>, onDone: (outcome: any) => void}} props */
export function ActionButton({ label, working, act, onDone, disabled = false, ...more }) {
  const [isBusy, run] = useAction(act, onDone);
  return html`<${Button} ...${more} label=${isBusy ? working : label} disabled=${isBusy || disabled} onClick=${run} />`;
}

/** Whether something is being done, and what does it, unless it is. @returns {[boolean, () => Promise<void>]} */
function useAction(act, onDone) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    const outcome = await act();
    setBusy(false);
    if (outcome) onDone(outcome);
  };
  return [isBusy, run];
}
