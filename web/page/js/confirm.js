// A question before something is lost.

import { byId } from "./dom.js";

/**
 * @param {string} title
 * @param {string} text
 * @param {string} action what the button says
 * @returns {Promise<boolean>}
 */
export function confirmed(title, text, action) {
  const dialog = byId("confirm", HTMLDialogElement);
  byId("confirm-title", HTMLElement).textContent = title;
  byId("confirm-text", HTMLElement).textContent = text;
  byId("confirm-yes", HTMLButtonElement).textContent = action;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue === "yes"),
      { once: true },
    ),
  );
}
