// The list of conversations beside the chat.

import { confirmed } from "./confirm.js";
import { byId, h } from "./dom.js";
import { conversations, deleteConversation } from "./storage.js";

/**
 * Shows the kept conversations.
 * @param {string} current id of the one that is open
 * @param {{open: (conversation: Conversation) => void,
 *   deleted: (id: string) => void}} on
 */
export function showConversations(current, on) {
  const list = byId("conversations", HTMLUListElement);
  const kept = conversations();
  list.replaceChildren(...kept.map((one) => row(one, current, on)));
  byId("no-conversations", HTMLElement).hidden = kept.length > 0;
}

/**
 * @param {Conversation} conversation
 * @param {string} current
 * @param {{open: (conversation: Conversation) => void,
 *   deleted: (id: string) => void}} on
 * @returns {HTMLLIElement}
 */
function row(conversation, current, on) {
  const { id, title } = conversation;
  const remove = async () => {
    const text = `“${title}” will be deleted from this browser.`;
    if (await confirmed("Delete the conversation?", text, "Delete")) {
      deleteConversation(id);
      on.deleted(id);
    }
  };
  return h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        class: "conversation",
        title,
        "aria-current": id === current ? "true" : null,
        onclick: () => on.open(conversation),
      },
      title,
    ),
    h(
      "button",
      {
        type: "button",
        class: "icon",
        "aria-label": `Delete “${title}”`,
        title: "Delete",
        onclick: remove,
      },
      "✕",
    ),
  );
}
