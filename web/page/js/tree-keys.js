// Moving in a tree of rows by the keyboard, as ARIA's treegrid asks: arrows
// move and open, Home and End jump, Tab goes to the buttons of the row. One
// row at a time can be reached by Tab.

export class TreeKeys {
  /**
   * @param {HTMLElement} tree
   * @param {(key: string) => void} toggle opens or closes the row of that key
   */
  constructor(tree, toggle) {
    this.tree_ = tree;
    this.toggle_ = toggle;
    this.key_ = "";
    tree.addEventListener("keydown", (event) => this.press_(event));
    tree.addEventListener("focusin", (event) => {
      const row = rowOf(event.target);
      if (row && row.dataset["key"] !== this.key_) this.choose_(row);
    });
  }

  /**
   * Runs a change of the rows and puts the focus back where it was.
   * @param {() => void} change
   */
  keepFocus(change) {
    const at = document.activeElement;
    const inside = at !== null && this.tree_.contains(at);
    const action = at instanceof HTMLElement ? at.dataset["action"] : undefined;
    const place = this.rows_().findIndex((row) => row === rowOf(at));
    change();
    const rows = this.rows_();
    const same = rows.find((row) => row.dataset["key"] === this.key_);
    const row = same ?? rows[Math.min(Math.max(place, 0), rows.length - 1)];
    if (!row) return;
    this.choose_(row);
    if (!inside) return;
    const button = row.querySelector(`[data-action="${action}"]`);
    if (same && button instanceof HTMLElement) button.focus();
    else row.focus();
  }

  /** Puts the focus on the chosen row, where there are any. */
  focus() {
    const rows = this.rows_();
    (rows.find((one) => one.tabIndex === 0) ?? rows[0])?.focus();
  }

  /** @returns {HTMLElement[]} */
  rows_() {
    return [...this.tree_.querySelectorAll("[data-key]")].filter(
      (row) => row instanceof HTMLElement,
    );
  }

  /** @param {HTMLElement} row */
  choose_(row) {
    this.key_ = row.dataset["key"] ?? "";
    for (const other of this.rows_()) {
      const index = other === row ? 0 : -1;
      other.tabIndex = index;
      for (const button of other.querySelectorAll("button")) {
        button.tabIndex = index;
      }
    }
  }

  /** @param {KeyboardEvent} event */
  press_(event) {
    const row = rowOf(event.target);
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = this.rows_();
    const at = rows.indexOf(row);
    const expanded = row.ariaExpanded;
    /** @type {HTMLElement | undefined} */
    let next;
    switch (event.key) {
      case "ArrowDown":
        next = rows[at + 1];
        break;
      case "ArrowUp":
        next = rows[at - 1];
        break;
      case "Home":
        next = rows[0];
        break;
      case "End":
        next = rows[rows.length - 1];
        break;
      case "ArrowRight":
        if (expanded === "false") this.toggle_(this.key_);
        else if (expanded === "true") next = rows[at + 1];
        break;
      case "ArrowLeft":
        if (expanded === "true") this.toggle_(this.key_);
        else next = parentOf(rows, at);
        break;
      default:
        return;
    }
    event.preventDefault();
    next?.focus();
  }
}

/**
 * @param {EventTarget | null} target
 * @returns {HTMLElement | null}
 */
function rowOf(target) {
  const row = target instanceof Element && target.closest("[data-key]");
  return row instanceof HTMLElement ? row : null;
}

/**
 * @param {HTMLElement[]} rows
 * @param {number} at
 * @returns {HTMLElement | undefined}
 */
function parentOf(rows, at) {
  const level = Number(rows[at]?.ariaLevel);
  return rows.slice(0, at).findLast((row) => Number(row.ariaLevel) < level);
}
