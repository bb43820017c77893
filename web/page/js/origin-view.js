// Where an answer's prompt came from: a bar, its parts in words, the time saved.

import { h } from "./dom.js";
import { count, counted, rate, seconds } from "./format.js";
import { explainSaved, savedSeconds } from "./origin.js";

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
  const saved = savedSeconds(origin);
  let text = "Time saved: not known yet";
  if (saved === 0) text = "No time saved";
  else if (saved !== null && saved > 0) text = `≈ ${seconds(saved)} saved`;
  else if (saved !== null) text = `≈ ${seconds(-saved)} lost`;
  return h(
    "details",
    { class: "origin-saved" },
    h("summary", {}, text),
    h("p", {}, explainSaved(origin)),
  );
}
