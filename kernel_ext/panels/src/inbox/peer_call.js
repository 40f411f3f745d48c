/** How the question whether another node may call a tool looks on its card: who asks, and with which arguments. */

import { nodeName } from "../network/peers.js";
import { toolCall } from "./tool_call.js";

/** @type {import("./kinds.js").Kind} */
export const peerCall = {
  ...toolCall,
  label: "call from another node",
  also: () => ({ label: "Always allow this node", choices: { remember: "always" } }),
  ban: {
    label: "Never allow this node to call this tool",
    request: ({ payload }) => [
      "set_peer_permission",
      { peer: payload.origin.node, trait: payload.tool, permission: "never" },
    ],
  },
  origin: ({ payload: { origin } }) =>
    `called by the node ${nodeName(origin.node)}, whose caller says it is ${origin.says}`,
  facts: ({ payload }) => payload.origin.node,
  done: (outcome) =>
    outcome?.remember === "always" ? "Allowed, and for this node from now on without asking you." : "Allowed.",
};
