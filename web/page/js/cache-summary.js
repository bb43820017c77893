// The cache as a whole: what each tier holds.

import { h } from "./dom.js";
import { bytes, count, counted } from "./format.js";

/**
 * @param {CacheReport} report
 * @returns {HTMLElement[]}
 */
export function cacheSummary(report) {
  return [memoryCard(report), diskCard(report), useCard(report)];
}

/**
 * @param {CacheReport} report
 * @returns {HTMLElement}
 */
function memoryCard({ ram }) {
  return card(
    "Memory",
    bytes(ram.bytes),
    counted(ram.blocks, "block"),
    meter("Memory used", ram.bytes, ram.budget_bytes, "ram"),
  );
}

/**
 * @param {CacheReport} report
 * @returns {HTMLElement}
 */
function diskCard({ disk }) {
  if (!disk) return card("Disk", "Off", "Start with --prompt-cache-dir.");
  const notes = [counted(disk.blocks, "block")];
  if (disk.dirty_blocks > 0) notes.push(`${disk.dirty_blocks} not yet durable`);
  if (!disk.index_complete) notes.push("still being listed");
  if (disk.corrupt_blocks > 0) notes.push(`${disk.corrupt_blocks} damaged`);
  const made = card(
    "Disk",
    bytes(disk.bytes),
    notes.join(", "),
    meter("Disk used", disk.bytes_of_all_models, disk.budget_bytes, "disk"),
  );
  if (!disk.writing) {
    const why = disk.last_error ?? "The cause is in the server's log.";
    made.append(h("p", { class: "error" }, `Not writing. ${why}`));
  }
  return made;
}

/**
 * @param {CacheReport} report
 * @returns {HTMLElement}
 */
function useCard({ lookups, hits, hit_tokens: tokens, entries }) {
  const share = lookups === 0 ? "–" : `${Math.round((100 * hits) / lookups)} %`;
  return card(
    "Prompts found",
    share,
    `${count(hits)} of ${counted(lookups, "prompt")}; ` +
      `${counted(tokens, "token")} reused; ${counted(entries.length, "entry")}`,
  );
}

/**
 * @param {string} title
 * @param {string} figure
 * @param {string} note
 * @param {HTMLElement | null} [more]
 * @returns {HTMLElement}
 */
function card(title, figure, note, more = null) {
  return h(
    "div",
    { class: "card" },
    h("h3", {}, title),
    h("p", { class: "figure" }, figure),
    h("p", { class: "note" }, note),
    more,
  );
}

/**
 * @param {string} label
 * @param {number} used bytes
 * @param {number | null} budget bytes; null: no limit
 * @param {"ram" | "disk"} tier
 * @returns {HTMLElement}
 */
function meter(label, used, budget, tier) {
  if (budget === null) return h("p", { class: "note" }, "No limit");
  const share = Math.min(100, (100 * used) / budget);
  const fill = h("div", { class: `meter-fill tier-${tier}` });
  fill.style.width = `${share}%`;
  const text = `${bytes(used)} of ${bytes(budget)}`;
  const bar = h(
    "div",
    {
      class: "meter",
      role: "meter",
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": Math.round(share),
      "aria-valuetext": text,
    },
    fill,
  );
  return h("div", {}, bar, h("p", { class: "note" }, text));
}
