// Calls of the server, at the address the page came from.

const kKey = "afterglow.api-key";
/** @type {string | null} the key that was last refused; "": none was shown */
let refused = null;

/** An answer that is no success. status 0: the server was not reached. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} [state] of a server that is not ready: why
   */
  constructor(message, status, state = "") {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.state = state;
  }
}

/** @returns {string} */
export function apiKey() {
  return sessionStorage.getItem(kKey) ?? localStorage.getItem(kKey) ?? "";
}

/** @returns {boolean} */
export function apiKeyIsRemembered() {
  return localStorage.getItem(kKey) !== null;
}

/** Has the page ask again by itself: the server may be another one by now. */
export function forgetRefusal() {
  refused = null;
}

/**
 * @param {string} key empty: none
 * @param {boolean} remember beyond this tab
 */
export function setApiKey(key, remember) {
  sessionStorage.removeItem(kKey);
  localStorage.removeItem(kKey);
  if (key) (remember ? localStorage : sessionStorage).setItem(kKey, key);
}

/**
 * Errors: throws ApiError with the server's message; AbortError when aborted.
 * unattended: asked by no one but a timer. Where the key was refused it is then
 * refused here, as each refusal is a line in the server's log.
 * @param {string} path relative to the page
 * @param {{method?: string, body?: unknown, signal?: AbortSignal,
 *   unattended?: boolean}} [options]
 * @returns {Promise<Response>}
 */
export async function call(path, options = {}) {
  const { method = "GET", body, signal, unattended = false } = options;
  /** @type {Record<string, string>} */
  const headers = {};
  const key = apiKey();
  if (unattended && refused === key) throw new ApiError(keyWanted(key), 401);
  if (key) headers["Authorization"] = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  /** @type {Response} */
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method,
      headers,
      cache: "no-store",
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server cannot be reached. Is it running?", 0);
  }
  if (response.status === 401) {
    refused = key;
    throw new ApiError(keyWanted(key), 401);
  }
  if (path !== "health") refused = null; // which asks for no key
  if (!response.ok) throw await failure(response);
  return response;
}

/**
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
async function failure(response) {
  const text = await response.text();
  let message = `The server answered with status ${response.status}.`;
  let state = "";
  try {
    const body = JSON.parse(text);
    message = body.error?.message ?? body.message ?? message;
    state = body.status ?? "";
  } catch {
    // Not the server's own answer: perhaps a proxy's. The status must do.
  }
  return new ApiError(message, response.status, state);
}

/**
 * @param {string} key that was shown
 * @returns {string}
 */
function keyWanted(key) {
  return key === ""
    ? "This server asks for an API key. Enter yours under “Settings”."
    : "This server does not know the API key that is set here. " +
        "Correct it under “Settings”.";
}

/**
 * @param {boolean} [unattended]
 * @returns {Promise<ModelInfo[]>}
 */
export async function models(unattended = false) {
  return (await (await call("v1/models", { unattended })).json()).data;
}

/**
 * @param {boolean} [unattended]
 * @returns {Promise<CacheReport>}
 */
export async function cacheReport(unattended = false) {
  return (await call("v1/cache", { unattended })).json();
}

/**
 * @param {string} id
 * @param {boolean} pinned
 * @returns {Promise<PinnedEntry>}
 */
export async function setPinned(id, pinned) {
  const path = pinned ? "v1/cache/pin" : "v1/cache/unpin";
  return (await call(path, { method: "POST", body: { id } })).json();
}

/**
 * @param {string} [id] without: all entries
 * @returns {Promise<{entries: number, blocks: number}>}
 */
export async function removeEntries(id) {
  const body = id === undefined ? undefined : { id };
  return (await call("v1/cache", { method: "DELETE", body })).json();
}

/**
 * @param {boolean} [unattended]
 * @returns {Promise<string>} Prometheus' text format
 */
export async function metricsText(unattended = false) {
  return (await call("metrics", { unattended })).text();
}
