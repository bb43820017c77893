// Quantities as people read them.

const kWhole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/**
 * @param {number} value
 * @returns {string}
 */
export function count(value) {
  return kWhole.format(value);
}

/**
 * @param {number} value
 * @param {string} noun
 * @returns {string} such as "1 token" or "2 tokens"
 */
export function counted(value, noun) {
  const many = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${count(value)} ${value === 1 ? noun : many}`;
}

/**
 * @param {number} value
 * @returns {string}
 */
export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/**
 * @param {number} value seconds
 * @returns {string}
 */
export function seconds(value) {
  const size = Math.abs(value);
  if (size < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (size < 0.01) return `${(value * 1000).toFixed(1)} ms`;
  if (size < 1) return `${(value * 1000).toFixed(0)} ms`;
  if (size < 10) return `${value.toFixed(1)} s`;
  if (size < 120) return `${value.toFixed(0)} s`;
  if (size < 7200) return `${(value / 60).toFixed(0)} min`;
  if (size < 172800) return `${(value / 3600).toFixed(0)} h`;
  return `${(value / 86400).toFixed(0)} d`;
}

/**
 * @param {number} value seconds since it was
 * @returns {string}
 */
export function ago(value) {
  if (value < 2) return "just now";
  const text = value < 10 ? `${Math.floor(value)} s` : seconds(value);
  return `${text} ago`;
}

/**
 * @param {number} value
 * @returns {string} one digit below ten, none above
 */
export function rate(value) {
  return value < 10 ? value.toFixed(1) : count(value);
}
