"""The page in Chromium, with the real server and model."""

import time
from contextlib import contextmanager

from selenium.webdriver.common.keys import Keys
from serving import Server, wait_for

SYSTEM = "You teach children about harbours, ships and the sea. " * 30
LONG = "Count from one to three hundred in words, one number a line."


def log_growth(page):
    """Has the page record the growing answer's length at each change."""
    page.driver.execute_script("""
        window.lengths = [];
        new MutationObserver(() => {
          const body = document.querySelector(".growing .message-body");
          if (body) window.lengths.push(body.textContent.length);
        }).observe(document.querySelector("#messages"),
                   {childList: true, subtree: true, characterData: true});
    """)


def test_an_answer_streams(page):
    page.settle(max_tokens=40)
    log_growth(page)
    answer = page.say("Tell me about the sea.")
    lengths = page.driver.execute_script("return window.lengths")
    seen = sorted(set(lengths) - {0})
    assert len(seen) >= 5, lengths
    assert seen[-1] <= len(answer.find_element("css selector",
                                               ".message-body").text)
    assert page.text(".message.user .message-body") == "Tell me about the sea."
    assert page.tokens(answer, "ram") == 0
    assert "40 tokens generated" in answer.text
    assert "Cut off" in answer.text


def test_the_second_turn_reuses_the_first(page, server):
    page.settle(max_tokens=12, system=SYSTEM)
    first = page.say("What is a harbour?")
    total = sum(page.tokens(first, it) for it in ("ram", "disk", "computed"))
    assert total > 300
    second = page.say("And a quay?")
    assert page.tokens(second, "ram") >= total
    assert 0 < page.tokens(second, "computed") < 40
    assert "saved" in second.find_element("css selector", "summary").text
    second.find_element("css selector", "summary").click()
    assert "to compute one (measured" in second.text
    assert "measured by the server" in second.text


def test_an_answer_is_stopped(page, server):
    page.settle(max_tokens=2000)
    page.send(LONG)
    wait_for(lambda: page.text(".growing .message-body"), "text")
    page.click("#stop")
    answer = page.wait_answers(1)
    assert "Stopped." in answer.text
    wait_for(lambda: server.running() == 0, "end of the request")
    assert page.one("#send").is_displayed()
    assert not page.one("#stop").is_displayed()
    text = page.text(".message.assistant .message-body")
    page.driver.refresh()
    assert page.text(".message.assistant .message-body") == text != ""


def test_escape_stops_the_answer_from_the_prompt(page, server):
    page.settle(max_tokens=2000)
    page.send(LONG)
    wait_for(lambda: page.text(".growing .message-body"), "text")
    assert page.focused_id() == "prompt"
    # A dialog on top takes the key for itself.
    page.click("#open-settings")
    page.press(Keys.ESCAPE)
    wait_for(lambda: not page.one("#settings").is_displayed(), "closed")
    assert page.all(".growing")
    page.one("#prompt").send_keys(Keys.ESCAPE)
    answer = page.wait_answers(1)
    assert "Stopped." in answer.text
    wait_for(lambda: server.running() == 0, "end of the request")
    assert page.focused_id() == "prompt"


def test_an_answer_is_generated_again(page):
    page.settle(max_tokens=16, temperature=0)
    page.say("Name three ships.")
    text = page.text(".message.assistant .message-body")
    page.click(".regenerate")
    wait_for(lambda: page.all(".growing") or page.text("[data-tier=ram] b") > "0",
             "another answer")
    again = page.wait_answers(1)
    assert page.text(".message.assistant .message-body") == text
    assert page.tokens(again, "ram") > 0
    assert len(page.all(".message.user")) == 1


