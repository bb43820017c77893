// One row of the cache's tree.

import { h } from "./dom.js";
import { ago, bytes, count, counted, seconds } from "./format.js";

/**
 * @typedef {import("./cache-tree.js").TreeNode} TreeNode
 * @typedef {{pin: (entry: CacheEntry) => void,
 *   remove: (entry: CacheEntry) => void,
 *   toggle: (node: TreeNode) => void}} RowActions
 */

/** Deeper rows are indented no further. */
const kMostIndent = 6;

/** @type {Record<EntryType, string>} */
const kTypes = {
  system: "System prompt",
  user: "Prompt",
  assistant: "Prompt and answer",
};

/**
 * @param {TreeNode} node
 * @param {number} level from 1
 * @param {boolean} open
 * @param {RowActions} on
 * @returns {HTMLElement}
 */
export function cacheRow(node, level, open, on) {
  const { entry, children } = node;
  const row = h(
    "div",
    {
      role: "row",
      class: entry ? "row" : "row prefix",
      tabindex: -1,
      "aria-level": level,
      "aria-expanded": children.length > 0 ? String(open) : null,
      "data-key": node.key,
    },
    nameCell(node, open, on),
    ...(entry ? cells(entry) : prefixCells(node)),
    actions(node, on),
  );
  row.style.setProperty("--level", String(Math.min(level - 1, kMostIndent)));
  return row;
}

/**
 * @param {TreeNode} node
 * @param {boolean} open
 * @param {RowActions} on
 * @returns {HTMLElement}
 */
function nameCell(node, open, on) {
  const { entry, children, text } = node;
  const twisty =
    children.length > 0
      ? h(
          "span",
          {
            class: "twisty",
            "aria-hidden": "true",
            onclick: () => on.toggle(node),
          },
          open ? "▾" : "▸",
        )
      : h("span", { class: "twisty", "aria-hidden": "true" });
  const name = entry ? kTypes[entry.type] : "Shared prefix";
  const id = entry?.id.slice(0, 8);
  return h(
    "div",
    { role: "gridcell", class: "name" },
    twisty,
    h(
      "span",
      { class: "label" },
      h("span", { class: "type" }, name),
      " ",
      id && h("code", { title: entry?.id }, id),
      entry?.pinned && h("span", { class: "pinned" }, "pinned"),
      text && h("bdi", { class: "says", title: text }, text),
    ),
  );
}

/**
 * @param {CacheEntry} entry
 * @returns {HTMLElement[]}
 */
function cells(entry) {
  const age = Date.now() / 1000 - entry.last_use;
  const used = new Date(entry.last_use * 1000).toLocaleString();
  const expiry =
    entry.ttl_seconds === null || entry.pinned
      ? used
      : `${used}; expires ${seconds(entry.ttl_seconds)} after its last use`;
  return [
    cell("Tokens", count(entry.tokens)),
    cell(
      "Size",
      bytes(entry.bytes),
      `${counted(entry.blocks, "block")}, shared ones too`,
    ),
    cell("Tier", ...tierOf(entry)),
    cell("Used", ago(Math.max(0, age)), expiry),
    cell("Hits", count(entry.hits)),
  ];
}

/**
 * @param {TreeNode} node
 * @returns {HTMLElement[]}
 */
function prefixCells(node) {
  return [
    cell("Tokens", count(node.tokens)),
    cell("Size", ""),
    cell("Tier", ""),
    cell("Used", ""),
    cell("Hits", ""),
  ];
}

/**
 * Where the entry's blocks lie.
 * @param {CacheEntry} entry
 * @returns {[string, string]} text, explanation
 */
function tierOf({ ram_blocks: inRam, disk_blocks: onDisk, blocks }) {
  const parts = [];
  if (inRam > 0) parts.push(inRam < blocks ? "part memory" : "memory");
  if (onDisk > 0) parts.push(onDisk < blocks ? "part disk" : "disk");
  const note = `${inRam} of ${blocks} in memory, ${onDisk} on disk`;
  return [parts.join(", ") || "none", note];
}

/**
 * @param {string} column
 * @param {string} text
 * @param {string} [title]
 * @returns {HTMLElement}
 */
function cell(column, text, title = "") {
  const attributes = { role: "gridcell", "data-column": column };
  return h("div", { ...attributes, title: title || null }, text);
}

/**
 * @param {TreeNode} node
 * @param {RowActions} on
 * @returns {HTMLElement}
 */
function actions({ entry, text }, on) {
  const of = { role: "gridcell", class: "actions" };
  if (!entry) return h("div", of);
  const says = text ? `, “${text}”` : "";
  const name =
    `${kTypes[entry.type]}, ${counted(entry.tokens, "token")}` + says;
  const pin = entry.pinned ? "Unpin" : "Pin";
  return h(
    "div",
    of,
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        tabindex: -1,
        "data-action": "pin",
        "aria-label": `${pin}: ${name}`,
        onclick: () => on.pin(entry),
      },
      pin,
    ),
    h(
      "button",
      {
        type: "button",
        class: "quiet danger",
        tabindex: -1,
        "data-action": "delete",
        "aria-label": `Delete: ${name}`,
        onclick: () => on.remove(entry),
      },
      "Delete",
    ),
  );
}
