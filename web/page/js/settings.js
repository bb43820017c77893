// The settings' dialog.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { loadSettings, saveSettings } from "./storage.js";
import { chooseTheme, chosenTheme } from "./theme.js";

/**
 * @param {string} id
 * @returns {HTMLInputElement}
 */
const input = (id) => byId(id, HTMLInputElement);

/**
 * @param {HTMLInputElement} field
 * @returns {number | null}
 */
function numberOf(field) {
  return field.value.trim() === "" ? null : field.valueAsNumber;
}

/** @param {string | null} chosen */
async function fillModels(chosen) {
  const select = byId("set-model", HTMLSelectElement);
  const note = byId("set-model-note", HTMLElement);
  let names = chosen === null ? [] : [chosen];
  try {
    const models = await api.models(true);
    names = models.map((model) => model.id);
    note.textContent = models.map(describe).filter(Boolean).join("; ");
  } catch (error) {
    note.textContent = error instanceof Error ? error.message : String(error);
  }
  const options = names.map((name) => h("option", { value: name }, name));
  const first = h("option", { value: "" }, "The server’s");
  select.replaceChildren(first, ...options);
  select.value = chosen !== null && names.includes(chosen) ? chosen : "";
}

/**
 * @param {ModelInfo} model
 * @returns {string}
 */
function describe({ meta }) {
  return [
    meta?.quantization,
    meta?.backend,
    meta?.context_length && `${meta.context_length} tokens of context`,
  ]
    .filter(Boolean)
    .join(", ");
}

function open() {
  const settings = loadSettings();
  fillModels(settings.model);
  input("set-temperature").value = String(settings.temperature ?? "");
  input("set-top-p").value = String(settings.topP ?? "");
  input("set-max-tokens").value = String(settings.maxTokens ?? "");
  byId("set-system", HTMLTextAreaElement).value = settings.system;
  byId("set-theme", HTMLSelectElement).value = chosenTheme();
  input("set-key").value = api.apiKey();
  input("set-key-remember").checked = api.apiKeyIsRemembered();
  byId("settings", HTMLDialogElement).showModal();
}

function save() {
  saveSettings({
    model: byId("set-model", HTMLSelectElement).value || null,
    temperature: numberOf(input("set-temperature")),
    topP: numberOf(input("set-top-p")),
    maxTokens: numberOf(input("set-max-tokens")),
    system: byId("set-system", HTMLTextAreaElement).value.trim(),
  });
  const theme = byId("set-theme", HTMLSelectElement).value;
  chooseTheme(theme === "light" || theme === "dark" ? theme : "system");
  const key = input("set-key").value.trim();
  api.setApiKey(key, input("set-key-remember").checked);
}

/**
 * @param {() => void} saved called when settings were changed
 */
export function startSettings(saved) {
  const dialog = byId("settings", HTMLDialogElement);
  byId("open-settings", HTMLButtonElement).addEventListener("click", open);
  byId("settings-cancel", HTMLButtonElement).addEventListener("click", () =>
    dialog.close(),
  );
  // Sent only when the browser found all fields valid.
  byId("settings-form", HTMLFormElement).addEventListener("submit", () => {
    save();
    saved();
  });
}
