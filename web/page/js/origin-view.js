// Where an answer's prompt came from: a bar, its parts in words, the time saved.

import { h } from "./dom.js";
import { count, counted, rate } from "./format.js";
import { explainSaved, savedInShort } from "./origin.js";
import { rememberedPrice } from "./price.js";

/**
 * @param {Origin} origin
 * @returns {HTMLElement}
 */
export function originView(origin) {
  const parts = [
    { tier: "ram", name: "from memory", tokens: origin.ram },
    { tier: "disk", name: "from disk", tokens: origin.disk },
    { tier: "computed", name: "computed", tokens: origin.computed },
  ];
  const total = origin.ram + origin.disk + origin.computed;
  return h(
    "aside",
    { class: "origin", "aria-label": "Where the prompt came from" },
    h("p", { class: "origin-title" }, `Prompt: ${counted(total, "token")}`),
    bar(parts),
    h("ul", { class: "origin-parts" }, ...parts.map(part)),
    savedView(origin),
    h(
      "p",
      { class: "origin-speed" },
      `${counted(origin.generated, "token")} generated, ` +
        `${rate(origin.tokensPerSecond)} per second`,
    ),
  );
}

/**
 * @param {{tier: string, tokens: number}[]} parts
 * @returns {HTMLElement}
 */
function bar(parts) {
  const shown = parts.filter(({ tokens }) => tokens > 0);
  const pieces = shown.map(({ tier, tokens }) => {
    const piece = h("span", { class: `tier-${tier}` });
    piece.style.flexGrow = String(tokens);
    return piece;
  });
  return h("div", { class: "origin-bar", "aria-hidden": "true" }, ...pieces);
}

/**
 * @param {{tier: string, name: string, tokens: number}} part
 * @returns {HTMLElement}
 */
function part({ tier, name, tokens }) {
  return h(
    "li",
    { class: tokens === 0 ? "none" : null, "data-tier": tier },
    h("span", { class: `swatch tier-${tier}`, "aria-hidden": "true" }),
    h("b", {}, count(tokens)),
    ` ${name}`,
  );
}

/**
 * @param {Origin} origin
 * @returns {HTMLElement}
 */
function savedView(origin) {
  const priced = { ...origin, price: origin.price ?? later(origin.model) };
  return h(
    "details",
    { class: "origin-saved" },
    h("summary", {}, savedInShort(priced)),
    h("p", {}, explainSaved(priced)),
  );
}

/**
 * A price that was not known when the answer came, or not to the server since
 * its start.
 * @param {string | undefined} model
 * @returns {Price | null}
 */
function later(model) {
  const known = model ? rememberedPrice(model) : undefined;
  return known ? { seconds: known, source: "other" } : null;
}
