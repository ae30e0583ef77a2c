# SPDX-License-Identifier: Apache-2.0
"""The page of `wbscope compare --html` in a real browser: what it shows first, filter and sort."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cli import Wbscope
from support.reportpage import OpenedPage, open_report
from support.runs import REPOSITORY, example

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_GATE = REPOSITORY / "examples/gate"
_ROWS = "section.group tr[data-outcome]:visible"


@pytest.fixture
def shown(browser: Browser, wbscope: Wbscope, tmp_path: Path) -> Iterator[OpenedPage]:
    file = tmp_path / "compare.html"
    runs = [_GATE / "lower-limit.json", "--against", _GATE / "before.json"]
    done = wbscope.run("compare", *runs, "--html", str(file))
    assert done.returncode == 0, done.stderr
    with open_report(browser, file) as opened:
        yield opened
        assert opened.errors == []


@pytest.fixture(scope="module")
def of_folders(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of run folders; the baselines of the gate have no lengths of pauses to draw."""
    file = tmp_path_factory.mktemp("folders") / "compare.html"
    runs = [example(name).folder for name in ("four-equal-writers", "four-equal-writers-7.2")]
    done = wbscope.run("compare", runs[0], "--against", runs[1], "--html", str(file))
    assert done.returncode == 0, done.stderr
    return file


def test_the_pauses_are_drawn_in_the_colours_of_the_sides(
    browser: Browser, of_folders: Path
) -> None:
    with open_report(browser, of_folders) as opened:
        drawn = opened.page.locator("svg.ecdf")
        assert drawn.count() == 1
        looks = drawn.locator(".curve").evaluate_all(
            "curves => curves.map((one) => getComputedStyle(one))"
            ".map((style) => [style.fill, style.stroke])"
        )
        assert looks == [["none", "rgb(0, 114, 178)"], ["none", "rgb(213, 94, 0)"]]
        # The policy of the page refused nothing, here and in all other pictures.
        assert opened.errors == []


def test_the_page_is_dark_where_the_browser_is(browser: Browser, of_folders: Path) -> None:
    found = []
    for scheme in ("light", "dark"):
        with open_report(browser, of_folders, color_scheme=scheme) as opened:
            found.append(
                opened.page.evaluate(
                    """(names) => names.map((one) => {
                      const style = getComputedStyle(document.querySelector(one));
                      return [style.backgroundColor, style.color, style.fill].map((color) =>
                        (color.match(/\\d+/g) || []).slice(0, 3).map(Number));
                    })""",
                    ["body", "svg.ecdf text", "svg.dots text.name", ".doubt"],
                )
            )
            assert opened.errors == []
    light, dark = found
    assert sum(light[0][0]) > 700 > 200 > sum(dark[0][0])
    assert sum(light[0][1]) < 200 < 600 < sum(dark[0][1])
    # Texts of the pictures, and the ground below warnings.
    assert all(sum(dark[place][2]) > 400 > sum(light[place][2]) for place in (1, 2))
    assert sum(dark[3][0]) < 200 < 700 < sum(light[3][0])


def test_the_verdict_and_what_matters_come_first(shown: OpenedPage) -> None:
    first = shown.page.locator("body").inner_text()
    assert first.index("worse in some metrics, better in others") < first.index("What matters most")
    told = shown.page.locator("tr[data-told]")
    assert told.count() == 10
    # Each with a dot for each run.
    assert all(told.nth(place).locator("svg.dots circle").count() == 12 for place in range(10))


def test_rows_are_chosen_by_outcome_and_by_words(shown: OpenedPage) -> None:
    page = shown.page
    everything = page.locator(_ROWS).count()
    button = page.locator("#choose button[data-outcome=worse]")
    button.click()
    worse = page.locator(_ROWS).count()
    assert button.inner_text() == f"worse {worse}"
    assert 0 < worse < everything
    page.fill("#choose input", "device writes fast")
    names = page.locator(f"{_ROWS} code").all_inner_texts()
    assert "avg_write_bw_bytes_per_s" in names
    assert 0 < len(names) < worse
    # A table without any row left is not there.
    assert page.locator("section.group:visible").count() <= len(names)
    page.fill("#choose input", "")
    button.click()
    assert page.locator(_ROWS).count() == everything


def test_a_table_is_sorted_by_its_heads(shown: OpenedPage) -> None:
    head = "section.group:has(h3:text-is('throttle_summary')) "
    rows = shown.page.locator(f"{head} tr[data-outcome]")

    def values(key: str) -> list[float]:
        found = [rows.nth(place).get_attribute(f"data-{key}") for place in range(rows.count())]
        return [float(value) for value in found if value]

    shown.page.locator(f"{head} th[data-by=p]").click()
    assert values("p") == sorted(values("p"))
    shown.page.locator(f"{head} th[data-by=p]").click()
    assert values("p") == sorted(values("p"), reverse=True)
    shown.page.locator(f"{head} th[data-by=change]").press("Enter")
    assert values("change") == sorted(values("change"), reverse=True)
    assert len(values("change")) > 5
