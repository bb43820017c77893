// Making and finding elements. Text always enters the page as text.

/**
 * The element of that id.
 * Errors: throws where it is missing or of another kind.
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`#${id} is no ${type.name}`);
  return found;
}

/**
 * @typedef {string | Node | null | false | undefined} Child
 * @typedef {Record<string, string | number | boolean | null | undefined |
 *   ((event: any) => void)>} Attributes
 */

/**
 * @param {Element} node
 * @param {Attributes} attributes
 */
function decorate(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      node.addEventListener(name.slice(2), value);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * A new element. Attributes named `on...` are listeners; those that are null,
 * undefined or false are left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  decorate(node, attributes);
  node.append(...children.filter(isShown));
  return node;
}

/**
 * A new element of an SVG image.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  decorate(node, attributes);
  node.append(...children.filter(isShown));
  return node;
}

/**
 * @param {Child} child
 * @returns {child is string | Node}
 */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * Has screen readers say a short text once.
 * @param {string} text
 */
export function announce(text) {
  byId("announcer", HTMLElement).textContent = text;
}
