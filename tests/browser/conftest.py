"""A headless Chromium, and a report to show in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))

from reported import whole

from tunnel_lab import report

DRIVER, CHROMIUM = Path("/usr/bin/chromedriver"), Path("/usr/bin/chromium")
SECONDS = 60


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Start Chromium; where there is none the tests fail, since a report that nobody looked at is not tested."""
    missing = [str(path) for path in (DRIVER, CHROMIUM) if not path.exists()]
    if missing:
        pytest.fail(f"{missing[0]} is missing: ./setup.sh --dev installs it", pytrace=False)
    os.environ["SE_OFFLINE"] = "true"  # selenium would look for a driver of its own on the network
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=str(DRIVER)))
    driver.set_page_load_timeout(SECONDS)
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a report of a run that has everything, and return its address on disk."""
    directory = tmp_path_factory.mktemp("run")
    html, _ = report.write(whole(directory).inputs(), directory)
    return html.as_uri()
