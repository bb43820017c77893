// The chat: the open conversation, and the answer that is being written.

import { ApiError, metricsText } from "./api.js";
import { ask, requestBody } from "./ask.js";
import { showConversations } from "./conversation-list.js";
import { announce, byId, h } from "./dom.js";
import { counted } from "./format.js";
import { GrowingAnswer, messageView } from "./message-view.js";
import { parseMetrics } from "./metrics.js";
import { originOf, priceOf } from "./origin.js";
import { rememberPrice } from "./price.js";
import * as storage from "./storage.js";

/** Within this many pixels of the end, the view follows a growing answer. */
const kFollow = 80;

export class Chat {
  constructor() {
    this.log_ = byId("messages", HTMLElement);
    this.field_ = byId("prompt", HTMLTextAreaElement);
    this.send_ = byId("send", HTMLButtonElement);
    this.stop_ = byId("stop", HTMLButtonElement);
    this.current_ = storage.conversations()[0] ?? this.fresh_();
    /** @type {AbortController | null} */
    this.running_ = null;
  }

  start() {
    const form = byId("composer", HTMLFormElement);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit_();
    });
    this.field_.addEventListener("keydown", (event) => {
      // A key that ends a composition (of Japanese, say) sends nothing.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit_();
    });
    this.field_.addEventListener("input", () => this.fit_());
    this.stop_.addEventListener("click", () => this.running_?.abort());
    document.addEventListener("keydown", (event) => this.escape_(event));
    byId("new-conversation", HTMLButtonElement).addEventListener("click", () =>
      this.open_(this.fresh_()),
    );
    storage.onForeignChange(() => this.list_());
    this.open_(this.current_, false);
  }

  fresh_() {
    return storage.newConversation(storage.loadSettings().system);
  }

  /**
   * @param {Conversation} conversation
   * @param {boolean} [focus]
   */
  open_(conversation, focus = true) {
    if (conversation !== this.current_) {
      this.running_?.abort();
      this.running_ = null;
    }
    this.current_ = conversation;
    this.list_();
    if (!this.running_) this.show_();
    this.log_.scrollTop = this.log_.scrollHeight;
    byId("conversation-panel", HTMLElement).classList.remove("open");
    byId("toggle-conversations", HTMLButtonElement).ariaExpanded = "false";
    if (focus) this.field_.focus();
  }

  list_() {
    showConversations(this.current_.id, {
      open: (conversation) => {
        const already = conversation.id === this.current_.id;
        this.open_(already ? this.current_ : conversation);
      },
      deleted: (id) => {
        if (id !== this.current_.id) this.list_();
        else this.open_(storage.conversations()[0] ?? this.fresh_());
        this.field_.focus();
      },
    });
  }

  show_() {
    const { messages, system } = this.current_;
    const last = messages.length - 1;
    const views = messages.map((message, at) => {
      const offer =
        at === last && message.role === "assistant" && !this.running_;
      return messageView(message, offer ? () => this.regenerate_() : null);
    });
    const note =
      system &&
      h(
        "details",
        { class: "system-note" },
        h("summary", {}, "System prompt"),
        h("p", {}, system),
      );
    this.log_.replaceChildren(...(note ? [note] : []), ...views);
    byId("welcome", HTMLElement).hidden = messages.length > 0;
    this.send_.hidden = this.running_ !== null;
    this.stop_.hidden = this.running_ === null;
  }

  /**
   * Stops the answer, wherever in the chat the focus is.
   * @param {KeyboardEvent} event
   */
  escape_(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    if (!byId("view-chat", HTMLElement).hidden) this.running_?.abort();
  }

  /** Shows answers anew: what their tokens cost is known by now. */
  priceKnown() {
    if (this.running_ || this.log_.contains(document.activeElement)) return;
    this.followed_(() => this.show_());
  }

  fit_() {
    this.field_.style.height = "auto";
    this.field_.style.height = `${this.field_.scrollHeight + 2}px`;
  }

  submit_() {
    const content = this.field_.value.trim();
    if (!content || this.running_) return;
    const { messages } = this.current_;
    if (messages.length === 0) {
      this.current_.title = content.replace(/\s+/g, " ").slice(0, 80);
      this.current_.system = storage.loadSettings().system;
    }
    messages.push({ role: "user", content });
    this.field_.value = "";
    this.fit_();
    this.answer_();
  }

  regenerate_() {
    if (this.running_) return;
    this.current_.messages.pop();
    this.field_.focus();
    this.answer_();
  }

  /** Streams the answer to what the conversation ends with. */
  async answer_() {
    const conversation = this.current_;
    const control = new AbortController();
    this.running_ = control;
    this.save_(conversation);
    this.show_();
    const growing = new GrowingAnswer();
    this.log_.append(growing.view);
    this.log_.scrollTop = this.log_.scrollHeight;
    announce("The answer is being written");
    const message = await this.stream_(conversation, growing, control.signal);
    growing.end();
    conversation.messages.push(message);
    if (storage.isKept(conversation.id)) this.save_(conversation);
    if (this.running_ === control) this.running_ = null;
    if (conversation === this.current_) {
      const stopHadFocus = document.activeElement === this.stop_;
      this.followed_(() => this.show_());
      if (stopHadFocus) this.field_.focus();
      announce(outcome(message));
    }
  }

  /**
   * @param {Conversation} conversation
   * @param {GrowingAnswer} growing
   * @param {AbortSignal} signal
   * @returns {Promise<Message>}
   */
  async stream_(conversation, growing, signal) {
    /** @type {Message} */
    const message = { role: "assistant", content: "" };
    try {
      const body = requestBody(conversation, storage.loadSettings());
      for await (const part of ask(body, signal)) {
        if (part.kind === "reading") growing.reading(part.done, part.total);
        else if (part.kind === "reasoning") {
          growing.think(part.text);
        } else if (part.kind === "text") {
          growing.add(part.text, () => this.followed_());
        } else {
          message.end = part.reason;
          if (part.usage && part.timings) {
            const price = priceOf(part.timings, await serverPrice());
            if (price) rememberPrice(part.model, price.seconds);
            const { usage, timings, model } = part;
            message.origin = originOf(usage, timings, price, model);
          }
        }
      }
    } catch (error) {
      if (signal.aborted) {
        message.end = "stopped";
      } else if (error instanceof ApiError) {
        message.end = "failed";
        message.error = error.message;
      } else {
        throw error;
      }
    }
    message.content = growing.text;
    if (growing.reasoning) message.reasoning = growing.reasoning;
    return message;
  }

  /**
   * Keeps the end in sight where it was before the change.
   * @param {() => void} [change]
   */
  followed_(change) {
    const { scrollHeight, scrollTop, clientHeight } = this.log_;
    const follow = change
      ? scrollHeight - scrollTop - clientHeight < kFollow
      : scrollHeight - scrollTop - clientHeight < clientHeight / 2;
    change?.();
    if (follow) this.log_.scrollTop = this.log_.scrollHeight;
  }

  /** @param {Conversation} conversation */
  save_(conversation) {
    conversation.updated = Date.now();
    const kept = storage.saveConversation(conversation);
    byId("storage-full", HTMLElement).hidden = kept;
    this.list_();
  }
}

/**
 * @param {Message} message
 * @returns {string}
 */
function outcome({ end, error, origin }) {
  if (error) return `The answer failed: ${error}`;
  if (end === "stopped") return "Stopped";
  const reused = origin ? origin.ram + origin.disk : 0;
  return `The answer is complete; ${counted(reused, "prompt token")} reused`;
}

/** @returns {Promise<number | undefined>} seconds a prompt token costs */
async function serverPrice() {
  try {
    const metrics = parseMetrics(await metricsText());
    return metrics.get("afterglow_prefill_seconds_per_token");
  } catch (error) {
    // Only an estimate hangs on it.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
