// Prometheus' text format, as far as the page reads it.

/**
 * The samples by name with labels, as they stand: `name{label="value"}`.
 * @param {string} text
 * @returns {Map<string, number>}
 */
export function parseMetrics(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const match = /^([A-Za-z_:][\w:]*(?:\{.*\})?) (\S+)/.exec(line);
    if (match) samples.set(match[1], Number(match[2]));
  }
  return samples;
}
