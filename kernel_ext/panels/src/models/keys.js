/** Which provider of models answers, and where its key is kept: for Administration. No key is ever shown. */

import { ActionButton } from "../components/action_form.js";
import { Dot, Embedded, Section, html, useLayoutEffect, useMemo, useRequests, useState } from "../components/ui.js";
import { h, prose } from "../lib/dom.js";
import { Refresh } from "../link/polling.js";

/** @type {Record<string, [string, string]>} the dot and the words of a state */
const STATES = {
  none: ["none", "No key"],
  untried: ["none", "Not tried yet"],
  accepted: ["idle", "Answers"],
  refused: ["rejected", "Refuses the key"],
  unreadable: ["rejected", "Key unreadable"],
  unreachable: ["rejected", "Not reachable"],
  unclear: ["rejected", "Unclear"],
};
const ABOUT = "Agents ask these by way of the server, which adds the key. No agent gets it.";

/** @param {{desk: any}} props */
export function ModelProviders({ desk }) {
  const requests = useRequests(desk);
  const [providers, setProviders] = useState([]);
  useLayoutEffect(() => {
    const read = async () => {
      const { keys } = await requests.send("list_model_keys", {});
      requests.clearError();
      setProviders(keys);
    };
    const refresh = new Refresh(read, (error) => requests.showError(error));
    refresh.now();
    return () => refresh.stop();
  }, []);
  const act = () => requests.run("check_model_keys", {});
  const onDone = ({ keys }) => {
    setProviders(keys);
    const answering = keys.filter(({ state }) => state === "accepted").map(({ provider }) => provider);
    desk.announce(answering.length ? `${answering.join(", ")}: the key is accepted.` : "No key was accepted.");
  };
  return html`<${Section} title="Providers of models" about=${ABOUT}>
    <ul class="wb-entries">
      ${providers.map((each) => html`<${Provider} key=${each.provider} ...${each} />`)}
    </ul>
    <div><${ActionButton} label="Try the keys" working="Trying…" ...${{ act, onDone }} /></div>
    <${Embedded} element=${requests.errorBox} />
  <//>`;
}

function Provider({ provider, source, address, state, detail }) {
  const [dot, words] = STATES[state];
  const where = [address, source && `key from ${source}`].filter(Boolean).join(" · ");
  const text = [where, detail].filter(Boolean).join(" · ");
  const about = useMemo(() => h("span", { class: "wb-muted wb-grow wb-wrap" }, ...prose(text)), [text]);
  return html`<li class="wb-entry wb-provider">
    <span class="wb-entry-name">${provider}</span>
    <span class="wb-state"><${Dot} state=${dot} /><span>${words}</span></span>
    <${Embedded} element=${about} />
  </li>`;
}
