// The view of the prompt cache.

import * as api from "./api.js";
import { cacheRow } from "./cache-row.js";
import { cacheSummary } from "./cache-summary.js";
import { treeOf } from "./cache-tree.js";
import { confirmed } from "./confirm.js";
import { announce, byId } from "./dom.js";
import { count, counted } from "./format.js";
import { TreeKeys } from "./tree-keys.js";

/** @typedef {import("./cache-tree.js").TreeNode} TreeNode */

const kEveryMs = 5000;
/** Browsers become slow beyond. */
const kMostRows = 500;

export class CacheView {
  constructor() {
    this.rows_ = byId("cache-rows", HTMLElement);
    this.error_ = byId("cache-error", HTMLElement);
    this.tree_ = byId("cache-tree", HTMLElement);
    this.empty_ = byId("cache-empty", HTMLElement);
    /** @type {CacheReport | null} */
    this.report_ = null;
    /** @type {Set<string>} keys of the rows that are closed */
    this.closed_ = new Set();
    this.timer_ = 0;
    this.keys_ = new TreeKeys(this.tree_, (key) => this.toggle_(key));
    byId("cache-refresh", HTMLButtonElement).addEventListener("click", () =>
      this.refresh_().then(() => announce("Refreshed")),
    );
    byId("cache-clear", HTMLButtonElement).addEventListener("click", () =>
      this.clear_(),
    );
  }

  show() {
    this.hide();
    this.refresh_();
    this.timer_ = setInterval(() => {
      if (!document.hidden) this.refresh_(true);
    }, kEveryMs);
  }

  hide() {
    clearInterval(this.timer_);
  }

  /** @param {boolean} [unattended] nobody asked for it */
  async refresh_(unattended = false) {
    await this.attempt_(async () => {
      this.report_ = await api.cacheReport(unattended);
      this.draw_();
    });
  }

  /**
   * Runs what asks the server; shows its refusal.
   * @param {() => Promise<void>} action
   */
  async attempt_(action) {
    try {
      await action();
      this.error_.hidden = true;
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      this.error_.textContent = error.message;
      this.error_.hidden = false;
    }
  }

  draw_() {
    const report = this.report_;
    if (!report) return;
    const summary = byId("cache-summary", HTMLElement);
    summary.replaceChildren(...cacheSummary(report));
    const none = report.entries.length === 0;
    const untold = report.entries.some(({ texts }) => !texts);
    const hadFocus = this.tree_.contains(document.activeElement);
    this.empty_.hidden = !none;
    this.tree_.hidden = none;
    byId("cache-keys", HTMLElement).hidden = none;
    byId("cache-untold", HTMLElement).hidden = !untold;
    byId("cache-clear", HTMLButtonElement).disabled = none;
    this.keys_.keepFocus(() =>
      this.rows_.replaceChildren(...this.rowsOf_(report)),
    );
    if (none && hadFocus) this.empty_.focus();
  }

  /** Puts the focus where it makes sense once what had it is gone. */
  focus_() {
    if (this.tree_.hidden) this.empty_.focus();
    else this.keys_.focus();
  }

  /**
   * @param {CacheReport} report
   * @returns {HTMLElement[]}
   */
  rowsOf_(report) {
    /** @type {HTMLElement[]} */
    const rows = [];
    const on = {
      pin: (/** @type {CacheEntry} */ entry) => this.pin_(entry),
      remove: (/** @type {CacheEntry} */ entry) => this.remove_(entry),
      toggle: (/** @type {TreeNode} */ node) => this.toggle_(node.key),
    };
    /**
     * @param {TreeNode} node
     * @param {number} level
     */
    const add = (node, level) => {
      if (rows.length < kMostRows) {
        const open = !this.closed_.has(node.key);
        rows.push(cacheRow(node, level, open, on));
        if (open) node.children.forEach((child) => add(child, level + 1));
      } else {
        cut = true;
      }
    };
    let cut = false;
    treeOf(report.entries).forEach((node) => add(node, 1));
    const more = byId("cache-more", HTMLElement);
    more.hidden = !cut;
    more.textContent =
      `These are the first ${count(kMostRows)} rows, of ` +
      `${counted(report.entries.length, "entry")}; close some to see others.`;
    return rows;
  }

  /** @param {string} key */
  toggle_(key) {
    if (!this.closed_.delete(key)) this.closed_.add(key);
    this.draw_();
  }

  /** @param {CacheEntry} entry */
  async pin_(entry) {
    await this.attempt_(async () => {
      const now = await api.setPinned(entry.id, !entry.pinned);
      announce(now.pinned ? "Pinned" : "No longer pinned");
      await this.refresh_();
    });
  }

  /** @param {CacheEntry} entry */
  async remove_(entry) {
    const title = entry.pinned
      ? "Delete this pinned entry?"
      : "Delete this entry?";
    const text =
      (entry.pinned ? "It is pinned, to be kept. " : "") +
      `${counted(entry.tokens, "token")} in ${counted(entry.blocks, "block")}. ` +
      "Blocks that other entries share stay.";
    if (!(await confirmed(title, text, "Delete"))) return;
    await this.attempt_(async () => {
      const gone = await api.removeEntries(entry.id);
      announce(`Deleted; ${counted(gone.blocks, "block")} freed`);
      await this.refresh_();
      this.focus_();
    });
  }

  async clear_() {
    const entries = this.report_?.entries ?? [];
    const pinned = entries.filter((entry) => entry.pinned).length;
    const text =
      counted(entries.length, "entry") +
      (pinned > 0 ? `, ${count(pinned)} of them pinned,` : "") +
      " will go from memory and from disk.";
    if (!(await confirmed("Delete everything?", text, "Delete all"))) return;
    await this.attempt_(async () => {
      const gone = await api.removeEntries();
      announce(`Deleted ${counted(gone.entries, "entry")}`);
      await this.refresh_();
      this.focus_();
    });
  }
}
