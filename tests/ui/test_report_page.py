# SPDX-License-Identifier: Apache-2.0
"""The page of `wbscope report -o x.html` in a real browser: keys, print, axe, no network."""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import drawn, shrink
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.reportpage import HOSTILE, OpenedPage, ReadPage, hostile_run, open_report
from support.runs import REPOSITORY, example
from support.tools import missing
from support.waits import wait_until
from wbscope.base.units import format_value

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_RUNS = ("7.2-slow-starves-fast", "7.2-memory-cgroup")
_SCHEMES = ("light", "dark")
_WIDTHS = (360, 1600)
_OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
_KEEP_TEXTS = """(one) => {
  window.shownTexts = [];
  const keep = () => window.shownTexts.push(one.textContent);
  new MutationObserver(keep).observe(one, {childList: true, characterData: true, subtree: true});
}"""
_PLOT = ".canvas .u-over"
_STALLS = "section:has(> #table-longest)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Path]:
    return [unpack(CORPUS / name, folder) for name in _RUNS]


def _written(wbscope: Wbscope, file: Path, *words: str | Path) -> Path:
    done = wbscope.run("report", *words, "-o", str(file))
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def single(wbscope: Wbscope, folder: Path) -> Path:
    return _written(wbscope, folder / "single.html", example("four-equal-writers").folder)


@pytest.fixture(scope="module")
def several(wbscope: Wbscope, folder: Path, runs: list[Path]) -> Path:
    return _written(wbscope, folder / "several.html", *runs)


@pytest.fixture
def opened(browser: Browser, single: Path) -> Iterator[OpenedPage]:
    with open_report(browser, single) as shown:
        yield shown
        assert shown.errors == []