def test_conversations_are_kept_apart(page):
    page.settle(max_tokens=4)
    page.say("The first one.")
    page.click("#new-conversation")
    page.say("The second one.")
    page.driver.refresh()
    titles = [it.text for it in page.all("button.conversation")]
    assert titles == ["The second one.", "The first one."]
    page.all("button.conversation")[1].click()
    assert page.text(".message.user .message-body") == "The first one."
    page.click("[aria-label='Delete “The first one.”']")
    page.click("#confirm button[value=no]")
    assert len(page.all("button.conversation")) == 2
    page.click("[aria-label='Delete “The first one.”']")
    page.click("#confirm-yes")
    wait_for(lambda: len(page.all("button.conversation")) == 1, "deletion")
    assert page.text(".message.user .message-body") == "The second one."


def test_leaving_a_conversation_ends_its_answer(page, server):
    page.settle(max_tokens=2000)
    page.send(LONG)
    wait_for(lambda: page.text(".growing .message-body"), "text")
    page.click("#new-conversation")
    wait_for(lambda: server.running() == 0, "end of the request")
    assert page.one("#send").is_displayed()
    assert page.all(".message") == []
    page.click("button.conversation")
    assert "Stopped." in page.text(".message.assistant")


def test_a_refusal_is_shown(page):
    page.settle(max_tokens=4)
    page.expect_log("status of 400")
    answer = page.say("many words " * 9000)
    error = answer.find_element("css selector", ".error").text
    assert "8192" in error or "context" in error, error


def cache_ids(page):
    return [row["key"] for row in page.rows()]


def test_cache_entries_are_listed_pinned_and_deleted(page, server):
    page.settle(max_tokens=4)
    page.say("Something for the cache.")
    newest = max(server.get("/v1/cache")["entries"], key=lambda e: e["last_use"])
    page.click("#nav-cache")
    row = f"#cache-rows .row[data-key='{newest['id']}']"
    page.shown(row)
    assert str(newest["tokens"]) in page.text(row)
    entries = {e["id"] for e in server.get("/v1/cache")["entries"]}
    assert entries <= set(cache_ids(page))

    def pinned():
        report = server.get("/v1/cache")["entries"]
        return next(e["pinned"] for e in report if e["id"] == newest["id"])

    page.click(f"{row} [data-action=pin]")
    wait_for(lambda: page.text(f"{row} [data-action=pin]") == "Unpin", "Unpin")
    assert pinned()
    page.click(f"{row} [data-action=pin]")
    wait_for(lambda: page.text(f"{row} [data-action=pin]") == "Pin", "Pin")
    assert not pinned()

    page.click(f"{row} [data-action=delete]")
    page.click("#confirm button[value=no]")
    assert newest["id"] in {e["id"] for e in server.get("/v1/cache")["entries"]}
    page.click(f"{row} [data-action=delete]")
    page.click("#confirm-yes")
    wait_for(lambda: not page.all(row), "row gone")
    left = {e["id"] for e in server.get("/v1/cache")["entries"]}
    assert newest["id"] not in left


def test_all_entries_are_deleted(page, server):
    page.settle(max_tokens=4)
    page.say("Something to lose.")
    page.click("#nav-cache")
    page.shown("#cache-rows .row")
    assert page.one("#cache-keys").is_displayed()
    page.click("#cache-clear")
    assert "pinned" not in page.text("#confirm-text")
    page.click("#confirm-yes")
    page.shown("#cache-empty")
    assert server.get("/v1/cache")["entries"] == []
    wait_for(lambda: page.focused_id() == "cache-empty", "focus on what is said")
    for part in ("#cache-tree", "#cache-keys"):
        assert not page.one(part).is_displayed()


def test_the_last_entry_is_pinned_and_deleted(page, server):
    server.request("DELETE", "/v1/cache")
    page.settle(max_tokens=1)
    page.say("Something to keep.")
    entries = server.get("/v1/cache")["entries"]
    for entry in entries[1:]:
        server.request("DELETE", f"/v1/cache?id={entry['id']}")
    page.click("#nav-cache")
    page.click("#cache-rows [data-action=pin]")
    wait_for(lambda: "pinned" in page.rows()[0]["text"], "pinned")
    page.click("#cache-clear")
    assert "1 of them pinned" in page.text("#confirm-text")
    page.click("#confirm button[value=no]")
    page.click("#cache-rows [data-action=delete]")
    assert page.text("#confirm-title") == "Delete this pinned entry?"
    assert "It is pinned" in page.text("#confirm-text")
    page.click("#confirm-yes")
    page.shown("#cache-empty")
    wait_for(lambda: page.focused_id() == "cache-empty", "focus on what is said")


