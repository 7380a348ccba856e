"""The report as people see it: on a desk, on a phone, in the dark, and on paper."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

LOOKS = (Path(__file__).parent / "looks.js").read_text(encoding="utf-8")
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PAPER = (718, 1010)
"""A4 at 96 pixels an inch, with margins."""
CONTRAST = 4.5
"""WCAG 2.2, 1.4.3, level AA, for text of any size."""
SMALLEST = 8.5
"""Pixels of the smallest text in a figure on a phone."""
TOUCH = 1.5
"""Pixels that the boxes around two labels may share: they are higher than the letters in them."""


def look(browser: Chrome, address: str, size: tuple[int, int], scheme: str, media: str = "screen") -> dict[str, Any]:
    """Show the report and return what looks.js finds; on a screen everything that is folded is opened first."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    browser.get(address)
    if media == "screen":
        browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    found: dict[str, Any] = browser.execute_script(LOOKS)
    return found


@pytest.fixture(params=[(size, scheme) for size in SIZES for scheme in ("light", "dark")], ids="-".join)
def seen(request: pytest.FixtureRequest, browser: Chrome, address: str) -> dict[str, Any]:
    """The report on a screen."""
    size, scheme = request.param
    return look(browser, address, SIZES[size], scheme)


def test_nothing_is_wrong_and_nothing_is_fetched(seen: dict[str, Any], browser: Chrome) -> None:
    untyped: Any = browser  # of what selenium gives, its log has no types
    assert untyped.get_log("browser") == []
    assert seen["requests"] == []


def test_the_page_is_as_wide_as_the_window(seen: dict[str, Any]) -> None:
    assert seen["width"] <= seen["window"]
    for table in seen["tables"]:
        assert table["left"] >= 0 and table["right"] <= seen["window"]


def test_every_figure_is_seen_and_told_in_words(seen: dict[str, Any]) -> None:
    assert len(seen["drawings"]) == 7
    for each in seen["drawings"]:
        assert each["shown"] and each["right"] - each["left"] > 300
        assert each["role"] == "img" and len(each["label"]) > 40


def test_no_label_is_cut_off_or_covers_another(seen: dict[str, Any]) -> None:
    for drawing in seen["drawings"]:
        for label in drawing["labels"]:
            assert label["size"] >= SMALLEST, label
            assert drawing["left"] - 1 <= label["left"] and label["right"] <= drawing["right"] + 1, label
            assert drawing["top"] - 1 <= label["top"] and label["bottom"] <= drawing["bottom"] + 1, label
        for one, other in itertools.combinations(drawing["labels"], 2):
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            assert min(across, down) <= TOUCH * 2, (one, other)


def test_text_can_be_read(seen: dict[str, Any]) -> None:
    assert len(seen["contrasts"]) > 100
    faint = [each for each in seen["contrasts"] if each["ratio"] < CONTRAST]
    assert not faint


def test_a_verdict_is_on_the_first_screen(browser: Chrome, address: str) -> None:
    for size in SIZES.values():
        assert look(browser, address, size, "light")["verdict"] < size[1]


def test_dark_is_dark(browser: Chrome, address: str) -> None:
    light, dark = (look(browser, address, SIZES["desk"], scheme)["background"] for scheme in ("light", "dark"))
    assert (light, dark) == ("rgb(253, 253, 252)", "rgb(20, 23, 26)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_all_is_open_and_light(browser: Chrome, address: str, scheme: str) -> None:
    seen = look(browser, address, PAPER, scheme, "print")
    assert seen["background"] == "rgb(253, 253, 252)"
    assert seen["listings"] and all(seen["listings"]), "what is folded on a screen is printed"
    assert seen["width"] <= seen["window"]
    assert not [each for each in seen["contrasts"] if each["ratio"] < CONTRAST]
    assert all(each["shown"] for each in seen["drawings"])
