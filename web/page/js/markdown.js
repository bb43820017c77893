// Markdown to a tree of plain objects: paragraphs, headings, lists, quotes,
// code and rules. Whatever else a text contains stays text.

import { parseInline } from "./markdown-inline.js";

/**
 * @typedef {import("./markdown-inline.js").Inline} Inline
 * @typedef {{kind: "paragraph", content: Inline[]} |
 *   {kind: "heading", level: number, content: Inline[]} |
 *   {kind: "code", language: string, text: string} |
 *   {kind: "list", ordered: boolean, start: number, items: Block[][]} |
 *   {kind: "quote", blocks: Block[]} |
 *   {kind: "rule"}} Block
 */

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const kHeading = /^ {0,3}(#{1,6})\s+(.*)$/;
const kRule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const kItem = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const kQuote = /^ {0,3}>/;
/** Lists and quotes within each other; deeper ones stay text. */
const kMostDepth = 12;

/**
 * @param {string} text
 * @returns {Block[]}
 */
export function parseMarkdown(text) {
  return parseBlocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {Block[]}
 */
function parseBlocks(lines, depth) {
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = kHeading.exec(line);
    if (line.trim() === "") {
      ++at;
    } else if (kFence.test(line)) {
      at = readCode(lines, at, blocks);
    } else if (heading) {
      const level = (heading[1] ?? "").length;
      const text = (heading[2] ?? "").trim().replace(/(?:^|\s)#+$/, "");
      const content = parseInline(text.trimEnd());
      blocks.push({ kind: "heading", level, content });
      ++at;
    } else if (kRule.test(line)) {
      blocks.push({ kind: "rule" });
      ++at;
    } else if (depth < kMostDepth && kQuote.test(line)) {
      at = readQuote(lines, at, blocks, depth);
    } else if (depth < kMostDepth && kItem.test(line)) {
      at = readList(lines, at, blocks, depth);
    } else {
      at = readParagraph(lines, at, blocks);
    }
  }
  return blocks;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {Block[]} blocks
 * @returns {number} the line after it
 */
function readCode(lines, at, blocks) {
  const [, fence = "", language = ""] = kFence.exec(lines[at] ?? "") ?? [];
  const end = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}\\s*$`);
  const text = [];
  // While an answer streams, the closing fence is still to come.
  for (++at; at < lines.length && !end.test(lines[at] ?? ""); ++at) {
    text.push(lines[at]);
  }
  blocks.push({ kind: "code", language, text: text.join("\n") });
  return at + 1;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {Block[]} blocks
 * @param {number} depth
 * @returns {number}
 */
function readQuote(lines, at, blocks, depth) {
  const inner = [];
  for (; at < lines.length && kQuote.test(lines[at] ?? ""); ++at) {
    inner.push((lines[at] ?? "").replace(/^ {0,3}> ?/, ""));
  }
  blocks.push({ kind: "quote", blocks: parseBlocks(inner, depth + 1) });
  return at;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {Block[]} blocks
 * @param {number} depth
 * @returns {number}
 */
function readList(lines, at, blocks, depth) {
  const first = kItem.exec(lines[at] ?? "")?.[2] ?? "";
  const ordered = /\d/.test(first);
  /** @type {Block[][]} */
  const items = [];
  while (at < lines.length) {
    const item = kItem.exec(lines[at] ?? "");
    const mark = item?.[2] ?? "";
    if (!item || /\d/.test(mark) !== ordered || kRule.test(lines[at] ?? "")) {
      break;
    }
    // What is indented as far as the item's text belongs to it.
    const space = item[3] ?? "";
    const width = (item[1] ?? "").length + mark.length + (space.length || 1);
    const inner = [item[4] ?? ""];
    for (++at; at < lines.length; ++at) {
      const line = lines[at] ?? "";
      const indent = line.length - line.trimStart().length;
      if (line.trim() === "") {
        const next = filled(lines, at);
        if (!/^ {2}/.test(lines[next] ?? "")) break;
        inner.push("");
        at = next - 1;
      } else if (indent >= 2) {
        inner.push(line.slice(Math.min(indent, width)));
      } else if (kItem.test(line) || startsBlock(line)) {
        break;
      } else {
        inner.push(line);
      }
    }
    items.push(parseBlocks(inner, depth + 1));
    at = skipBlank(lines, at, ordered);
  }
  const start = ordered ? parseInt(first, 10) : 1;
  blocks.push({ kind: "list", ordered, start, items });
  return at;
}

/**
 * Over blank lines, where the list goes on after them.
 * @param {string[]} lines
 * @param {number} at
 * @param {boolean} ordered
 * @returns {number}
 */
function skipBlank(lines, at, ordered) {
  const next = filled(lines, at);
  const mark = kItem.exec(lines[next] ?? "")?.[2];
  return mark && /\d/.test(mark) === ordered ? next : at;
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @returns {number} the first line from there on that is not blank
 */
function filled(lines, at) {
  while (at < lines.length && (lines[at] ?? "").trim() === "") ++at;
  return at;
}

/**
 * @param {string} line
 * @returns {boolean}
 */
function startsBlock(line) {
  return [kFence, kHeading, kRule, kQuote].some((form) => form.test(line));
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {Block[]} blocks
 * @returns {number}
 */
function readParagraph(lines, at, blocks) {
  const text = [(lines[at] ?? "").trimStart()];
  for (++at; at < lines.length; ++at) {
    const line = lines[at] ?? "";
    if (line.trim() === "" || startsBlock(line) || kItem.test(line)) break;
    text.push(line.trimStart());
  }
  blocks.push({ kind: "paragraph", content: parseInline(text.join("\n")) });
  return at;
}
