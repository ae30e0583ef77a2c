# SPDX-License-Identifier: Apache-2.0
"""What of the page of `wbscope report` could be cut: ticks of axes, ends of runs, wide tables."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.reportpage import open_report
from support.runs import REPOSITORY, example
from support.waits import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
_CHARTS = "window.wbscopeReport.charts.values()"
_IS_OF_PAGES = "(chart) => chart.panel.unit === 'pages/s'"
_RUN_WITH_SAMPLES = REPOSITORY / "examples/gate/runs/before-2"
_SMALL: Any = {"width": 1280, "height": 800}


def _written(wbscope: Wbscope, file: Path, run: Path) -> Path:
    done = wbscope.run("report", run, "-o", str(file))
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def page(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("axes")
    return _written(wbscope, folder / "page.html", example("four-equal-writers").folder)


def test_ticks_are_short_and_inside_the_figure(browser: Browser, page: Path) -> None:
    with open_report(browser, page) as opened:
        opened.page.evaluate(_OPEN_ALL)
        opened.page.wait_for_function("window.wbscopeReport.charts.size >= 15")
        axes: list[Any] = opened.page.evaluate(
            """() => [...window.wbscopeReport.charts.values()].map((chart) => {
              const [, axis] = chart.plot.axes;
              const { ctx } = chart.plot;
              ctx.save();
              ctx.font = "12px system-ui, sans-serif";
              const widest = Math.max(...axis._values.map((text) => ctx.measureText(text).width));
              ctx.restore();
              const left = axis._size - axis.ticks.size - axis.gap - widest;
              return [chart.panel.unit, chart.panel.high, axis._values, axis._splits, left];
            })"""
        )
        assert opened.errors == []
    sizes = {"KiB": 1 << 10, "MiB": 1 << 20, "ms": 1e6, "s": 1e9, "%": 0.01}
    for unit, high, texts, places, left in axes:
        assert 2 <= len(texts) <= 6, texts
        for text, place in zip(texts, places, strict=True):
            number, _, name = text.partition(" ")
            assert len(number) <= 5, texts
            # What is printed is where it stands.
            assert float(number) * sizes[name.removesuffix("/s") or name] == pytest.approx(place)
        assert places[-1] <= 1.05 * high
        assert left >= 0, (unit, texts)
    assert len(axes) >= 15


def test_wide_ticks_make_the_axis_wider(browser: Browser, wbscope: Wbscope, tmp_path: Path) -> None:
    """Reclaim of up to 900,000 pages/s, made up: cut on the left they would be read as fewer."""
    run = tmp_path / "run"
    shutil.copytree(_RUN_WITH_SAMPLES, run)
    samples = run / "vmstat.samples"
    seen: Counter[str] = Counter()

    def larger(match: re.Match[str]) -> str:
        seen[match[1]] += 1
        return f"{match[1]} {900_000 * seen[match[1]]}"

    named = r"^(pgscan_kswapd|pgsteal_kswapd) \d+$"
    samples.write_text(re.sub(named, larger, samples.read_text(), flags=re.MULTILINE))
    file = _written(wbscope, tmp_path / "wide.html", run)
    with open_report(browser, file, viewport=_SMALL) as shown:
        shown.page.evaluate(_OPEN_ALL)
        shown.page.wait_for_function(f"[...{_CHARTS}].some({_IS_OF_PAGES})")
        axes: list[Any] = shown.page.evaluate(
            f"""() => [...{_CHARTS}].filter({_IS_OF_PAGES}).map((chart) => {{
              const [, axis] = chart.plot.axes;
              const {{ ctx }} = chart.plot;
              ctx.save();
              ctx.font = "12px system-ui, sans-serif";
              const widest = Math.max(...axis._values.map((text) => ctx.measureText(text).width));
              ctx.restore();
              return [axis._values, axis._size - axis.ticks.size - axis.gap - widest];
            }})"""
        )
        assert shown.errors == []
    assert any(len(text) >= len("500000 pages/s") for texts, _ in axes for text in texts), axes
    assert all(left >= 0 for _, left in axes), axes


@pytest.mark.parametrize("events", [1, 2])
def test_times_of_a_very_short_run(
    browser: Browser, wbscope: Wbscope, tmp_path: Path, events: int
) -> None:
    """One event, and two that are 30 us apart: short texts, all of them inside."""
    told = (
        "dd-124 [000] {}: balance_dirty_pages: bdi 254:0: limit=15053 setpoint=13148 dirty=13165"
        " bdi_setpoint=13147 bdi_dirty=13165 dirty_ratelimit=101200 task_ratelimit=101100"
        " dirtied=32 dirtied_pause=32 paused=0 pause=200 period=200 think=0 cgroup_ino=1\n"
    )
    trace = tmp_path / "short.txt"
    trace.write_text("".join(told.format(f"13.3700{30 * n:02d}") for n in range(events)))
    with open_report(
        browser, _written(wbscope, tmp_path / "short.html", trace), viewport=_SMALL
    ) as shown:
        axes: list[Any] = shown.page.evaluate(
            """() => [...window.wbscopeReport.charts.values()].map(({ plot }) =>
              plot.axes[0]._values.map((text, i) => [
                text, plot.valToPos(plot.axes[0]._splits[i], 'x'),
                plot.bbox.width / devicePixelRatio + 12]))"""
        )
        assert len(axes) >= 2
        for axis in axes:
            texts = [text for text, _, _ in axis if text]
            assert texts
            assert all(text.endswith(" ns" if events == 1 else " us") for text in texts)
            assert all(len(text) <= 6 for text in texts), texts
            # A letter of this font is about 6 to 7 pixels wide.
            assert all(at + 3 * len(text) <= end for text, at, end in axis if text), axis
        assert shown.errors == []


def test_figures_end_with_the_run(browser: Browser, wbscope: Wbscope, tmp_path: Path) -> None:
    """What the head says is as long as what is shown, though samples go on for a moment."""
    run = unpack(CORPUS / "7.2-slow-starves-fast", tmp_path)
    with open_report(browser, _written(wbscope, tmp_path / "ends.html", run)) as shown:
        head = shown.page.locator(".run p.small").first.text_content() or ""
        (length,) = re.findall(r"\| (\d+\.\d)\u00a0s \|", head)
        assert shown.state()["to"] / 1e9 == pytest.approx(float(length), abs=0.05)
        assert "\u00a0CPU" in head
        assert "\u00a0events" in head


def test_a_wide_table_shows_that_more_is_beside(browser: Browser, page: Path) -> None:
    with open_report(browser, page, viewport=_SMALL) as shown:
        shown.page.evaluate(_OPEN_ALL)
        wide = shown.page.locator(".scroll").evaluate_all(
            "all => all.flatMap((one, i) => one.scrollWidth > one.clientWidth ? [i] : [])"
        )
        assert wide
        one = shown.page.locator(".scroll").nth(wide[0])
        one.scroll_into_view_if_needed()

        def right_edge() -> bytes:
            box = one.bounding_box()
            assert box is not None
            clip = {"x": box["x"] + box["width"] - 12, "y": box["y"] + 2, "width": 10, "height": 4}
            return shown.page.screenshot(clip=clip)  # type: ignore[arg-type]

        before = right_edge()
        one.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
        wait_until(lambda: right_edge() != before, "the end of the shadow")
