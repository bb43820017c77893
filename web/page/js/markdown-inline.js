// The inside of a paragraph: code, emphasis, links, line breaks.

/**
 * @typedef {{kind: "text", text: string} | {kind: "code", text: string} |
 *   {kind: "break"} |
 *   {kind: "strong" | "emphasis" | "struck", content: Inline[]} |
 *   {kind: "link", href: string, content: Inline[]}} Inline
 */

/** What may stand in a link: no javascript:, no data:, no relative paths. */
const kSafeHref = /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i;

/**
 * Each form with what makes of its match a piece, or null: text after all.
 * The first that matches furthest left wins.
 * @type {[RegExp, (match: RegExpExecArray) => Inline | null][]}
 */
const kForms = [
  [/\\([!-/:-@[-`{-~])/, ([, mark = ""]) => ({ kind: "text", text: mark })],
  [
    /(?<!`)(`+)(?!`)([^]*?[^`])\1(?!`)/,
    ([, , text = ""]) => ({
      kind: "code",
      text: text.replace(/^ (.+) $/, "$1"),
    }),
  ],
  [
    /!?\[([^\]]*)\]\(\s*<?([^\s)>]*)>?(?:\s+["'][^"']*["'])?\s*\)/,
    ([, label = "", href = ""]) => link(href, parseInline(label || href)),
  ],
  [
    /<?(https?:\/\/[^\s<>"]*[^\s<>".,;:!?)*_\]])>?/,
    ([, href = ""]) => link(href, [{ kind: "text", text: href }]),
  ],
  [/(\*\*|__)(?=\S)([^]*?\S)\1/, ([, , text = ""]) => nest("strong", text)],
  [
    /\*(?=[^\s*])([^]*?[^\s*])\*(?!\*)/,
    ([, text = ""]) => nest("emphasis", text),
  ],
  [
    /(?<![\p{L}\p{N}_])_(?=[^\s_])([^]*?[^\s_])_(?![\p{L}\p{N}_])/u,
    ([, text = ""]) => nest("emphasis", text),
  ],
  [/~~(?=\S)([^]*?\S)~~/, ([, text = ""]) => nest("struck", text)],
  [/ {2,}\n|\\\n/, () => ({ kind: "break" })],
];

/**
 * @param {"strong" | "emphasis" | "struck"} kind
 * @param {string} text
 * @returns {Inline}
 */
function nest(kind, text) {
  return { kind, content: parseInline(text) };
}

/**
 * @param {string} href
 * @param {Inline[]} content
 * @returns {Inline | null}
 */
function link(href, content) {
  return kSafeHref.test(href) ? { kind: "link", href, content } : null;
}

/**
 * @param {string} text
 * @returns {Inline[]}
 */
export function parseInline(text) {
  /** @type {Inline[]} */
  const content = [];
  /** @param {string} plain */
  const push = (plain) => {
    const last = content[content.length - 1];
    if (!plain) return;
    if (last?.kind === "text") last.text += plain;
    else content.push({ kind: "text", text: plain });
  };
  while (text) {
    const found = leftmost(text);
    if (!found) {
      push(text);
      break;
    }
    const { match, make } = found;
    push(text.slice(0, match.index));
    const piece = make(match);
    if (piece === null || piece.kind === "text") {
      push(piece === null ? match[0] : piece.text);
    } else {
      content.push(piece);
    }
    text = text.slice(match.index + match[0].length);
  }
  return content;
}

/**
 * @param {string} text
 */
function leftmost(text) {
  let best = null;
  for (const [form, make] of kForms) {
    const match = form.exec(text);
    if (match && (!best || match.index < best.match.index)) {
      best = { match, make };
    }
  }
  return best;
}
