// Rates over time, from counters that are read now and then.

/**
 * Between two readings. from, at: seconds. values: per second, by name.
 * @typedef {{from: number, at: number,
 *   values: Record<string, number>}} Sample
 */

export class Series {
  /**
   * @param {Record<string, string>} counters the counter of each name
   * @param {number} seconds how far back samples are kept
   */
  constructor(counters, seconds) {
    this.counters_ = counters;
    this.seconds_ = seconds;
    /** @type {{at: number, counts: Map<string, number>} | null} */
    this.last_ = null;
    /** @type {Sample[]} oldest first */
    this.samples = [];
  }

  /**
   * Takes a reading. A counter that fell began anew with the server.
   * @param {number} at seconds
   * @param {Map<string, number>} counts
   */
  read(at, counts) {
    const last = this.last_;
    this.last_ = { at, counts };
    if (!last || at <= last.at) return;
    /** @type {Record<string, number>} */
    const values = {};
    for (const [name, counter] of Object.entries(this.counters_)) {
      const [now, then] = [counts.get(counter), last.counts.get(counter)];
      if (now === undefined || then === undefined) values[name] = 0;
      else values[name] = (now < then ? now : now - then) / (at - last.at);
    }
    this.samples.push({ from: last.at, at, values });
    const first = this.samples.findIndex((it) => it.at >= at - this.seconds_);
    this.samples.splice(0, first);
  }

  /** The next reading makes no rate: time passed unseen. */
  pause() {
    this.last_ = null;
  }
}

/**
 * A round number at or above the value, to end an axis with.
 * @param {number} value
 * @returns {number}
 */
export function niceCeiling(value) {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= value) ?? 10;
  return step * power;
}
