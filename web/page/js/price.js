// What a prompt token costs to compute, by model. The server forgets it when it
// ends, and after its start needs it the most; so the browser remembers.

const kPrice = "afterglow.price.";

/**
 * @param {string} model
 * @returns {number | undefined} seconds
 */
export function rememberedPrice(model) {
  const kept = Number(localStorage.getItem(kPrice + model));
  return Number.isFinite(kept) && kept > 0 ? kept : undefined;
}

/**
 * @param {string} model
 * @param {number} seconds
 * @returns {boolean} whether none was known
 */
export function rememberPrice(model, seconds) {
  const known = rememberedPrice(model);
  if (known === seconds || !model || !(seconds > 0)) return false;
  try {
    localStorage.setItem(kPrice + model, String(seconds));
  } catch (error) {
    // No room is left: then it is as if nobody had measured.
    if (error instanceof DOMException) return false;
    throw error;
  }
  return known === undefined;
}
