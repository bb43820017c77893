"""The page in the words of the tests."""

import re

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from serving import wait_for


class Page:
    def __init__(self, driver):
        self.driver = driver
        self._expected: list[str] = []
        self.homes: list[str] = []  # origins that it may ask

    def moves_to(self, address: str):
        """Opens the page there, with nothing kept in the browser."""
        self.homes.append(address)
        self.driver.get(address)
        self.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.driver.refresh()

    def expect_log(self, pattern: str):
        """Lines of the console that match are no failure."""
        self._expected.append(pattern)

    def expects(self, line: str) -> bool:
        return any(re.search(pattern, line) for pattern in self._expected)

    def all(self, selector: str):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def shown(self, selector: str):
        """The first such element, once it is to be seen."""

        def look():
            try:
                found = (it for it in self.all(selector) if it.is_displayed())
                return next(found, None)
            except StaleElementReferenceException:
                return None

        return wait_for(look, f"{selector} shown")

    def click(self, selector: str):
        def attempt():
            try:
                self.shown(selector).click()
            except StaleElementReferenceException:
                return False  # drawn anew since it was found
            return True

        wait_for(attempt, f"click on {selector}")

    def text(self, selector: str) -> str:
        """Read in one step: the element may be replaced at any time."""
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.textContent ?? ''",
            selector,
        )

    def rows(self) -> list[dict]:
        """The cache's rows that are to be seen: key, level, text."""
        return self.driver.execute_script("""
            return [...document.querySelectorAll("#cache-rows [role=row]")].map(
              (row) => ({key: row.dataset.key, level: row.ariaLevel,
                         text: row.innerText.replaceAll("\\n", " ")}));
        """)

    def press(self, *keys: str):
        """Presses keys, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self) -> str:
        """The text of what has the focus."""
        return self.driver.execute_script(
            "return document.activeElement.textContent.trim()"
        )

    def focused_id(self) -> str:
        """The id of the element that has the focus."""
        return self.driver.execute_script("return document.activeElement.id")

    def focused_key(self) -> str | None:
        """The entry's id, where a row of the cache has the focus."""
        return self.driver.execute_script(
            "return document.activeElement.dataset.key ?? null"
        )

    def tab_to(self, selector: str, most: int = 60):
        """Presses Tab until that element has the focus."""
        for _ in range(most):
            self.press(Keys.TAB)
            if self.driver.execute_script(
                "return document.activeElement.matches(arguments[0])", selector
            ):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    def settle(self, **values):
        """Settings as the dialog keeps them."""
        self.click("#open-settings")
        for name, value in values.items():
            field = self.shown("#set-" + name.replace("_", "-"))
            self.driver.execute_script(
                "arguments[0].value = arguments[1]", field, str(value)
            )
        self.click("#settings-form .primary")
        wait_for(lambda: not self.one("#settings").is_displayed(), "closed")

    def answers(self):
        return self.all(".message.assistant:not(.growing)")

    def send(self, text: str):
        field = self.shown("#prompt")
        self.driver.execute_script(
            "arguments[0].value = arguments[1]", field, text
        )
        field.send_keys(Keys.ENTER)

    def wait_answers(self, count: int):
        wait_for(lambda: len(self.answers()) == count, f"{count} answers", 120)
        return self.answers()[-1]

    def say(self, text: str):
        """Sends a message; the answer's element, once it is complete."""
        before = len(self.answers())
        self.send(text)
        return self.wait_answers(before + 1)

    def tokens(self, answer, tier: str) -> int:
        """Prompt tokens of that answer that came from there."""
        figure = answer.find_element(
            By.CSS_SELECTOR, f".origin-parts [data-tier={tier}] b"
        )
        return int(figure.text.replace(",", ""))