def test_rows_say_what_they_hold(page, server):
    server.request("DELETE", "/v1/cache")
    page.settle(max_tokens=4, system=SYSTEM)
    page.say("What is a harbour?")
    page.say("And a quay?")
    page.click("#new-conversation")
    page.say("What is a lighthouse?")
    page.click("#nav-cache")
    page.shown("#cache-rows .row .says")
    rows = page.rows()
    assert "You teach children about harbours" in rows[0]["text"]
    for text in ("What is a harbour?", "And a quay?", "What is a lighthouse?"):
        assert [row for row in rows if text in row["text"]], text
    assert "Shared prefix" not in " ".join(row["text"] for row in rows)
    # One row a conversation, below what both begin with.
    chats = [row for row in rows if "Prompt and answer" in row["text"]]
    assert [row["level"] for row in chats] == ["2", "2"]
    assert not page.one("#cache-untold").is_displayed()

def test_graphs_follow_the_counters(page):
    page.settle(max_tokens=60)
    page.say("Tell me about lighthouses.")
    page.click("#nav-live")

    def measured():
        label = page.one("#graph-speed svg").get_attribute("aria-label")
        return "at most" in label and not label.endswith("at most 0.0")

    wait_for(measured, "rate above zero")
    assert page.one("#graph-speed path").get_attribute("d").count("M") >= 1
    page.click(".figures summary")
    assert len(page.all("#live-rows tr")) >= 1
    sources = page.all("#graph-tiers path")
    assert any("M" in it.get_attribute("d") for it in sources)


def test_all_is_done_by_keyboard(page, server):
    page.settle(max_tokens=4)
    page.driver.refresh()
    page.press(Keys.TAB)
    assert page.focused() == "Skip to the content"
    page.press(Keys.ENTER)
    page.tab_to("#prompt")
    page.press("By keys alone.", Keys.ENTER)
    page.wait_answers(1)
    newest = max(server.get("/v1/cache")["entries"], key=lambda e: e["last_use"])
    page.driver.refresh()
    page.tab_to("#nav-cache")
    page.press(Keys.ENTER)
    page.shown("#cache-rows .row")
    page.tab_to("#cache-rows .row")
    page.press(Keys.HOME)
    keys = cache_ids(page)
    assert page.focused_key() == keys[0]
    for _ in range(keys.index(newest["id"])):
        page.press(Keys.ARROW_DOWN)
    assert page.focused_key() == newest["id"]
    page.press(Keys.TAB)
    assert page.focused() == "Pin"
    page.press(Keys.SPACE)
    wait_for(lambda: page.focused() == "Unpin", "focus kept on the button")
    page.press(Keys.TAB)
    assert page.focused() == "Delete"
    page.press(Keys.ENTER)
    wait_for(lambda: page.focused() == "Cancel", "question")
    page.press(Keys.ESCAPE)
    wait_for(lambda: page.focused() == "Delete", "focus back")
    page.press(Keys.ENTER)
    wait_for(lambda: page.focused() == "Cancel", "question")
    page.press(Keys.TAB, Keys.ENTER)
    wait_for(lambda: newest["id"] not in cache_ids(page), "deletion")
    assert newest["id"] not in {
        e["id"] for e in server.get("/v1/cache")["entries"]
    }


