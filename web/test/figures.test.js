import assert from "node:assert/strict";
import test from "node:test";
import { ago, bytes, counted, seconds } from "../page/js/format.js";
import { parseMetrics } from "../page/js/metrics.js";
import {
  explainSaved,
  originOf,
  priceOf,
  savedInShort,
  savedSeconds,
} from "../page/js/origin.js";
import { niceCeiling, Series } from "../page/js/series.js";

const timings = (more) => ({
  cache_ram_n: 0,
  cache_disk_n: 0,
  restore_ms: 0,
  prompt_n: 100,
  prompt_ms: 400,
  predicted_per_second: 50,
  ...more,
});
const usage = { prompt_tokens: 500, completion_tokens: 9 };

test("the price of a token is the answer's own where it computed enough", () => {
  assert.deepEqual(priceOf(timings(), 0.1), {
    seconds: 0.004,
    source: "answer",
  });
  const few = timings({ prompt_n: 1, prompt_ms: 15 });
  assert.deepEqual(priceOf(few, 0.003), { seconds: 0.003, source: "server" });
  assert.equal(priceOf(few, 0), null);
  assert.equal(priceOf(few, undefined), null);
});

test("time saved is tokens times price, less the reading", () => {
  const some = timings({
    cache_ram_n: 100,
    cache_disk_n: 300,
    restore_ms: 200,
  });
  const origin = originOf(usage, some, { seconds: 0.004, source: "answer" });
  assert.equal(origin.computed, 100);
  assert.ok(Math.abs(savedSeconds(origin) - 1.4) < 1e-9);
  assert.match(explainSaved(origin), /400 tokens reused × 4\.0 ms.*200 ms/);
  const slow = { ...origin, restoreMs: 2000 };
  assert.ok(savedSeconds(slow) < 0);
  assert.equal(savedSeconds({ ...origin, price: null }), null);
  assert.equal(savedSeconds({ ...origin, ram: 0, disk: 0 }), 0);
});

test("without a price, what was reused stands for the time saved", () => {
  const few = timings({
    cache_ram_n: 15,
    cache_disk_n: 2500,
    restore_ms: 45,
    prompt_n: 1,
  });
  const origin = originOf(usage, few, priceOf(few, 0), "m");
  assert.equal(
    savedInShort(origin),
    "2,515 tokens read in 45 ms, not computed",
  );
  assert.match(explainSaved(origin), /not been measured here yet/);
  const ram = { ...origin, disk: 0 };
  assert.equal(savedInShort(ram), "15 tokens not computed");
  const none = { ...ram, ram: 0 };
  assert.equal(savedInShort(none), "No time saved");
  const price = { seconds: 0.004, source: "other" };
  assert.equal(savedInShort({ ...origin, price }), "≈ 10 s saved");
  assert.match(explainSaved({ ...origin, price }), /on other prompts/);
  const slow = { ...origin, price, restoreMs: 20000 };
  assert.equal(savedInShort(slow), "≈ 9.9 s lost");
});

test("metrics are read by name and labels", () => {
  const found = parseMetrics(
    "# HELP a_total Things\n# TYPE a_total counter\n" +
      'a_total{tier="ram",b="{x y}"} 3\nb 1.5e-3\nc NaN\n\n',
  );
  assert.equal(found.get('a_total{tier="ram",b="{x y}"}'), 3);
  assert.equal(found.get("b"), 0.0015);
  assert.equal(found.size, 3);
});

test("rates come from readings, also over a restart and a pause", () => {
  const series = new Series({ x: "x_total" }, 10);
  const read = (at, value) => series.read(at, new Map([["x_total", value]]));
  const rates = () => series.samples.map((sample) => sample.values.x);
  read(0, 100);
  assert.deepEqual(rates(), []);
  read(2, 120);
  read(4, 30); // began anew, and counted 30 since
  assert.deepEqual(rates(), [10, 15]);
  series.pause();
  read(8, 1000);
  read(10, 1002);
  assert.deepEqual(rates(), [10, 15, 1]);
  read(13, 1002);
  assert.deepEqual(rates(), [15, 1, 0]); // the first is too old
});

test("all samples too old are dropped", () => {
  const series = new Series({ x: "x" }, 10);
  for (const at of [0, 1, 2]) series.read(at, new Map([["x", at]]));
  series.read(60, new Map([["x", 3]]));
  assert.equal(series.samples.length, 1);
});

test("axes end at round numbers", () => {
  for (const [value, wanted] of [
    [0, 1],
    [1.5, 2],
    [21, 25],
    [61, 100],
    [460, 500],
    [1000, 1000],
  ]) {
    assert.equal(niceCeiling(value), wanted);
  }
});

test("quantities in words", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(bytes(5.9 * 2 ** 30), "5.9 GiB");
  assert.equal(counted(1, "entry"), "1 entry");
  assert.equal(counted(1200, "entry"), "1,200 entries");
  assert.equal(seconds(0.00594), "5.9 ms");
  assert.equal(seconds(1.44), "1.4 s");
  assert.equal(seconds(600), "10 min");
  assert.equal(ago(0.5), "just now");
  assert.equal(ago(5.9), "5 s ago");
  assert.equal(ago(3 * 86400), "3 d ago");
});
