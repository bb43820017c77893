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
    /** @type {CacheReport | null} */
    this.report_ = null;
    /** @type {Set<string>} keys of the rows that are closed */
    this.closed_ = new Set();
    this.timer_ = 0;
    const tree = byId("cache-tree", HTMLElement);
    this.keys_ = new TreeKeys(tree, (key) => this.toggle_(key));
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
      if (!document.hidden) this.refresh_();
    }, kEveryMs);
  }

  hide() {
    clearInterval(this.timer_);
  }

  async refresh_() {
    await this.attempt_(async () => {
      this.report_ = await api.cacheReport();
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
    this.keys_.keepFocus(() =>
      this.rows_.replaceChildren(...this.rowsOf_(report)),
    );
    const none = report.entries.length === 0;
    byId("cache-empty", HTMLElement).hidden = !none;
    byId("cache-tree", HTMLElement).hidden = none;
    byId("cache-clear", HTMLButtonElement).disabled = none;
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
    const text =
      `${counted(entry.tokens, "token")} in ${counted(entry.blocks, "block")}. ` +
      "Blocks that other entries share stay.";
    if (!(await confirmed("Delete this entry?", text, "Delete"))) return;
    await this.attempt_(async () => {
      const gone = await api.removeEntries(entry.id);
      announce(`Deleted; ${counted(gone.blocks, "block")} freed`);
      await this.refresh_();
      this.keys_.focus();
    });
  }

  async clear_() {
    const number = counted(this.report_?.entries.length ?? 0, "entry");
    const text = `${number}, pinned ones too, from memory and from disk.`;
    if (!(await confirmed("Delete everything?", text, "Delete all"))) return;
    await this.attempt_(async () => {
      const gone = await api.removeEntries();
      announce(`Deleted ${counted(gone.entries, "entry")}`);
      await this.refresh_();
    });
  }
}