def test_entries_form_a_tree(page):
    # What a server says that tells what entries share.
    page.driver.execute_script("""
        const entry = (name, order, shared_tokens, more) => ({
          id: name.repeat(64) + ":" + more.tokens, type: "assistant",
          blocks: 2, hits: 0, pinned: false, ttl_seconds: null,
          last_use: Date.now() / 1000 - order, ram_blocks: 2, disk_blocks: 1,
          bytes: 3 * 2 ** 20, order, shared_tokens, ...more});
        const report = {
          requests: {running: 0, queued: 0}, lookups: 4, hits: 1,
          hit_tokens: 9, entry_budget: null, disk: null,
          ram: {blocks: 9, bytes: 9, budget_bytes: null},
          entries: [
            entry("a", 0, 0, {tokens: 400, type: "system"}),
            entry("b", 1, 400, {tokens: 500, texts: [
              {from: 400, text: "Read <b>this</b>"},
              {from: 450, text: "What is it?"}]}),
            entry("c", 2, 450, {tokens: 600, pinned: true}),
            entry("d", 3, 0, {tokens: 50})]};
        const real = window.fetch;
        window.fetch = (at, options) => String(at).endsWith("v1/cache")
          ? Promise.resolve(new Response(JSON.stringify(report)))
          : real(at, options);
    """)
    page.click("#nav-cache")
    page.shown("#cache-rows .row")

    def rows():
        return [(row["level"], row["text"]) for row in page.rows()]

    found = rows()
    assert [level for level, _ in found] == ["1", "2", "3", "3", "1"]
    assert "System prompt" in found[0][1]
    assert "Shared prefix" in found[1][1]
    assert "450" in found[1][1]
    assert "Read <b>this</b>" in found[1][1]
    assert "What is it?" in " ".join(text for _, text in found)
    assert "pinned" in found[3][1]
    assert "3.0 MiB" in found[3][1]
    assert "memory, part disk" in found[3][1]
    page.tab_to("#cache-rows .row")
    page.press(Keys.HOME, Keys.ARROW_RIGHT)
    assert "Shared prefix" in page.focused()
    page.press(Keys.ARROW_LEFT)
    assert [level for level, _ in rows()] == ["1", "2", "1"]
    page.press(Keys.ARROW_LEFT)
    assert "System prompt" in page.focused()
    page.press(Keys.ARROW_LEFT, Keys.END)
    assert [level for level, _ in rows()] == ["1", "1"]
    assert page.focused_key().startswith("dddd")
    page.press(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert len(rows()) == 5


def test_chats_hang_below_their_system_prompt(page, tmp_path):
    tmp_path.chmod(0o700)
    with Server(cache=tmp_path) as own:
        page.moves_to(f"http://127.0.0.1:{own.port}/")
        page.settle(max_tokens=4, system=SYSTEM)
        page.say("What is a harbour?")
        page.click("#new-conversation")
        page.say("Name three ships.")
        own.flush()
        page.click("#nav-cache")
        page.shown("#cache-rows .row")
        rows = page.rows()
        assert "System prompt" in rows[0]["text"]
        assert rows[0]["level"] == "1"
        assert {row["level"] for row in rows[1:]} <= {"2", "3"}
        chats = [row for row in rows if "and answer" in row["text"]]
        assert len(chats) == 2
        for row in chats:
            assert "memory, disk" in row["text"]
            assert "MiB" in row["text"] or "KiB" in row["text"]
        page.driver.get("about:blank")


def test_reasoning_is_folded_away(page):
    page.driver.execute_script("""
        const piece = (delta, more) => "data: " + JSON.stringify({choices: [
          {index: 0, delta, finish_reason: null}], ...more}) + "\\n\\n";
        const text = piece({role: "assistant", reasoning: "Ships float. "}) +
          piece({reasoning: "So do boats."}) + piece({content: "Both."}) +
          "data: [DONE]\\n\\n";
        const real = window.fetch;
        window.fetch = (at, options) => String(at).endsWith("chat/completions")
          ? Promise.resolve(new Response(text)) : real(at, options);
    """)
    answer = page.say("What floats?")
    assert page.text(".message.assistant .message-body") == "Both."
    folded = answer.find_element("css selector", "details.reasoning")
    assert "Ships" not in folded.text
    folded.find_element("css selector", "summary").click()
    assert "Ships float. So do boats." in folded.text
    page.driver.refresh()
    assert "So do boats." in page.text(".message.assistant .reasoning")


@contextmanager
def asked_before_its_restart(page, folder):
    """A server that knows the question from before, and the page's answer."""
    folder.chmod(0o700)
    question = "What is a harbour?"
    with Server(cache=folder) as before:
        before.chat(question, system=SYSTEM)
        before.flush()
        before.kill()
    with Server(cache=folder) as after:
        page.moves_to(f"http://127.0.0.1:{after.port}/")
        page.settle(max_tokens=4, system=SYSTEM)
        yield after, page.say(question)


def test_after_a_restart_the_prompt_comes_from_disk(page, tmp_path):
    with asked_before_its_restart(page, tmp_path) as (_, answer):
        assert page.tokens(answer, "disk") > 300
        assert page.tokens(answer, "ram") == 0


def keep_price(page):
    """What the browser remembers of prices, as JavaScript that puts it back."""
    found = page.driver.execute_script("""
        return Object.entries(localStorage).filter(
          ([key]) => key.startsWith("afterglow.price."));
    """)
    assert found
    return "".join(f"localStorage[{key!r}] = {value!r};" for key, value in found)


def test_after_a_restart_the_time_saved_is_known(page, tmp_path):
    tmp_path.chmod(0o700)
    question = "What is a harbour?"
    with Server(cache=tmp_path) as before:
        page.moves_to(f"http://127.0.0.1:{before.port}/")
        page.settle(max_tokens=4, system=SYSTEM)
        page.say(question)
        remembered = keep_price(page)
        page.driver.get("about:blank")
        before.flush()
        before.kill()
    with Server(cache=tmp_path) as after:
        # Another port, and so another store of the browser.
        page.moves_to(f"http://127.0.0.1:{after.port}/")
        page.driver.execute_script(remembered)
        page.settle(max_tokens=4, system=SYSTEM)
        answer = page.say(question)
        assert page.tokens(answer, "disk") > 300
        saved = answer.find_element("css selector", "details.origin-saved")
        assert saved.text.startswith("≈") and "saved" in saved.text
        saved.find_element("css selector", "summary").click()
        assert "measured here on other prompts" in saved.text
        page.click("#nav-live")
        wait_for(lambda: "measured here before" in page.text("#live-tiles"),
                 "time saved")
        page.driver.get("about:blank")


def test_the_time_saved_is_shown_as_soon_as_it_is_known(page, tmp_path):
    with asked_before_its_restart(page, tmp_path) as (after, answer):
        tokens = page.tokens(answer, "disk") + page.tokens(answer, "ram")
        said = page.text(".origin-saved summary")
        assert said.startswith(f"{tokens} tokens read in "), said
        assert said.endswith("not computed"), said
        page.click("#nav-live")
        wait_for(lambda: f"{tokens} tokens not computed" in
                 page.text("#live-tiles"), "tokens reused")
        after.chat("Something else. " * 60)
        wait_for(lambda: page.text(".origin-saved summary").startswith("≈"),
                 "time saved")
        assert "saved" in page.text(".origin-saved summary")
        page.driver.get("about:blank")


def refusals(running):
    return running.output().count("status=401")


def test_a_page_without_its_key_waits_for_it(page):
    with Server("--api-key", "secret-1", loaded=False) as locked:
        wait_for(lambda: locked.request("GET", "/health")[0] == 200, "readiness")
        page.expect_log("status of 401")
        page.moves_to(f"http://127.0.0.1:{locked.port}/")
        wait_for(lambda: "key is needed" in page.text("#server-status"), "status")
        opened = refusals(locked)
        page.click("#nav-live")
        wait_for(lambda: "API key" in page.text("#live-error"), "error")
        # A second reading of the counters would have come by now.
        time.sleep(5)
        assert refusals(locked) == opened
        assert 0 < opened <= 2, locked.output()  # one each time it opens

        page.click("#nav-cache")
        error = page.shown("#cache-error").text
        assert error == (
            "This server asks for an API key. Enter yours under “Settings”."
        )
        for part in ("#cache-tree", "#cache-keys", "#cache-empty"):
            assert not page.one(part).is_displayed(), part
        time.sleep(6)
        assert refusals(locked) == opened + 1

        page.settle(key="secret-1", max_tokens=4)
        wait_for(lambda: "SmolLM2" in page.text("#server-status"), "status")
        page.shown("#cache-empty")
        assert refusals(locked) == opened + 1
        page.click("#nav-chat")
        page.say("Name a ship.")
        page.click("#nav-cache")
        page.shown("#cache-rows .row")
        # Many keys may open this cache; whose prompts are these?
        assert page.all("#cache-rows .says") == []
        assert page.one("#cache-untold").is_displayed()
        page.driver.get("about:blank")


def test_with_namespaces_rows_say_what_they_hold_to_their_key(page):
    flags = ("--api-key", "secret-1", "--cache-namespaces")
    with Server(*flags, loaded=False) as locked:
        wait_for(lambda: locked.request("GET", "/health")[0] == 200, "readiness")
        page.expect_log("status of 401")
        page.moves_to(f"http://127.0.0.1:{locked.port}/")
        page.settle(key="secret-1", max_tokens=4)
        page.say("What is a lighthouse?")
        page.click("#new-conversation")
        page.say("Name three ships.")
        page.click("#nav-cache")
        page.shown("#cache-rows .says")
        said = page.text("#cache-rows")
        assert "What is a lighthouse?" in said
        assert "Name three ships." in said
        page.driver.get("about:blank")


def test_a_server_that_is_gone_is_told_of(page, tmp_path):
    with Server() as passing:
        page.moves_to(f"http://127.0.0.1:{passing.port}/")
        wait_for(lambda: "SmolLM2" in page.text("#server-status"), "status")
        passing.kill()
        page.expect_log("ERR_CONNECTION_REFUSED")
        page.say("Is anyone there?")
        assert page.one(".message .error").is_displayed()
        assert page.one("#send").is_displayed()
        # Nothing more is asked of that address.
        page.driver.get("about:blank")


def test_a_theme_is_kept(page):
    def ground():
        return page.driver.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )

    light = ground()
    page.click("#theme-switch")
    dark = ground()
    assert dark != light
    page.driver.refresh()
    assert ground() == dark
    page.click("#theme-switch")
    assert ground() == light


