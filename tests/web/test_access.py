"""The page for those who use keys or a screen reader, or see less well."""

import pytest
from selenium.webdriver.common.keys import Keys
from serving import wait_for

# Roles that someone acts on, and so has to be told the name of.
CONTROLS = {
    "alertdialog", "button", "checkbox", "combobox", "dialog",
    "DisclosureTriangle", "link", "listbox", "menuitem", "radio", "row",
    "searchbox", "slider", "spinbutton", "switch", "tab", "textbox",
    "treegrid",
}  # fmt: skip

# Texts that stand out too little from what lies behind them (WCAG 2.2, 1.4.3).
WEAK_TEXTS = """
const context = new OffscreenCanvas(1, 1).getContext(
  "2d", {willReadFrequently: true});
function rgba(colour) {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function over(top, below) {
  return [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
}
function ground(node) {
  const layers = [];
  for (let at = node; at; at = at.parentElement) {
    layers.push(rgba(getComputedStyle(at).backgroundColor));
  }
  const base = matchMedia("(prefers-color-scheme: dark)").matches ? 0 : 255;
  return layers.reverse().reduce(
    (below, top) => over(top, below), [base, base, base]);
}
function luminance(colour) {
  const [r, g, b] = colour.map((it) => {
    const c = it / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const weak = [];
let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const node = text.parentElement;
  if (!text.data.trim() || !node.checkVisibility({visibilityProperty: true})) {
    continue;
  }
  if (node.closest(":disabled, .hidden-visually, option")) continue;
  const style = getComputedStyle(node);
  const behind = ground(node);
  const front = over(rgba(style.color), behind);
  const [light, dark] = [luminance(front), luminance(behind)].sort(
    (a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  seen += 1;
  if (ratio < (large ? 3 : 4.5)) {
    weak.push(`${ratio.toFixed(2)}: ${text.data.trim().slice(0, 40)}`);
  }
}
return [seen, weak];
"""

FOCUS = """
const node = document.activeElement;
if (node === document.body) return null;
const style = getComputedStyle(node);
return {
  what: node.id || node.className || node.tagName,
  outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
  shown: node.checkVisibility(),
};
"""


def fill(page):
    page.settle(max_tokens=8, system="You are brief. " * 30)
    page.say("Name a ship.")
    page.say("And a `harbour`, with a list.")


def unnamed(page):
    """Controls without a name, as Chromium tells assistive technology."""
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})[
        "nodes"
    ]
    found = []
    controls = 0
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node.get("ignored") or role not in CONTROLS:
            continue
        controls += 1
        if not node.get("name", {}).get("value", "").strip():
            found.append(role)
    assert controls > 5
    return found


def test_every_control_has_a_name(page):
    fill(page)
    for view in ("chat", "cache", "live"):
        page.click(f"#nav-{view}")
        page.shown(f"#view-{view}")
        if view == "cache":
            page.shown("#cache-rows .row")
        assert unnamed(page) == [], view
    page.click("#open-settings")
    page.shown("#settings")
    assert unnamed(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out(page, theme):
    fill(page)
    page.driver.execute_script(
        "localStorage.setItem('afterglow.theme', arguments[0])", theme
    )
    page.driver.refresh()
    for view in ("chat", "cache", "live"):
        page.click(f"#nav-{view}")
        page.shown(f"#view-{view}")
        if view == "cache":
            page.shown("#cache-rows .row")
        seen, weak = page.driver.execute_script(WEAK_TEXTS)
        assert seen > 10
        assert weak == [], view
    page.click("#open-settings")
    page.shown("#settings")
    assert page.driver.execute_script(WEAK_TEXTS)[1] == []


def test_the_focus_is_seen(page):
    fill(page)
    for view in ("chat", "cache", "live"):
        page.driver.get(f"{page.homes[-1]}#/{view}")
        page.driver.refresh()
        page.shown(f"#view-{view}")
        if view == "cache":
            page.shown("#cache-rows .row")
        page.driver.execute_script("document.activeElement.blur()")
        met = []
        for _ in range(80):
            page.press(Keys.TAB)
            focus = page.driver.execute_script(FOCUS)
            if focus is None:
                break
            met.append(focus)
        assert len(met) > 5, view
        assert [it["what"] for it in met if not it["shown"]] == [], view
        assert [it["what"] for it in met if not it["outline"]] == [], view


def test_what_happens_is_said(page):
    page.settle(max_tokens=4)
    page.say("Name a ship.")
    wait_for(lambda: "complete" in page.text("#announcer"), "announcement")
    region = page.one("#announcer")
    assert region.get_attribute("aria-live") or (
        region.get_attribute("role") in ("status", "log", "alert")
    )
