// Conversations and settings in the browser's localStorage.

const kConversation = "afterglow.conversation.";
const kSettings = "afterglow.settings";

/** @type {Settings} */
const kDefaults = {
  model: null,
  temperature: null,
  topP: null,
  maxTokens: null,
  system: "",
};

/** @returns {Settings} */
export function loadSettings() {
  return { ...kDefaults, ...parse(localStorage.getItem(kSettings)) };
}

/** @param {Settings} settings */
export function saveSettings(settings) {
  localStorage.setItem(kSettings, JSON.stringify(settings));
}

/**
 * One that begins now; not kept before it is saved.
 * @param {string} system
 * @returns {Conversation}
 */
export function newConversation(system) {
  const random = crypto.getRandomValues(new Uint32Array(3));
  const id = Array.from(random, (part) => part.toString(36)).join("");
  return {
    id,
    title: "New conversation",
    updated: Date.now(),
    system,
    messages: [],
  };
}

/** @returns {Conversation[]} the one used last first */
export function conversations() {
  const found = [];
  for (let at = 0; at < localStorage.length; ++at) {
    const key = localStorage.key(at);
    if (!key?.startsWith(kConversation)) continue;
    const conversation = parse(localStorage.getItem(key));
    if (isConversation(conversation)) found.push(conversation);
  }
  return found.sort((a, b) => b.updated - a.updated);
}

/**
 * Errors: false where the browser's room for this page is used up.
 * @param {Conversation} conversation
 * @returns {boolean}
 */
export function saveConversation(conversation) {
  try {
    const key = kConversation + conversation.id;
    localStorage.setItem(key, JSON.stringify(conversation));
    return true;
  } catch (error) {
    if (error instanceof DOMException) return false;
    throw error;
  }
}

/**
 * @param {string} id
 * @returns {boolean}
 */
export function isKept(id) {
  return localStorage.getItem(kConversation + id) !== null;
}

/** @param {string} id */
export function deleteConversation(id) {
  localStorage.removeItem(kConversation + id);
}

/**
 * Calls back when another tab changes a conversation.
 * @param {() => void} changed
 */
export function onForeignChange(changed) {
  addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(kConversation)) changed();
  });
}

/**
 * @param {string | null} text
 * @returns {any} undefined where it is no JSON
 */
function parse(text) {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {any} it
 * @returns {it is Conversation}
 */
function isConversation(it) {
  return (
    typeof it?.id === "string" &&
    typeof it.title === "string" &&
    typeof it.updated === "number" &&
    typeof it.system === "string" &&
    Array.isArray(it.messages)
  );
}
