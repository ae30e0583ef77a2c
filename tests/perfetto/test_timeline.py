# SPDX-License-Identifier: Apache-2.0
"""The exported timeline in the real Perfetto trace processor equals the rows of the database."""

from __future__ import annotations

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.timeline import (
    ROOT,
    TrackInfo,
    curves_of,
    difference_of_curves,
    drawn_path,
    engine_counters,
    engine_slices,
    engine_tracks,
    packets,
    places_of_groups,
)

from .conftest import Exported

COMPARED = {
    "Dirty pages": {"dirty + writeback", "limit", "setpoint", "thresh", "bg_thresh", "freerun"},
    "Bandwidth": {"write_bw", "avg_write_bw", "dirty_rate", "dirty_ratelimit", "task_ratelimit"},
    "Dirtied and written": {"dirtied since start", "written since start"},
}
PERCENT = {"setpoint of limit", "freerun of limit", "bg_thresh of limit"}
# A small curve on the axis of a large one would be a line at 0.
APART = {
    "Throttled tasks": {"pause", "paused", "dirtied"},
    "Dirtied and written": {"dirtied since start", "dirtied - written"},
}
UNITS = {"%", "MiB", "MiB/s", "ms", "tasks", "requests", "pages", "folios", "folios/s"}


@pytest.fixture(scope="module")
def tracks(exported: Exported) -> list[TrackInfo]:
    return engine_tracks(exported.engine)


def test_the_engine_has_nothing_to_complain_of(exported: Exported) -> None:
    rows = exported.engine.query(
        "SELECT name, severity, value FROM stats "
        "WHERE severity IN ('error', 'data_loss') AND value > 0"
    )
    assert rows == []


def test_slices_equal_the_rows(exported: Exported) -> None:
    assert exported.wanted.slices, "the views have no slice"
    assert engine_slices(exported.engine) == exported.wanted.slices


def test_counters_equal_the_rows(exported: Exported) -> None:
    wanted = exported.wanted
    assert wanted.curves, "the views have no counter"
    found = curves_of(engine_counters(exported.engine))
    assert difference_of_curves(found, wanted.curves, wanted.step_ns) == ""
    if exported.run.folder.name == "reclaim-writes":
        longest = max(wanted.curves, key=lambda track: len(wanted.curves[track]))
        assert len(found[longest]) < len(wanted.curves[longest]), "no counter was thinned out"


def test_counters_have_units_for_people(exported: Exported) -> None:
    assert {point.unit for points in exported.wanted.curves.values() for point in points} <= UNITS


def test_counters_are_somewhere_above_0(exported: Exported) -> None:
    """Or below. The others are left out, and there are some."""
    highest = exported.engine.query(
        "SELECT track_id, max(abs(value)) AS most FROM counter GROUP BY track_id"
    )
    assert highest
    assert all(row["most"] for row in highest)


def test_groups_that_answer_stand_beside_that_of_all(
    exported: Exported, tracks: list[TrackInfo]
) -> None:
    """The UI shows those, and that of all closed: it draws its verdict all the same."""
    tops = {track.name for track in tracks if not track.parent}
    drawn = {track.path.split("/")[0] for track in tracks}
    places = exported.wanted.places
    assert tops == {
        name for name in (*places, ROOT) if places.get(name, True) and name in drawn
    } | {"Writeback stalls"}
    # Tracks of threads have no parent in the engine: they belong to a thread.
    threads = exported.engine.query(
        "SELECT DISTINCT t.name FROM track AS t JOIN thread_track AS h USING (id) "
        "WHERE t.name IS NOT NULL"
    )
    assert threads == [{"name": "Writeback stalls"}]


def test_groups_that_answer_draw_it_themselves(exported: Exported) -> None:
    """Not only the tracks in them."""
    drawn = {slice_.track for slice_ in exported.wanted.slices} | exported.wanted.curves.keys()
    assert ROOT in drawn
    for group in ("Stalls", "Dirty pages", "Reclaim", "Block requests"):
        path = drawn_path(f"{ROOT}/{group}", _tops(exported))
        below = {track for track in drawn if track.startswith(f"{path}/")}
        assert path in drawn or not below, group


def _tops(exported: Exported) -> set[str]:
    return {name for name, is_top in exported.wanted.places.items() if is_top}