def test_the_key_is_sent(page):
    page.settle(key="secret-1")
    page.driver.execute_script("""
        const real = window.fetch;
        window.fetch = (at, options) => {
          window.sent = options.headers.Authorization;
          return real(at, options);
        };
    """)
    page.click("#nav-cache")
    wait_for(lambda: page.driver.execute_script("return window.sent"), "request")
    assert page.driver.execute_script("return window.sent") == "Bearer secret-1"
    kept = page.driver.execute_script("return Object.values(localStorage)")
    assert "secret-1" not in " ".join(kept)


def test_markup_in_texts_is_shown_as_it_is(page):
    page.settle(max_tokens=1)
    text = "<img src=x onerror=alert(1)> **a** <script>alert(2)</script>"
    page.say(text)
    assert page.text(".message.user .message-body") == text
    page.driver.execute_script("""
        const key = Object.keys(localStorage).find(
          (it) => it.startsWith("afterglow.conversation."));
        const kept = JSON.parse(localStorage[key]);
        kept.messages[1].content = arguments[0] + " [x](javascript:alert(3))";
        localStorage[key] = JSON.stringify(kept);
    """, text)
    page.driver.refresh()
    body = page.shown(".message.assistant .message-body")
    assert body.text.startswith("<img src=x onerror=alert(1)> a <script>")
    assert page.all(".message-body :is(img, script, a)") == []


def test_narrow_screens_need_no_scrolling_sideways(page):
    page.settle(max_tokens=4, system=SYSTEM)
    page.say("A" * 300)
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        for view in ("chat", "cache", "live"):
            page.click(f"#nav-{view}")
            page.shown(f"#view-{view}")
            for part in ("document.documentElement",
                         "document.querySelector('main')",
                         "document.querySelector('#messages')"):
                wide = page.driver.execute_script(
                    f"return {part}.scrollWidth - {part}.clientWidth"
                )
                assert wide <= 0, (view, part)
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