def _axe(shown: OpenedPage) -> list[str]:
    """What breaks the rules of axe-core, in short."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("the Python package axe-playwright-python is not installed; run make setup")
    # As a program's own text and not as an element: the page's policy lets no other script run.
    found: Any = Axe().run(shown.page, options={"resultTypes": ["violations"]})
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}"
        for one in found.response["violations"]
    ]


@pytest.mark.parametrize("scheme", _SCHEMES)
@pytest.mark.parametrize("name", ["single", "several"])
def test_axe_finds_nothing(
    browser: Browser, request: pytest.FixtureRequest, name: str, scheme: Any
) -> None:
    file: Path = request.getfixturevalue(name)
    with open_report(browser, file, color_scheme=scheme, bypass_csp=True) as shown:
        assert _axe(shown) == []
        shown.page.evaluate(_OPEN_ALL)
        drawn(shown.page)
        assert _axe(shown) == []
        assert shown.errors == []


@pytest.mark.parametrize("width", _WIDTHS)
@pytest.mark.parametrize("name", ["single", "several"])
def test_the_page_fits_its_window(
    browser: Browser, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    with open_report(browser, request.getfixturevalue(name), viewport=size) as shown:
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        plots = shown.page.locator(".canvas canvas")
        assert plots.count() >= 6
        for plot in plots.all()[:3]:
            box = plot.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert shown.errors == []


@pytest.mark.core
def test_figures_share_cursor_and_zoom_by_keys(opened: OpenedPage) -> None:
    page = opened.page
    whole = opened.state()
    assert whole["at"] is None
    page.locator(".canvas").first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    length = whole["to"] - whole["from"]
    assert opened.state()["at"] == pytest.approx(whole["from"] + 0.11 * length)
    told = page.locator("#now").inner_text()
    assert told == f"at {format_value('ts', 'ns', round(opened.state()['at']))}"
    # Each figure has its cursor there.
    lefts = page.evaluate(
        "() => [...window.wbscopeReport.charts.values()].map((c) =>"
        " c.plot.posToVal(c.plot.cursor.left, 'x'))"
    )
    assert lefts == pytest.approx([opened.state()["at"]] * len(lefts), rel=0.01)
    assert "dirty, mean" in page.locator("[role=status]").inner_text()
    page.keyboard.press("+")
    page.keyboard.press("+")
    near = opened.state()
    assert near["to"] - near["from"] == pytest.approx(length / 4)
    assert near["from"] <= near["at"] <= near["to"]
    assert near["axes"] == [[near["from"], near["to"]]] * len(near["axes"])
    page.keyboard.press("-")
    assert opened.state()["to"] - opened.state()["from"] == pytest.approx(length / 2)
    page.keyboard.press("0")
    assert (opened.state()["from"], opened.state()["to"]) == (whole["from"], whole["to"])
    page.keyboard.press("Escape")
    assert opened.state()["at"] is None


def test_a_drag_zooms_all_figures_and_a_double_click_resets(opened: OpenedPage) -> None:
    page = opened.page
    plot = page.locator(_PLOT).first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=5)
    page.mouse.up()
    wait_until(lambda: opened.state()["from"] != 0, "the part of the time")
    drawn(page)
    state = opened.state()
    assert state["from"] == pytest.approx(0.25 * 17.474e9, rel=0.03)
    assert state["to"] == pytest.approx(0.5 * 17.474e9, rel=0.03)
    assert state["axes"] == [[state["from"], state["to"]]] * len(state["axes"])
    plot.dblclick()
    wait_until(lambda: opened.state()["from"] == 0, "all of the time")
    page.get_by_role("button", name="zoom in").click()
    assert opened.state()["to"] - opened.state()["from"] == pytest.approx(17.474e9 / 2, rel=0.01)
    page.get_by_role("button", name="later").click()
    assert opened.state()["to"] == pytest.approx(17.474e9, rel=0.01)
    page.get_by_role("button", name="show all").click()
    assert opened.state()["from"] == 0


def test_the_pointer_tells_the_values_of_every_figure(opened: OpenedPage) -> None:
    page = opened.page
    plot = page.locator(_PLOT).first
    plot.scroll_into_view_if_needed()
    plot.hover()
    values = page.locator(".plot").nth(1).locator(".value").all_inner_texts()
    assert values[0].endswith("MiB")
    assert page.locator("#now").inner_text().startswith("at 8.")


def test_a_curve_hides_and_comes_back(opened: OpenedPage) -> None:
    page = opened.page
    button = page.locator(".legend button").first
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"


def test_tables_sort_by_keys_and_by_numbers(opened: OpenedPage) -> None:
    page = opened.page
    section = page.locator(_STALLS)
    head = section.locator("th", has_text="dur").first
    place = head.evaluate("(th) => th.cellIndex")

    def raw() -> list[float]:
        cells = section.locator(f"tbody tr td:nth-child({place + 1})")
        return [float(v) for v in cells.evaluate_all("(all) => all.map((c) => c.dataset.v)")]

    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert raw() == sorted(raw(), reverse=True)
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    assert raw() == sorted(raw())
    # Words by the alphabet; what was not recorded comes last, both ways.
    other = section.locator("th", has_text="finding")
    other.locator("button").click()
    assert other.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") is None
    place = other.evaluate("(th) => th.cellIndex")
    names = section.locator(f"tbody tr td:nth-child({place + 1})").all_inner_texts()
    known = [name for name in names if name != "-"]
    assert known == sorted(known)
    assert names == known + ["-"] * (len(names) - len(known))


def test_a_filter_leaves_the_rows_that_have_its_text(opened: OpenedPage) -> None:
    section = opened.page.locator(_STALLS)
    section.get_by_role("searchbox").fill("JBD2")
    rows = section.locator("tbody tr:visible")
    assert 0 < rows.count() < section.locator("tbody tr").count()
    assert all("jbd2" in text for text in rows.all_inner_texts())
    assert section.locator("output").inner_text() == f"{rows.count()} of 50 rows"
    section.get_by_role("searchbox").fill("")
    assert section.locator("tbody tr:visible").count() == 50


def test_a_command_is_copied(browser: Browser, single: Path, wbscope: Wbscope) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with open_report(browser, single, permissions=permissions) as shown:
        page = shown.page
        button = page.locator(f"{_STALLS} .copy").first
        button.evaluate(_KEEP_TEXTS)
        button.click()
        # For a moment only: a look may come too late.
        page.wait_for_function("() => window.shownTexts.includes('copied')")
        told = page.evaluate("navigator.clipboard.readText()")
        assert told == button.get_attribute("data-copy")
        assert told.startswith("wbscope open ")
        assert " --at 12.8" in told
        assert shown.errors == []


def test_a_finding_marks_its_time(opened: OpenedPage) -> None:
    page = opened.page
    buttons = page.locator(".mark")
    shot = page.locator(".canvas").first

    def picture() -> bytes:
        page.mouse.move(0, 0)
        drawn(page)
        return shot.screenshot()

    shot.scroll_into_view_if_needed()
    before = picture()
    buttons.nth(1).click()
    assert buttons.nth(1).get_attribute("aria-pressed") == "true"
    shot.scroll_into_view_if_needed()
    assert picture() != before
    buttons.nth(0).click()
    assert buttons.nth(1).get_attribute("aria-pressed") == "false"
    buttons.nth(0).click()
    shot.scroll_into_view_if_needed()
    assert picture() == before


def test_what_is_drawn_is_saved_as_numbers(opened: OpenedPage, single: Path) -> None:
    page = opened.page
    plot = page.locator(".plot").first
    plot.locator("summary").click()
    with page.expect_download() as download:
        plot.locator(".csv").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "global_dirty_state-plot0.csv"
    head, *rows = csv.reader(io.StringIO(text))
    assert head[:2] == ["time_ns", "dirty, mean [bytes]"]
    assert head[-2:] == ["control range [bytes] lowest", "control range [bytes] highest"]
    told = ReadPage(single.read_text(encoding="utf-8")).data["plots"]["plot0"]
    wanted = [y for y in told["series"][0]["y"] if y is not None]
    assert [float(row[1]) for row in rows if row[1]] == wanted


def test_numbers_are_written_as_elsewhere(opened: OpenedPage) -> None:
    values: list[tuple[str, float]] = []
    for unit, numbers in (
        ("bytes", [0, 1, 1023, 1024, 10_239, 10_485_755, 59.6e6, 3.2e15, -4096, 1048063.9]),
        ("bytes/s", [0, 20e6, 1234.5]),
        ("ns", [0, 1, 999, 1000, 999_400, 999_600, 1e9, 9.99e9, 123e9, 4e12, -20e6]),
        ("ratio", [0, 0.681, 1, 1.2345]),
        ("count", [0, 3, 12_345_678]),
        ("pages/s", [0, 3, 0.333333333]),
    ):
        values += [(unit, number) for number in numbers]
    shown = opened.page.evaluate(
        "(values) => values.map(([unit, v]) => window.wbscopeReport.formatValue(unit, v))", values
    )
    assert shown == [format_value("", unit, value) for unit, value in values]


def test_dark_and_light(browser: Browser, single: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    for scheme, color, other in (("light", 255, "Dark"), ("dark", 22, "Light")):
        with open_report(browser, single, color_scheme=scheme) as shown:
            assert f"({color}," in shown.page.evaluate(background)
            toggle = shown.page.get_by_role("button", name=other, exact=True)
            toggle.click()
            assert f"({color}," not in shown.page.evaluate(background)
            assert shown.page.locator("#theme").inner_text() == scheme.capitalize()
            assert shown.errors == []


def test_on_paper_all_is_open_and_light(browser: Browser, single: Path) -> None:
    with open_report(browser, single, color_scheme="dark") as shown:
        page = shown.page
        before = page.locator("details[open]").count()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator("details:not([open])").count() == 0
        assert page.locator(".canvas:not(:has(canvas))").count() == 0
        assert "255, 255, 255" in page.evaluate("getComputedStyle(document.body).backgroundColor")
        for gone in (".bar", "nav", "#theme", ".copy", ".tools"):
            assert page.locator(f"{gone}:visible").count() == 0, gone
        assert page.locator(".legend:visible").count() == page.locator(".canvas").count()
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == before
        assert "(22," in page.evaluate("getComputedStyle(document.body).backgroundColor")
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert printed.count(b"/Type /Page\n") > 5
        assert page.locator("details[open]").count() == before
        assert shown.errors == []


@pytest.mark.core
def test_without_a_script_it_can_be_read(browser: Browser, single: Path) -> None:
    with open_report(browser, single, java_script_enabled=False) as shown:
        page = shown.page
        assert page.get_by_text("A device is slower than its writers", exact=True).is_visible()
        assert page.get_by_text("The figures are drawn by a script.").is_visible()
        assert page.locator(_STALLS).locator("tbody tr").count() == 50
        assert page.get_by_text("6.1.0-56-cloud-amd64").last.is_visible()
        assert page.locator("button:visible").count() == 0
        page.locator(".plot summary").first.click()
        row = page.locator(".plot table tr").nth(1)
        assert row.is_visible()
        assert row.inner_text().startswith("dirty, mean")
        assert shown.errors == []


def test_several_runs_have_one_time_axis(browser: Browser, several: Path) -> None:
    with open_report(browser, several) as shown:
        page = shown.page
        columns = [page.locator(".run").nth(i).bounding_box() for i in range(2)]
        assert columns[0] is not None
        assert columns[1] is not None
        assert columns[0]["y"] == columns[1]["y"]
        state = shown.state()
        assert state["axes"] == [[state["from"], state["to"]]] * len(state["axes"])
        names = page.locator(".plot h4 .soft").all_inner_texts()
        assert names[:2] == list(_RUNS)
        page.set_viewport_size({"width": 360, "height": 800})
        columns = [page.locator(".run").nth(i).bounding_box() for i in range(2)]
        assert columns[0] is not None
        assert columns[1] is not None
        assert columns[0]["x"] == columns[1]["x"]
        assert shown.errors == []


def test_strange_names_do_nothing(
    browser: Browser, wbscope: Wbscope, folder: Path, runs: list[Path]
) -> None:
    database = folder / "hostile.db"
    assert wbscope.run("ingest", runs[0], "-o", database).returncode == 0
    hostile_run(database)
    file = _written(wbscope, folder / "hostile.html", database)
    with open_report(browser, file) as shown:
        page = shown.page
        assert page.locator("img").count() == 0
        assert page.get_by_text(HOSTILE[0]).count() > 0
        legend = page.locator(".legend").all_inner_texts()
        assert any(HOSTILE[0] in text for text in legend)
        page.evaluate(_OPEN_ALL)
        heads = []
        for button in page.locator(".csv").all()[:8]:  # chromium holds back the eleventh
            with page.expect_download() as download:
                button.click()
            heads += next(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
        assert any(HOSTILE[0] in name for name in heads)
        assert not [name for name in heads if name[0] in "=+-@"]
        assert shown.errors == []


def test_picture(browser: Browser, wbscope: Wbscope, folder: Path, request: Any) -> None:
    """For the documentation: the first screen and the figures, with a finding marked."""
    update = request.config.getoption("--update-pictures")
    target = (REPOSITORY / "docs" if update else folder) / "report.png"
    run = Path("examples/four-equal-writers")
    done = wbscope.run("report", run, "-o", str(folder / "docs.html"), cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    size = {"width": 1400, "height": 1050}
    with open_report(browser, folder / "docs.html", viewport=size) as shown:
        page = shown.page
        page.locator(".mark").nth(1).click()
        page.locator("#figures").evaluate("(one) => one.scrollIntoView()")
        plot = page.locator(_PLOT).first
        plot.hover()
        drawn(page)
        page.screenshot(path=target)
        assert shown.errors == []
    data = target.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1400, 1050)
    assert 30_000 < len(data) < 300_000
    if update:
        shrink(target)
