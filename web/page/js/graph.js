// A graph of rates over the last minutes, drawn as SVG: boxes on each other.

import { h, svg } from "./dom.js";
import { rate } from "./format.js";
import { niceCeiling } from "./series.js";

/** @typedef {import("./series.js").Sample} Sample */
/** @typedef {{name: string, label: string, tier: string}} Layer */

const kHeight = 200;
const kLeft = 44;
const kBottom = 24;
const kTop = 8;

export class Graph {
  /**
   * @param {HTMLElement} place
   * @param {string} title
   * @param {Layer[]} layers the lowest first
   * @param {number} seconds the width of the time axis
   */
  constructor(place, title, layers, seconds) {
    this.place_ = place;
    this.title_ = title;
    this.layers_ = layers;
    this.seconds_ = seconds;
    this.image_ = svg("svg", { class: "graph", role: "img" });
    const legend = layers.map(({ label, tier }) =>
      h("li", {}, h("span", { class: `swatch tier-${tier}` }), label),
    );
    const shown = layers.length > 1;
    place.replaceChildren(
      this.image_,
      ...(shown ? [h("ul", { class: "legend" }, ...legend)] : []),
    );
    new ResizeObserver(() => this.draw(this.samples_)).observe(place);
    /** @type {Sample[]} */
    this.samples_ = [];
  }

  /** @param {Sample[]} samples */
  draw(samples) {
    this.samples_ = samples;
    const width = Math.max(240, this.image_.clientWidth);
    const sums = samples.map((sample) => this.stack_(sample).at(-1) ?? 0);
    const top = niceCeiling(Math.max(1, ...sums));
    const end = samples.at(-1)?.at ?? 0;
    const x = (/** @type {number} */ at) =>
      Math.max(kLeft, width - ((end - at) / this.seconds_) * (width - kLeft));
    const y = (/** @type {number} */ value) =>
      kHeight - kBottom - (value / top) * (kHeight - kBottom - kTop);
    this.image_.setAttribute("viewBox", `0 0 ${width} ${kHeight}`);
    this.image_.setAttribute("aria-label", this.summary_(sums));
    const areas = this.layers_.map((layer, at) =>
      svg("path", {
        class: `area tier-${layer.tier}`,
        d: this.area_(samples, at, x, y),
      }),
    );
    this.image_.replaceChildren(...this.axes_(width, top, y), ...areas);
  }

  /**
   * @param {Sample} sample
   * @returns {number[]} the upper edge of each layer
   */
  stack_(sample) {
    let sum = 0;
    return this.layers_.map(({ name }) => (sum += sample.values[name] ?? 0));
  }

  /**
   * @param {Sample[]} samples
   * @param {number} layer
   * @param {(at: number) => number} x
   * @param {(value: number) => number} y
   * @returns {string} a path: one box for each sample, as it is a mean
   */
  area_(samples, layer, x, y) {
    return samples
      .map((sample) => {
        const edges = this.stack_(sample);
        const [left, right] = [x(sample.from), x(sample.at)].map(fixed);
        const upper = fixed(y(edges[layer] ?? 0));
        const lower = fixed(y(edges[layer - 1] ?? 0));
        return `M${left} ${lower}V${upper}H${right}V${lower}Z`;
      })
      .join("");
  }

  /**
   * @param {number} width
   * @param {number} top
   * @param {(value: number) => number} y
   * @returns {Element[]}
   */
  axes_(width, top, y) {
    const lines = [0, top / 2, top].flatMap((value) => [
      svg("line", {
        class: "grid",
        x1: kLeft,
        x2: width,
        y1: y(value),
        y2: y(value),
      }),
      svg(
        "text",
        { class: "tick", x: kLeft - 8, y: y(value) + 4, "text-anchor": "end" },
        value === 0 ? "0" : rate(value),
      ),
    ]);
    const minutes = this.seconds_ / 60;
    const text = { class: "tick", y: kHeight - 6 };
    return [
      ...lines,
      svg("text", { ...text, x: kLeft }, `${minutes} minutes ago`),
      svg("text", { ...text, x: width, "text-anchor": "end" }, "now"),
    ];
  }

  /**
   * @param {number[]} sums
   * @returns {string}
   */
  summary_(sums) {
    if (sums.length === 0) return `${this.title_}: nothing measured yet`;
    const most = rate(Math.max(...sums));
    return `${this.title_}: now ${rate(sums.at(-1) ?? 0)}, at most ${most}`;
  }
}

/**
 * @param {number} value
 * @returns {string}
 */
function fixed(value) {
  return value.toFixed(1);
}
