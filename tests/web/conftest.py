import json
import os
import sys
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from browser import Page  # noqa: E402
from serving import MODEL, PROGRAM, Server  # noqa: E402


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with a cache directory that all tests of a run share."""
    for path in (PROGRAM, MODEL):
        if not path.exists():
            pytest.fail(f"{path} is missing; type: make build")
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    with Server(cache=cache) as running:
        yield running
        assert running.terminate() == 0


@pytest.fixture(scope="session")
def address(server):
    return f"http://127.0.0.1:{server.port}/"


@pytest.fixture(scope="session")
def driver():
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    # CI runs as root in a container, where Chromium's sandbox cannot start and
    # /dev/shm is small.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                 "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = Service(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.execute_cdp_cmd("Network.enable", {})
    yield driver
    driver.quit()


def requested(driver):
    """The addresses that pages asked for since the last call."""
    for line in driver.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


@pytest.fixture
def page(driver, address):
    """The page as someone sees it who comes for the first time.

    Afterwards: nothing was logged to the console (blocked by the policy,
    thrown, or not found), and nothing asked of another origin.
    """
    driver.get("about:blank")
    driver.get_log("browser")
    list(requested(driver))
    page = Page(driver)
    page.moves_to(address)
    yield page
    driver.get("about:blank")
    logged = [line["message"] for line in driver.get_log("browser")]
    assert [line for line in logged if not page.expects(line)] == []
    asked = {url for url in requested(driver) if url != "about:blank"}
    others = [it for it in asked if not it.startswith(tuple(page.homes))]
    assert others == []
