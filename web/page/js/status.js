// The header's line on the server: ready, loading or gone.

import { ApiError, call } from "./api.js";
import { byId } from "./dom.js";
import { models } from "./api.js";

const kEveryMs = 15000;
let timer = 0;

/** Asks the server how it is, now and from time to time. */
export async function refreshStatus() {
  clearTimeout(timer);
  const [state, text] = await look();
  const line = byId("server-status", HTMLElement);
  line.dataset["state"] = state;
  if (line.textContent !== text) line.textContent = text;
  line.title = text;
  timer = setTimeout(refreshStatus, state === "ready" ? kEveryMs : 2000);
}

/** @returns {Promise<[string, string]>} state, text */
async function look() {
  try {
    await call("health");
    const names = (await models()).map((model) => model.id);
    return ["ready", names.join(", ") || "Ready"];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) return ["failed", "An API key is needed"];
    if (error.state === "loading") return ["loading", "The model is loading"];
    if (error.state === "stopping") return ["failed", "The server is stopping"];
    if (error.state === "failed") return ["failed", error.message];
    return ["failed", "The server cannot be reached"];
  }
}
