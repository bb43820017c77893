// The inside of a paragraph: code, emphasis, links, line breaks. One pass from
// left to right; an opening mark is text until its closing one is met.

/**
 * @typedef {{kind: "text", text: string} | {kind: "code", text: string} |
 *   {kind: "break"} |
 *   {kind: "strong" | "emphasis" | "struck", content: Inline[]} |
 *   {kind: "link", href: string, content: Inline[]}} Inline
 */

/** What may stand in a link: no javascript:, no data:, no relative paths. */
const kSafeHref = /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i;
const kTarget =
  /\]\(\s{0,9}<?([^\s)>]{0,2000})>?(?:\s{1,9}["'][^"']{0,500}["'])?\s{0,9}\)/y;
const kBareLink = /https?:\/\/[^\s<>"]{1,2000}/iy;
const kAngleLink = /<((?:https?:\/\/|mailto:)[^\s<>"]{1,2000})>/iy;
const kMarks = /([*_~])\1*/y;
const kTicks = /`+/y;
const kBreak = /(?: {2,9}|\\)\n/y;
const kPlain = /[^\\`*_~![\]<h \n]+|[^]/y;
const kPunctuation = /[!-/:-@[-`{-~]/;
const kWord = /[\p{L}\p{N}]/u;
/** Marks that may be open at once; so deep does the tree get. */
const kMostOpen = 20;

/**
 * @param {string} text
 * @returns {Inline[]}
 */
export function parseInline(text) {
  return new Scanner(text).run();
}

class Scanner {
  /** @param {string} text */
  constructor(text) {
    this.text_ = text;
    this.at_ = 0;
    /** @type {Inline[]} */
    this.out_ = [];
    /** @type {{mark: string, size: number, place: number}[]} */
    this.open_ = []; // place: of its text in out_
    /** @type {Set<number>} */
    this.unclosed_ = new Set(); // lengths of backticks that none ends
  }

  run() {
    while (this.at_ < this.text_.length) {
      const done =
        this.escape_() ||
        this.lineBreak_() ||
        this.code_() ||
        this.marks_() ||
        this.bracket_() ||
        this.address_();
      if (!done) this.push_(this.match_(kPlain)?.[0] ?? "");
    }
    return joined(this.out_);
  }

  /**
   * What stands here; not yet taken.
   * @param {RegExp} form sticky
   * @returns {RegExpExecArray | null}
   */
  peek_(form) {
    form.lastIndex = this.at_;
    return form.exec(this.text_);
  }

  /** @param {RegExp} form */
  match_(form) {
    const match = this.peek_(form);
    if (match) this.at_ += match[0].length;
    return match;
  }

  /** @param {string} text */
  push_(text) {
    this.out_.push({ kind: "text", text });
  }

  escape_() {
    const next = this.text_[this.at_ + 1] ?? "";
    if (this.text_[this.at_] !== "\\" || !kPunctuation.test(next)) return false;
    this.push_(next);
    this.at_ += 2;
    return true;
  }

  lineBreak_() {
    if (!this.match_(kBreak)) return false;
    this.out_.push({ kind: "break" });
    return true;
  }

  code_() {
    const ticks = this.match_(kTicks)?.[0];
    if (!ticks) return false;
    const size = ticks.length;
    const end = this.unclosed_.has(size) ? -1 : this.closing_(size);
    if (end < 0) {
      this.unclosed_.add(size);
      this.push_(ticks);
      return true;
    }
    const text = this.text_.slice(this.at_, end);
    const padded = /^ [^]* $/.test(text) && text.trim() !== "";
    this.out_.push({ kind: "code", text: padded ? text.slice(1, -1) : text });
    this.at_ = end + size;
    return true;
  }

  /**
   * @param {number} size
   * @returns {number} where that many backticks follow; -1: nowhere
   */
  closing_(size) {
    let at = this.text_.indexOf("`", this.at_);
    while (at >= 0) {
      let end = at;
      while (this.text_[end] === "`") ++end;
      if (end - at === size) return at;
      at = this.text_.indexOf("`", end);
    }
    return -1;
  }

  marks_() {
    const before = this.text_[this.at_ - 1] ?? " ";
    const run = this.match_(kMarks);
    if (!run) return false;
    const mark = run[1] ?? "";
    const after = this.text_[this.at_] ?? " ";
    const tight = mark === "_";
    const opens = /\S/.test(after) && !(tight && kWord.test(before));
    const closes = /\S/.test(before) && !(tight && kWord.test(after));
    let left = run[0].length;
    while (left > 0 && closes) {
      const size = this.close_(mark, left);
      if (size === 0) break;
      left -= size;
    }
    while (left > 0) {
      // A lone tilde marks nothing.
      const size = Math.min(left, 2);
      if (opens && !(mark === "~" && size === 1)) this.opening_(mark, size);
      this.push_(mark.repeat(size));
      left -= size;
    }
    return true;
  }

  /**
   * Remembers the mark that is pushed next.
   * @param {string} mark
   * @param {number} size
   */
  opening_(mark, size) {
    this.open_.push({ mark, size, place: this.out_.length });
    if (this.open_.length > kMostOpen) this.open_.shift();
  }

  /**
   * Ends what was opened with that mark.
   * @param {string} mark
   * @param {number} left how many of them stand here
   * @returns {number} how many of them it took; 0: none is open
   */
  close_(mark, left) {
    const wanted = left % 2 === 1 ? 1 : 2;
    const fits = (/** @type {{mark: string, size: number}} */ it) =>
      it.mark === mark && it.size <= left;
    let at = this.open_.findLastIndex((it) => fits(it) && it.size === wanted);
    if (at < 0) at = this.open_.findLastIndex(fits);
    const opener = this.open_[at];
    if (!opener) return 0;
    const content = this.cut_(at);
    /** @type {"strong" | "emphasis" | "struck"} */
    let kind = opener.size === 2 ? "strong" : "emphasis";
    if (mark === "~") kind = "struck";
    this.out_.push({ kind, content });
    return opener.size;
  }

  /**
   * Takes what follows an open mark off the output, and the mark.
   * @param {number} at index of the mark among the open ones
   * @returns {Inline[]}
   */
  cut_(at) {
    const place = this.open_[at]?.place ?? 0;
    this.open_.length = at;
    return joined(this.out_.splice(place).slice(1));
  }

  bracket_() {
    const start = this.text_[this.at_];
    const image = start === "!" && this.text_[this.at_ + 1] === "[";
    if (start === "[" || image) {
      const text = image ? "![" : "[";
      this.opening_("[", 1);
      this.push_(text);
      this.at_ += text.length;
      return true;
    }
    if (start !== "]") return false;
    const at = this.open_.findLastIndex((it) => it.mark === "[");
    const target = at < 0 ? null : this.peek_(kTarget);
    const href = target?.[1] ?? "";
    if (!target || !kSafeHref.test(href)) return false;
    const inner = this.cut_(at);
    const content = inner.flatMap((it) =>
      it.kind === "link" ? it.content : [it],
    );
    if (content.length === 0) content.push({ kind: "text", text: href });
    this.out_.push({ kind: "link", href, content });
    this.at_ += target[0].length;
    return true;
  }

  address_() {
    const angle = this.match_(kAngleLink)?.[1];
    if (angle) return this.link_(angle);
    if (kWord.test(this.text_[this.at_ - 1] ?? "")) return false;
    const bare = this.peek_(kBareLink)?.[0];
    if (!bare) return false;
    // Marks at its end belong to the sentence.
    const href = bare.replace(/[.,;:!?'*_~)\]]{1,9}$/, "");
    if (!kSafeHref.test(href)) return false;
    this.at_ += href.length;
    return this.link_(href);
  }

  /** @param {string} href */
  link_(href) {
    const content = [{ kind: /** @type {const} */ ("text"), text: href }];
    this.out_.push({ kind: "link", href, content });
    return true;
  }
}

/**
 * With neighbouring texts made one.
 * @param {Inline[]} pieces
 * @returns {Inline[]}
 */
function joined(pieces) {
  /** @type {Inline[]} */
  const made = [];
  for (const piece of pieces) {
    const last = made.at(-1);
    if (piece.kind !== "text" || last?.kind !== "text") made.push({ ...piece });
    else last.text += piece.text;
  }
  return made;
}
