import assert from "node:assert/strict";
import test from "node:test";

/** A browser's store, as far as the page uses it. */
class Store extends Map {
  getItem(key) {
    return this.get(key) ?? null;
  }
  setItem(key, value) {
    this.set(key, value);
  }
  removeItem(key) {
    this.delete(key);
  }
}
globalThis.localStorage = new Store();
globalThis.sessionStorage = new Store();
globalThis.document = { baseURI: "http://127.0.0.1:8080/" };

/** A server that wants this key; "": none. */
let wanted = "right";
let asked = 0;
globalThis.fetch = async (at, { headers }) => {
  ++asked;
  const open = String(at).endsWith("/health") || wanted === "";
  return open || headers["Authorization"] === `Bearer ${wanted}`
    ? new Response('{"data": []}')
    : new Response('{"error": {"message": "send a header"}}', { status: 401 });
};

const api = await import("../page/js/api.js");
const { rememberedPrice, rememberPrice } = await import("../page/js/price.js");

/** Calls it; the message of its refusal, and how often the server was asked. */
async function refusal(ask) {
  const before = asked;
  const message = await ask().then(
    () => null,
    (error) => {
      assert.ok(error instanceof api.ApiError);
      assert.equal(error.status, 401);
      return error.message;
    },
  );
  return [message, asked - before];
}

test("without its key the page asks once, not again and again", async () => {
  const none = "This server asks for an API key. Enter yours under “Settings”.";
  const wrong =
    "This server does not know the API key that is set here. " +
    "Correct it under “Settings”.";
  assert.deepEqual(await refusal(() => api.models(true)), [none, 1]);
  assert.deepEqual(await refusal(() => api.metricsText(true)), [none, 0]);
  assert.deepEqual(await refusal(() => api.cacheReport(true)), [none, 0]);
  assert.deepEqual(await refusal(() => api.call("health")), [null, 1]);
  assert.deepEqual(await refusal(() => api.models(true)), [none, 0]);
  // Someone who presses a button is told by the server.
  assert.deepEqual(await refusal(() => api.cacheReport()), [none, 1]);

  api.setApiKey("wrong", false);
  assert.deepEqual(await refusal(() => api.models(true)), [wrong, 1]);
  assert.deepEqual(await refusal(() => api.models(true)), [wrong, 0]);
  api.setApiKey("right", false);
  assert.deepEqual(await refusal(() => api.models(true)), [null, 1]);
  assert.deepEqual(await refusal(() => api.models(true)), [null, 1]);
});

test("a server that wants no key any more is asked again", async () => {
  api.setApiKey("", false);
  wanted = "right";
  await refusal(() => api.models(true));
  wanted = "";
  assert.equal((await refusal(() => api.models(true)))[1], 0);
  api.forgetRefusal();
  assert.deepEqual(await refusal(() => api.models(true)), [null, 1]);
  wanted = "right";
  await refusal(() => api.models(true));
  wanted = "";
  // Or someone found that out.
  assert.equal((await refusal(() => api.models()))[0], null);
  assert.deepEqual(await refusal(() => api.metricsText(true)), [null, 1]);
});

test("a price is remembered by model, and said to be new once", () => {
  assert.equal(rememberedPrice("m"), undefined);
  assert.equal(rememberPrice("m", 0), false);
  assert.equal(rememberPrice("", 0.003), false);
  assert.equal(rememberedPrice("m"), undefined);
  assert.equal(rememberPrice("m", 0.003), true);
  assert.equal(rememberPrice("m", 0.004), false);
  assert.equal(rememberedPrice("m"), 0.004);
  assert.equal(rememberedPrice("n"), undefined);
});
