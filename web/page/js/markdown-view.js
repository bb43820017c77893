// Markdown's tree as elements. Nothing of a text is ever read as HTML.

import { h } from "./dom.js";
import { parseMarkdown } from "./markdown.js";
import { copyButton } from "./copy.js";

/**
 * @typedef {import("./markdown.js").Block} Block
 * @typedef {import("./markdown.js").Inline} Inline
 */

/**
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function renderMarkdown(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...parseMarkdown(text).map(block));
  return fragment;
}

/**
 * @param {Block} it
 * @returns {HTMLElement}
 */
function block(it) {
  switch (it.kind) {
    case "paragraph":
      return h("p", {}, ...it.content.map(inline));
    case "heading":
      // The page's own headings are the first two levels.
      return h(headingTag(it.level), {}, ...it.content.map(inline));
    case "code":
      return codeBlock(it.language, it.text);
    case "quote":
      return h("blockquote", {}, ...it.blocks.map(block));
    case "rule":
      return h("hr");
    case "list": {
      const items = it.items.map((item) => h("li", {}, ...listItem(item)));
      return it.ordered
        ? h("ol", { start: it.start === 1 ? null : it.start }, ...items)
        : h("ul", {}, ...items);
    }
  }
}

/**
 * @param {number} level
 * @returns {"h3" | "h4" | "h5" | "h6"}
 */
function headingTag(level) {
  if (level === 1) return "h3";
  if (level === 2) return "h4";
  return level === 3 ? "h5" : "h6";
}

/**
 * An item of one paragraph goes without it.
 * @param {Block[]} blocks
 * @returns {Node[]}
 */
function listItem(blocks) {
  const [first, ...rest] = blocks;
  if (first?.kind !== "paragraph") return blocks.map(block);
  return [...first.content.map(inline), ...rest.map(block)];
}

/**
 * @param {string} language
 * @param {string} text
 * @returns {HTMLElement}
 */
function codeBlock(language, text) {
  return h(
    "figure",
    { class: "code" },
    h(
      "figcaption",
      {},
      h("span", {}, language || "code"),
      copyButton(() => text, "Copy code"),
    ),
    h("pre", { tabindex: 0 }, h("code", {}, text)),
  );
}

/**
 * @param {Inline} it
 * @returns {Node}
 */
function inline(it) {
  switch (it.kind) {
    case "text":
      return document.createTextNode(it.text);
    case "code":
      return h("code", {}, it.text);
    case "break":
      return h("br");
    case "strong":
      return h("strong", {}, ...it.content.map(inline));
    case "emphasis":
      return h("em", {}, ...it.content.map(inline));
    case "struck":
      return h("s", {}, ...it.content.map(inline));
    case "link":
      return h(
        "a",
        { href: it.href, target: "_blank", rel: "noopener noreferrer" },
        ...it.content.map(inline),
      );
  }
}
