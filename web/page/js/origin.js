// Where an answer's prompt came from, and the time that saved.

import { counted, seconds } from "./format.js";

/** Fewer computed tokens than this tell little about the price of one. */
const kEnough = 64;

/** @type {Record<Price["source"], string>} */
const kMeasured = {
  answer: "measured on the rest of this prompt",
  server: "measured by the server on recent prompts",
  other: "measured here on other prompts of this model",
};

/**
 * What a prompt token costs: measured on this answer where it computed enough
 * of them, else what the server measured lately.
 * @param {Timings} timings
 * @param {number | undefined} serverSeconds per token; 0, undefined: unknown
 * @returns {Price | null}
 */
export function priceOf(timings, serverSeconds) {
  if (timings.prompt_n >= kEnough && timings.prompt_ms > 0) {
    const price = timings.prompt_ms / 1000 / timings.prompt_n;
    return { seconds: price, source: "answer" };
  }
  if (serverSeconds) return { seconds: serverSeconds, source: "server" };
  return null;
}

/**
 * @param {Usage} usage
 * @param {Timings} timings
 * @param {Price | null} price
 * @param {string} [model]
 * @returns {Origin}
 */
export function originOf(usage, timings, price, model = "") {
  const cached = timings.cache_ram_n + timings.cache_disk_n;
  return {
    ram: timings.cache_ram_n,
    disk: timings.cache_disk_n,
    computed: Math.max(0, usage.prompt_tokens - cached),
    restoreMs: timings.restore_ms,
    promptMs: timings.prompt_ms,
    generated: usage.completion_tokens,
    tokensPerSecond: timings.predicted_per_second,
    price,
    model,
  };
}

/**
 * Seconds the cache saved: its tokens at that price, less what reading them
 * took. Negative where computing had been faster; null where the price is not
 * known.
 * @param {Origin} origin
 * @returns {number | null}
 */
export function savedSeconds(origin) {
  const reused = origin.ram + origin.disk;
  if (reused === 0) return 0;
  if (!origin.price) return null;
  return reused * origin.price.seconds - origin.restoreMs / 1000;
}

/**
 * What was saved, in short: time, or tokens while their price is not known.
 * @param {Origin} origin
 * @returns {string}
 */
export function savedInShort(origin) {
  const saved = savedSeconds(origin);
  if (saved === 0) return "No time saved";
  if (saved !== null && saved > 0) return `≈ ${seconds(saved)} saved`;
  if (saved !== null) return `≈ ${seconds(-saved)} lost`;
  const tokens = counted(origin.ram + origin.disk, "token");
  return origin.disk > 0
    ? `${tokens} read in ${seconds(origin.restoreMs / 1000)}, not computed`
    : `${tokens} not computed`;
}

/**
 * How savedSeconds came about, in words.
 * @param {Origin} origin
 * @returns {string}
 */
export function explainSaved(origin) {
  const reused = origin.ram + origin.disk;
  if (reused === 0) {
    return "Nothing of this prompt was in the cache, so nothing was saved.";
  }
  if (!origin.price) {
    return (
      "What computing a prompt token takes has not been measured here yet. " +
      "Once the server has computed a prompt, the time saved stands here."
    );
  }
  const price = seconds(origin.price.seconds);
  const measured = kMeasured[origin.price.source];
  return (
    `Estimate: ${counted(reused, "token")} reused × ${price} to compute one ` +
    `(${measured}) − ${seconds(origin.restoreMs / 1000)} spent reading the ` +
    "cache. The cost of a token grows with the length of the prompt, which " +
    "this leaves out."
  );
}
