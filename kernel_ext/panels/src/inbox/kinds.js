/** The kinds of approvals: how each looks on its card, and what happens when it is approved. */

import { integration } from "../integration/approval.js";
import { budget } from "./budget.js";
import { failure } from "./failure.js";
import { plan } from "./plan.js";
import { agentQuestion, question } from "./question.js";
import { peerCall, toolCall } from "./tool_call.js";
import { registration } from "./registration.js";
import { trust } from "./trust.js";

/** @typedef {import("../link/store.js").Tables} Tables */

/**
 * How approvals of one kind look, and what happens when one is approved.
 * @typedef {object} Kind
 * @property {string} icon
 * @property {string} label
 * @property {(approval: any, detailed: boolean, details: Details|null) => string} approve label of the button;
 *   `detailed`: the details are open
 * @property {string} approving its label while the request is under way
 * @property {string} [reject] label of the button that rejects, `rejects` of the one that sends it, and what is said then
 * @property {string} [rejects]
 * @property {string} [rejected]
 * @property {(approval: any) => string} title
 * @property {(approval: any) => string} origin
 * @property {(approval: any, tables: Tables) => (Node|string|null)[]} summary what approving at once would do
 * @property {(approval: any) => string[]} [lines] what decides it, a line each
 * @property {(approval: any) => string} [facts] further facts, in one line
 * @property {(approval: any, tables: Tables, notebook: string|null) => string[]} [warnings] `notebook`: the path of the one that is open here
 * @property {() => Live} [live] what goes on meanwhile
 * @property {(approval: any, tables: Tables) => boolean} discouraged whether approving is not the likely answer
 * @property {(approval: any) => {label: string, consequence: string, choices: object}|null} [confirmation] asked before
 *   approving, and the choices that come with it
 * @property {boolean} [undoable] whether a rejection can be undone
 * @property {(approval: any, tables: Tables) => object} [choices] the choices of approving at once
 * @property {(approval: any) => {label: string, choices: object}[]} [also] other ways to approve, with a button each
 * @property {{label: string, request: (approval: any) => [string, object]}} [ban] another way to reject: an operation
 * @property {(approval: any) => string} [review] the worktree whose changes it is about
 * @property {(approval: any, tables: Tables, desk: object) => Details} [details] `desk`: what a `RequestRunner` needs, and
 *   `changed`, to be called when the label of the button may be another
 * @property {(approval: any) => boolean} [opensDetails] whether the details are open from the beginning
 * @property {boolean} [needsButton] whether Enter in the details does not approve
 * @property {(outcome: any, approval: any) => string} done what came of it
 * @property {(approval: any, tables: Tables) => {text: string, done: boolean, error: any}} [progress] how far the work
 *   is that an approval has started
 * @property {(approval: any) => string[]} [subjects] subjects of the events about that work
 * @property {(approval: any, tables: Tables) => any} [successor] the approval that asks again after the work failed
 *
 * @typedef {{element: HTMLElement, isRunning: boolean, update: (approval: any) => void,
 *   refresh: (approval: any) => void}} Live `refresh` takes the approval as it was just read, while it `isRunning`
 *
 * @typedef {{element: HTMLElement, first: HTMLElement, choices: () => object, refresh?: (approval: any) => void,
 *   fieldOf: (error: {code: string}) => HTMLElement|null}} Details
 */

/** Approvals of a kind that this panel does not know. @type {Kind} */
const unknown = {
  icon: "question",
  label: "approval",
  approve: () => "Approve",
  approving: "Approving…",
  title: ({ subject }) => subject,
  origin: ({ asker, requester }) => `requested by ${asker ?? requester}`,
  summary: ({ kind }) => [kind],
  discouraged: () => false,
  done: () => "Approved.",
};

const KINDS = {
  registration,
  integration,
  trust,
  tool_call: toolCall,
  peer_call: peerCall,
  question,
  agent_question: agentQuestion,
  failure,
  budget,
  plan,
};

/** @param {any} approval @returns {Kind} */
export function kindOf(approval) {
  return KINDS[approval.kind] ?? unknown;
}
