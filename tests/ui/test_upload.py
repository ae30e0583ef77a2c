# SPDX-License-Identifier: Apache-2.0
"""A timeline that somebody else opens: the file alone, in a UI that knows nothing of wbscope.

As "Open trace file" does. What such a UI shows on its first screen has to answer who waited, why,
how long, and whether it was fair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.browser import UiPage, upload_page
from support.cli import Document, Wbscope
from support.runs import example
from support.timeline import verdict_name
from wbscope.viewer.link import find_site
from wbscope.viewer.server import TraceServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Groups of ours on the first screen, from top to bottom: a UI orders them by name.
FIRST_SCREEN = {
    "four-equal-writers": ["Dirty pages", "Fairness", "Stalls", "Writeback"],
    "reclaim-writes": ["Reclaim", "Stalls", "Writeback"],
    "deep": ["Block requests", "Fairness", "Stalls", "Writeback"],
}
TOLD = ("severe", "warning", "ok")
WINDOW_PX = 900


@dataclass(frozen=True)
class Uploaded:
    """A run whose timeline was opened as a file."""

    folder: Path
    ui: UiPage


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the UI, without a trace of ours."""
    none = tmp_path_factory.mktemp("site") / "none"
    none.touch()
    with TraceServer(none, none.name, site=find_site(), port=0) as server:
        yield server.address


@pytest.fixture(scope="module", params=sorted(FIRST_SCREEN))
def uploaded(
    request: pytest.FixtureRequest,
    browser: Browser,
    wbscope: Wbscope,
    address: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Uploaded]:
    folder = example(request.param).folder
    file = tmp_path_factory.mktemp("upload") / f"{folder.name}.pftrace"
    done = wbscope.run("timeline", folder, "-o", file)
    assert done.returncode == 0, done.stderr
    with upload_page(browser, address, file) as ui:
        yield Uploaded(folder, ui)


@pytest.fixture(scope="module")
def verdict(uploaded: Uploaded, wbscope: Wbscope) -> list[Document]:
    """What explain says of the run; the first three, but for those that only give numbers."""
    rows: list[Document] = wbscope.document("explain", uploaded.folder)["rows"]
    return [row for row in rows[:3] if row["severity"] in TOLD]


def test_the_first_screen(
    uploaded: Uploaded,
    verdict: list[Document],
    take_picture: Callable[[UiPage, str], None],
) -> None:
    ui = uploaded.ui
    take_picture(ui, f"upload-{uploaded.folder.name}.png")
    shown = ui.on_screen()
    names = [name for name, _ in shown]
    ours = FIRST_SCREEN[uploaded.folder.name]
    assert [name for name in names if name in ours] == ours
    # Threads that waited come behind, and nothing of ours is open.
    assert names.index("Writeback") < names.index(f"dd {_longest_waiter(ui)}")
    assert not {*ours} & ui.expanded()
    assert max(top for name, top in shown if name in ours) < WINDOW_PX / 2
    # Each finding has its row, so that it can be read: how bad it is, and how sure.
    rows = ui.query(
        "SELECT s.name, s.depth FROM slice AS s JOIN track AS t ON t.id = s.track_id"
        " WHERE t.name = 'Writeback' ORDER BY s.depth"
    )
    told = [row["name"] for row in rows]
    todo = [name for name in told if name.startswith("to do: ")]
    assert [name for name in told if name not in todo] == [verdict_name(row) for row in verdict]
    # Below the first, what to do about it.
    assert todo == told[1:2]
    assert len(todo[0]) > 20
    assert [row["depth"] for row in rows] == list(range(len(told)))


def _longest_waiter(ui: UiPage) -> int:
    (row,) = ui.query(
        "SELECT h.tid FROM slice AS s JOIN thread_track AS t ON t.id = s.track_id"
        " JOIN thread AS h USING (utid) WHERE t.name = 'Writeback stalls' AND h.name = 'dd'"
        " GROUP BY h.tid ORDER BY sum(s.dur) DESC LIMIT 1"
    )
    return int(row["tid"])


def test_closed_groups_draw_data(uploaded: Uploaded) -> None:
    """What makes a UI draw a closed group is a track of its own."""
    drawn = uploaded.ui.page.evaluate(
        "() => self.app.trace.workspace.flatTracks.filter((t) => t.hasChildren && t.uri)"
        ".map((t) => t.name)"
    )
    assert set(FIRST_SCREEN[uploaded.folder.name]) <= set(drawn)


def test_how_many_tasks_are_held(uploaded: Uploaded, wbscope: Wbscope) -> None:
    """As many at most as stalls has at one time, of those that the track counts."""
    (found,) = uploaded.ui.query(
        "SELECT max(c.value) AS most, t.unit FROM counter AS c"
        " JOIN counter_track AS t ON t.id = c.track_id WHERE t.name = 'Stalls'"
    )
    borders = []
    for row in wbscope.sql(
        uploaded.folder,
        "SELECT p.from_ts, p.to_ts FROM wb_wait_piece AS p"
        " JOIN wb_stall AS s ON s.wait_id = p.wait_id WHERE s.kind <> 'block queue'",
    ):
        borders += [(row["from_ts"], 1), (row["to_ts"], -1)]
    held = most = 0
    for _, step in sorted(borders):
        held += step
        most = max(most, held)
    assert (found["most"], found["unit"]) == (most, "tasks")


def test_a_click_on_an_episode(
    uploaded: Uploaded, take_picture: Callable[[UiPage, str], None]
) -> None:
    """It says in words who lost how much time to what, and what to change."""
    ui = uploaded.ui
    ui.page.locator(".pf-track__title-popup", has_text="Writeback").first.locator("..").click()
    ui.idle()
    (episode,) = ui.query(
        "SELECT s.id, s.name FROM slice AS s JOIN track AS t ON t.id = s.track_id"
        " WHERE t.name = 'What to look at'"
        " ORDER BY extract_arg(s.arg_set_id, 'debug.lost_ns') DESC LIMIT 1"
    )
    told = ui.click_slice(episode["id"], "What to look at")
    assert told["Name"] == episode["name"]
    assert " lost " in told["why"]
    assert told["query"].startswith("wbscope query lost_time")
    assert len(told["advice"]) > 20
    if uploaded.folder.name == "four-equal-writers":
        take_picture(ui, "episode.png")
    assert ui.errors == []


def test_nothing_went_wrong(uploaded: Uploaded) -> None:
    assert uploaded.ui.dialogs() == []
    assert uploaded.ui.errors == []
    problems = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
    assert uploaded.ui.query(problems) == []
