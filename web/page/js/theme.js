// Light or dark: as the system has it, or as chosen.

import { byId } from "./dom.js";

const kKey = "afterglow.theme";
const kDark = matchMedia("(prefers-color-scheme: dark)");

/** @returns {Theme} */
export function chosenTheme() {
  const theme = localStorage.getItem(kKey);
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** @param {Theme} theme */
export function chooseTheme(theme) {
  if (theme === "system") {
    localStorage.removeItem(kKey);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(kKey, theme);
    document.documentElement.dataset.theme = theme;
  }
  label();
}

/** @returns {boolean} */
function isDark() {
  const theme = chosenTheme();
  return theme === "dark" || (theme === "system" && kDark.matches);
}

function label() {
  const next = isDark() ? "light" : "dark";
  const button = byId("theme-switch", HTMLButtonElement);
  button.setAttribute("aria-label", `Switch to ${next} colours`);
  button.title = `Switch to ${next} colours`;
}

/** Makes the switch in the header work. */
export function startTheme() {
  byId("theme-switch", HTMLButtonElement).addEventListener("click", () =>
    chooseTheme(isDark() ? "light" : "dark"),
  );
  kDark.addEventListener("change", label);
  label();
}
