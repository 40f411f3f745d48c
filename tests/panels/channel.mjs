/** Plays stories on the panel's channel: the steps of one a line; what was sent and settled a line. */

import { createInterface } from "node:readline";
import { mock } from "node:test";
import process from "node:process";

import { Channel } from "../../kernel_ext/panels/src/link/channel.js";
import { Store } from "../../kernel_ext/panels/src/link/store.js";

async function play(steps) {
  const sent = [];
  const settled = {};
  const listeners = {};
  const model = {
    connected: true,
    on: (kind, listener) => (listeners[kind] = listener),
    off: () => {},
    send(message) {
      if (!model.connected) throw new Error("Cannot send");
      sent.push(message);
    },
  };
  const channel = new Channel(model, new Store(), new AbortController().signal);

  function request(id, key = id) {
    channel.request(id, "approve", {}).then(
      (outcome) => (settled[key] = outcome),
      (error) => (settled[key] = error.code),
    );
  }

  const does = {
    request: ([id, key]) => request(id, key),
    receive: (message) => listeners["msg:custom"](message, []),
    seconds: (seconds) => mock.timers.tick(seconds * 1000),
    connected: (on) => (model.connected = on),
    edited_by: (user) => {
      const sharedModel = { awareness: { getLocalState: () => ({ user }) } };
      model.widget_manager = { context: { model: { collaborative: true, sharedModel } } };
    },
  };
  for (const [what, how] of steps) {
    does[what](how);
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  }
  const actions = sent.filter(({ kind }) => kind === "action");
  const ids = actions.map(({ request: id }) => id);
  const people = actions.map(({ person }) => person ?? null);
  return { requests: ids, people, settled, link: channel.link.state };
}

for await (const line of createInterface({ input: process.stdin })) {
  mock.timers.enable({ apis: ["setTimeout"] });
  console.log(JSON.stringify(await play(JSON.parse(line))));
  mock.timers.reset();
}
