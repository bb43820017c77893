// The page: its views, one shown at a time by the address's fragment.

import { forgetRefusal } from "./api.js";
import { CacheView } from "./cache.js";
import { Chat } from "./chat.js";
import { byId } from "./dom.js";
import { LiveView } from "./live.js";
import { startSettings } from "./settings.js";
import { refreshStatus } from "./status.js";
import { startTheme } from "./theme.js";

const chat = new Chat();
const cache = new CacheView();
const live = new LiveView(() => chat.priceKnown());

/** @type {Record<string, {show: () => void, hide: () => void}>} */
const kViews = {
  chat: { show: () => {}, hide: () => {} },
  cache,
  live,
};

/** Shows the view that the address names. */
function route() {
  const name = /^#\/(\w+)$/.exec(location.hash)?.[1] ?? "chat";
  // Other fragments (of the skip link) leave the view alone.
  if (location.hash && !location.hash.startsWith("#/")) return;
  const chosen = name in kViews ? name : "chat";
  for (const [other, view] of Object.entries(kViews)) {
    const shown = other === chosen;
    byId(`view-${other}`, HTMLElement).hidden = !shown;
    const link = byId(`nav-${other}`, HTMLAnchorElement);
    if (shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (!shown) view.hide();
  }
  kViews[chosen]?.show();
}

const panel = byId("conversation-panel", HTMLElement);
const toggle = byId("toggle-conversations", HTMLButtonElement);
toggle.addEventListener("click", () => {
  toggle.ariaExpanded = String(panel.classList.toggle("open"));
});
panel.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !panel.classList.contains("open")) return;
  panel.classList.remove("open");
  toggle.ariaExpanded = "false";
  toggle.focus();
  event.preventDefault(); // it stops no answer, too
});

startTheme();
startSettings(() => {
  refreshStatus();
  route();
});
chat.start();
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  forgetRefusal();
  refreshStatus();
});
route();
// The one after the other: a page without its key is refused once.
await refreshStatus();
live.start();
