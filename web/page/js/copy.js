// Copying text.

import { announce, h } from "./dom.js";

/**
 * @param {() => string} text
 * @param {string} label
 * @returns {HTMLButtonElement}
 */
export function copyButton(text, label) {
  const button = h("button", { type: "button", class: "quiet" }, label);
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Not allowed";
    announce(done ? "Copied" : "Copying is not allowed");
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

/**
 * @param {string} text
 * @returns {Promise<boolean>} whether it worked
 */
async function copy(text) {
  // Pages that come over plain HTTP from elsewhere have no clipboard.
  if (!navigator.clipboard) return copyBySelection(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/**
 * @param {string} text
 * @returns {boolean}
 */
function copyBySelection(text) {
  const field = h("textarea", { class: "hidden-visually", readonly: true });
  const focused = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