def test_the_run_says_which_groups_come_first(exported: Exported, wbscope: Wbscope) -> None:
    """What its tasks waited for longest, by the answer of stalls_by_task."""
    waited = {"Dirty pages": 0, "Reclaim": 0, "Block requests": 0}
    reclaim = ("direct reclaim", "memcg reclaim", "reclaim throttle")
    for row in wbscope.query("stalls_by_task", exported.database):
        if row["kind"] != "block queue":
            subject = "Reclaim" if row["kind"] in reclaim else "Block requests"
            waited["Dirty pages" if row["kind"] == "throttle" else subject] += row["total_ns"]
    first = max(waited, key=lambda group: waited[group])
    assert list(exported.wanted.places)[:3] == ["What to look at", "Stalls", first]
    tops = _tops(exported)
    assert {"Stalls", first} <= tops
    # The UI orders them by name: Fairness would hide reclaim.
    assert ("Fairness" in tops) == (first != "Reclaim")


def test_groups_are_in_order(exported: Exported, tracks: list[TrackInfo]) -> None:
    """Those of the run, then those that the headers state, whatever came first."""
    headers = places_of_groups(REPOSITORY / "sql")
    places = list(exported.wanted.places)
    rest = sorted((name for name in headers if name not in places), key=lambda name: headers[name])
    ranks = {t.name: t.facts["sibling_order_rank"] for t in tracks if t.parent == ROOT}
    found = sorted(ranks, key=lambda name: ranks[name])
    assert found == [name for name in (*places, *rest) if name in found]
    assert len(set(ranks.values())) == len(ranks)
    assert found[0] == "What to look at"


def test_every_track_says_what_it_is(tracks: list[TrackInfo]) -> None:
    for track in tracks:
        assert track.facts.get("description"), track
        if "counter" not in track.type:
            assert track.facts["child_ordering"] == "explicit", track


def test_curves_that_are_compared_share_an_axis(
    exported: Exported, tracks: list[TrackInfo]
) -> None:
    axes: dict[tuple[str, str], str] = {}
    for track in tracks:
        if "counter" in track.type:
            path = track.path.removeprefix(f"{ROOT}/")
            axes[path.split("/")[0], track.name] = str(track.facts.get("y_axis_share_key"))
    for group, names in (*COMPARED.items(), ("Dirty pages", PERCENT)):
        found = {axis for (g, name), axis in axes.items() if g == group and name in names}
        assert len(found) == int(any(g == group for g, _ in axes)), (group, axes)
        assert "None" not in found
    for group, names in APART.items():
        own = [axis for (g, name), axis in axes.items() if g == group and name in names]
        assert len(set(own) - {"None"}) == len([axis for axis in own if axis != "None"])


def test_siblings_of_equal_name_are_not_merged(exported: Exported) -> None:
    """Only the lanes of one track are: they have its key."""
    keys: dict[tuple[int, str], set[int]] = {}
    for packet in packets(exported.file):
        if not packet.HasField("track_descriptor"):
            continue
        track = packet.track_descriptor
        if track.HasField("thread") or track.HasField("process"):
            continue
        assert track.sibling_merge_behavior in (track.SIBLING_MERGE_BEHAVIOR_NONE, 3)
        if track.sibling_merge_behavior == 3:
            keys.setdefault((track.parent_uuid, track.name), set()).add(track.sibling_merge_key_int)
    assert keys
    assert {len(found) for found in keys.values()} == {1}


def test_threads_have_their_names(exported: Exported, wbscope: Wbscope) -> None:
    named = {
        row["tid"]: row["comm"] for row in wbscope.sql(exported.database, "SELECT * FROM wb_thread")
    }
    rows = exported.engine.query(
        "SELECT tid, name FROM thread WHERE utid IN "
        "(SELECT utid FROM thread_track WHERE name IS NOT NULL)"
    )
    assert rows
    assert {row["tid"]: row["name"] for row in rows} == {
        row["tid"]: named[row["tid"]] for row in rows
    }
    waited = {row.tid for row in exported.wanted.slices if row.tid}
    assert {row["tid"] for row in rows} == waited


def test_the_clock_is_declared(exported: Exported) -> None:
    """The file says what its times are: a clock snapshot, and a clock for the packets."""
    declared, used, primary = set(), set(), set()
    for packet in packets(exported.file):
        if packet.HasField("clock_snapshot"):
            declared |= {clock.clock_id for clock in packet.clock_snapshot.clocks}
            primary |= {packet.clock_snapshot.primary_trace_clock}
        used |= {packet.timestamp_clock_id, packet.trace_packet_defaults.timestamp_clock_id}
    assert declared
    assert (used | primary) - {0} <= declared
