// One message of a conversation.

import { copyButton } from "./copy.js";
import { h } from "./dom.js";
import { renderMarkdown } from "./markdown-view.js";
import { originView } from "./origin-view.js";

/** @type {Record<string, string>} */
const kEnds = {
  length: "Cut off: the limit on tokens was reached.",
  stopped: "Stopped.",
};

/**
 * @param {Message} message
 * @param {(() => void) | null} regenerate null: not offered
 * @returns {HTMLElement}
 */
export function messageView(message, regenerate) {
  const mine = message.role === "user";
  const body = h("div", { class: "message-body" });
  if (mine) body.textContent = message.content;
  else body.append(renderMarkdown(message.content));
  const end = kEnds[message.end ?? ""];
  return h(
    "article",
    { class: `message ${message.role}` },
    h(
      "div",
      { class: "message-main" },
      h("h2", {}, mine ? "You" : "Answer"),
      message.reasoning && thoughts(message.reasoning),
      body,
      message.error && h("p", { class: "error" }, message.error),
      end && h("p", { class: "end" }, end),
      tools(message, regenerate),
    ),
    message.origin && originView(message.origin),
  );
}

/**
 * @param {string} reasoning
 * @returns {HTMLElement}
 */
function thoughts(reasoning) {
  return h(
    "details",
    { class: "reasoning" },
    h("summary", {}, "Reasoning"),
    h("p", {}, reasoning.trim()),
  );
}

/**
 * @param {Message} message
 * @param {(() => void) | null} regenerate
 * @returns {HTMLElement}
 */
function tools(message, regenerate) {
  return h(
    "div",
    { class: "message-tools" },
    message.content && copyButton(() => message.content, "Copy"),
    regenerate &&
      h(
        "button",
        { type: "button", class: "quiet regenerate", onclick: regenerate },
        "Regenerate",
      ),
  );
}

/** An answer that is being written. */
export class GrowingAnswer {
  constructor() {
    this.body_ = h("div", { class: "message-body" });
    this.note_ = h("p", { class: "progress" }, "Waiting for the server …");
    this.view = h(
      "article",
      { class: "message assistant growing", "aria-busy": "true" },
      h(
        "div",
        { class: "message-main" },
        h("h2", {}, "Answer"),
        this.body_,
        this.note_,
      ),
    );
    this.text = "";
    this.reasoning = "";
    this.frame_ = 0;
  }

  /**
   * @param {number} done tokens of the prompt that were read
   * @param {number} total
   */
  reading(done, total) {
    this.note_.textContent =
      done === 0
        ? "Waiting for its turn"
        : `Reading the prompt: ${done} of ${total} tokens`;
  }

  /**
   * Adds reasoning; shown when the answer is complete.
   * @param {string} text
   */
  think(text) {
    this.reasoning += text;
    this.note_.textContent = "Thinking …";
  }

  /**
   * Adds text; shown with the next frame.
   * @param {string} text
   * @param {() => void} shown
   */
  add(text, shown) {
    this.text += text;
    this.note_.hidden = true;
    if (this.frame_) return;
    this.frame_ = requestAnimationFrame(() => {
      this.frame_ = 0;
      this.body_.replaceChildren(renderMarkdown(this.text));
      shown();
    });
  }

  /** No frame comes after this. */
  end() {
    cancelAnimationFrame(this.frame_);
  }
}
