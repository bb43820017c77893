// The view of what the server does now: rates from its counters.

import { ApiError, metricsText } from "./api.js";
import { byId, h } from "./dom.js";
import { count, counted, rate, seconds } from "./format.js";
import { Graph } from "./graph.js";
import { parseMetrics } from "./metrics.js";
import { rememberedPrice, rememberPrice } from "./price.js";
import { Series } from "./series.js";
import { servedModel } from "./status.js";

const kEveryMs = 2000;
const kSeconds = 300;
const kTableRows = 10;

const kPrice = "afterglow_prefill_seconds_per_token";
const kGenerated = "afterglow_generated_tokens_total";
const kPrompt = (/** @type {string} */ source) =>
  `afterglow_prompt_tokens_total{source="${source}"}`;

/** The layers of the graphs; also the columns of the table. */
const kSpeed = [{ name: "generated", label: "Generated", tier: "generated" }];
const kTiers = [
  { name: "ram", label: "From memory", tier: "ram" },
  { name: "disk", label: "From disk", tier: "disk" },
  { name: "computed", label: "Computed", tier: "computed" },
];

export class LiveView {
  /** @param {() => void} priced called when a token's price becomes known */
  constructor(priced) {
    this.priced_ = priced;
    this.series_ = new Series(
      {
        generated: kGenerated,
        ram: kPrompt("ram"),
        disk: kPrompt("disk"),
        computed: kPrompt("computed"),
      },
      kSeconds,
    );
    const place = (/** @type {string} */ id) => byId(id, HTMLElement);
    this.graphs_ = [
      new Graph(
        place("graph-speed"),
        "Tokens generated per second",
        kSpeed,
        kSeconds,
      ),
      new Graph(
        place("graph-tiers"),
        "Prompt tokens per second by where they came from",
        kTiers,
        kSeconds,
      ),
    ];
    this.pause_ = byId("live-pause", HTMLButtonElement);
    this.pause_.addEventListener("click", () => this.setPaused_(!this.paused_));
    this.paused_ = false;
    this.shown_ = false;
    /** @type {Map<string, number>} */
    this.counts_ = new Map();
  }

  /** Reads the counters from now on, so that the graphs have a past. */
  start() {
    this.poll_();
    setInterval(() => {
      if (document.hidden || this.paused_) this.series_.pause();
      else this.poll_();
    }, kEveryMs);
  }

  show() {
    this.shown_ = true;
    this.draw_();
  }

  hide() {
    this.shown_ = false;
  }

  /** @param {boolean} paused */
  setPaused_(paused) {
    this.paused_ = paused;
    this.pause_.textContent = paused ? "Go on" : "Pause";
  }

  async poll_() {
    const error = byId("live-error", HTMLElement);
    try {
      this.counts_ = parseMetrics(await metricsText(true));
      this.series_.read(performance.now() / 1000, this.counts_);
      error.hidden = true;
      this.draw_();
      const price = this.counts_.get(kPrice) ?? 0;
      if (rememberPrice(servedModel(), price)) this.priced_();
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason;
      this.series_.pause();
      error.textContent = reason.message;
      error.hidden = false;
    }
  }

  draw_() {
    if (!this.shown_ || this.counts_.size === 0) return;
    byId("live-tiles", HTMLElement).replaceChildren(...tiles(this.counts_));
    for (const graph of this.graphs_) graph.draw(this.series_.samples);
    const latest = this.series_.samples.slice(-kTableRows).reverse();
    const end = latest[0]?.at ?? 0;
    const rows = latest.map(({ at, values }) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, `${Math.round(end - at)} s ago`),
        ...[...kSpeed, ...kTiers].map(({ name }) =>
          h("td", {}, rate(values[name] ?? 0)),
        ),
      ),
    );
    byId("live-rows", HTMLElement).replaceChildren(...rows);
  }
}

/**
 * @param {Map<string, number>} samples
 * @returns {HTMLElement[]}
 */
function tiles(samples) {
  const of = (/** @type {string} */ name) =>
    samples.get(`afterglow_${name}`) ?? 0;
  const reused =
    (samples.get(kPrompt("ram")) ?? 0) + (samples.get(kPrompt("disk")) ?? 0);
  const all = reused + (samples.get(kPrompt("computed")) ?? 0);
  const share = all === 0 ? "–" : `${Math.round((100 * reused) / all)} %`;
  return [
    tile("Running", count(of("requests_running")), "requests"),
    tile("Waiting", count(of("requests_queued")), "requests"),
    tile("Reused", share, `of ${count(all)} prompt tokens`),
    savedTile(reused, of("prefill_seconds_saved_total"), samples.get(kPrice)),
  ];
}

/**
 * @param {number} reused tokens since the server's start
 * @param {number} saved seconds, as the server has it
 * @param {number | undefined} price of a token; 0: not yet measured
 * @returns {HTMLElement}
 */
function savedTile(reused, saved, price) {
  const title = "Time saved";
  if (price) {
    const note = `tokens reused × ${seconds(price)} measured for one`;
    return tile(title, `≈ ${seconds(saved)}`, note);
  }
  const before = rememberedPrice(servedModel());
  if (before && reused > 0) {
    const note = `tokens reused × ${seconds(before)} measured here before`;
    return tile(title, `≈ ${seconds(reused * before)}`, note);
  }
  const tokens = reused > 0 ? `${counted(reused, "token")} not computed; ` : "";
  return tile(title, "–", `${tokens}known once a prompt was computed`);
}

/**
 * @param {string} title
 * @param {string} figure
 * @param {string} note
 * @returns {HTMLElement}
 */
function tile(title, figure, note) {
  return h(
    "div",
    { class: "card" },
    h("h3", {}, title),
    h("p", { class: "figure" }, figure),
    h("p", { class: "note" }, note),
  );
}
