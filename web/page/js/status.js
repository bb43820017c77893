// The header's line on the server: ready, loading or gone.

import { ApiError, call, forgetRefusal, models } from "./api.js";
import { byId } from "./dom.js";

const kEveryMs = 15000;
const kSoonMs = 2000;
let timer = 0;
let served = "";

/** @returns {string} the model that answers; "": not known */
export function servedModel() {
  return served;
}

/** Asks the server how it is, now and from time to time. */
export async function refreshStatus() {
  clearTimeout(timer);
  const [state, text, waitMs] = await look();
  const line = byId("server-status", HTMLElement);
  line.dataset["state"] = state;
  if (line.textContent !== text) line.textContent = text;
  line.title = text;
  timer = setTimeout(refreshStatus, waitMs);
}

/** @returns {Promise<[state: string, text: string, waitMs: number]>} */
async function look() {
  try {
    await call("health");
    const names = (await models(true)).map((model) => model.id);
    served = names[0] ?? "";
    return ["ready", names.join(", ") || "Ready", kEveryMs];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) {
      return ["failed", "An API key is needed", kEveryMs];
    }
    // What comes after may want no key.
    forgetRefusal();
    return [...trouble(error), kSoonMs];
  }
}

/**
 * @param {ApiError} error
 * @returns {[state: string, text: string]}
 */
function trouble({ state, message }) {
  if (state === "loading") return ["loading", "The model is loading"];
  if (state === "stopping") return ["failed", "The server is stopping"];
  if (state === "failed") return ["failed", message];
  return ["failed", "The server cannot be reached"];
}
