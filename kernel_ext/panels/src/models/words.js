/** What requests to models used and cost, in words. What is not known is said to be unknown: it is not 0. Pure. */

import { dollars, duration, plural } from "../lib/format.js";

/**
 * What some requests used, of `list_costs`.
 * @typedef {{name: string|null, provider: string|null, model: string|null, requests: number, unpriced: number,
 *   estimated: number, input_tokens: number|null, cached_tokens: number|null, cache_write_tokens: number|null,
 *   output_tokens: number|null, reasoning_tokens: number|null, cost_usd: number|null}} Cost
 */

/** What budgets limit. */
export const LIMITS = ["tokens", "usd", "attempts", "seconds"];
const COUNTED = ["requests", "unpriced", "estimated"];
const TOKENS = ["input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens"];

/** "34,200"; "–" where the provider told none. @param {number|null} value */
export function count(value) {
  return value === null ? "–" : value.toLocaleString("en");
}

/** "$0.13 of $20.00", "800 of 1,000 tokens". @param {string} limit @param {number} spent @param {number} most */
export function spentText(limit, spent, most) {
  const isCounted = limit === "tokens" || limit === "attempts";
  return `${isCounted ? count(spent) : amountText(limit, spent)} of ${amountText(limit, most)}`;
}

/** "$0.21", "1,000 tokens", "3 attempts", "2 h 0 min". @param {string} limit @param {number} value */
export function amountText(limit, value) {
  if (limit === "usd") return dollars(value);
  return limit === "seconds" ? duration(1000 * value) : plural(value, limit.slice(0, -1));
}

/** "$0.21", "$0.21 + unknown", "unknown"; "–" where nothing was used. @param {Cost} cost */
export function costText({ cost_usd: cost, unpriced }) {
  if (cost === null) return unpriced ? "unknown" : "–";
  return unpriced ? `${dollars(cost)} + unknown` : dollars(cost);
}

/** What a cost leaves out, and what of it is guessed; empty: it is exact. @param {Cost} cost */
export function costNote({ requests, unpriced, estimated }) {
  const priceless = unpriced && `No price is known for ${unpriced === requests ? "" : `${count(unpriced)} of `}`;
  const parts = [
    priceless && `${priceless}${plural(requests, "request")}.`,
    estimated && `${plural(estimated, "answer")} ended early: the tokens are estimated.`,
  ];
  return parts.filter(Boolean).join(" ");
}

/** "34,200 tokens in, 30,000 cached, 1,204 out (300 thinking)". @param {Cost} cost */
export function tokensText({ input_tokens: read, cached_tokens: cached, cache_write_tokens: written, ...more }) {
  const { output_tokens: out, reasoning_tokens: thought } = more;
  if (read === null && out === null) return "tokens unknown";
  const parts = [
    `${count(read ?? 0)} tokens in`,
    cached && `${count(cached)} cached`,
    written && `${count(written)} written to the cache`,
    `${count(out ?? 0)} out${thought ? ` (${count(thought)} thinking)` : ""}`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** Who answered: "anthropic · claude-sonnet-4-5". @param {Cost} cost */
export function answeredBy({ provider, model }) {
  return [provider ?? "several providers", model ?? "several models"].join(" · ");
}

/** All of them together. @param {Cost[]} costs @returns {Cost} */
export function sumOf(costs) {
  const same = (field) => (costs.every((cost) => cost[field] === costs[0][field]) ? costs[0][field] : null);
  const sum = (field) => {
    const told = costs.map((cost) => cost[field]).filter((value) => value !== null);
    return told.length ? told.reduce((one, other) => one + other) : null;
  };
  const sums = [...COUNTED, ...TOKENS, "cost_usd"].map((field) => [field, sum(field)]);
  return { name: null, provider: same("provider"), model: same("model"), ...Object.fromEntries(sums) };
}
