# SPDX-License-Identifier: Apache-2.0
"""The catalog against real kernels' formats, and the profiles that record by it."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import EvidenceError, SetupError
from wbscope.ingest.program import CAPTURED, WRITTEN, captured
from wbscope.library.catalog import (
    Profile,
    event_options,
    pattern_options,
    profile_of,
    read_profiles,
)
from wbscope.library.database import Recorded
from wbscope.library.finding import require_events
from wbscope.library.library import load_library

# The catalog's fields against the formats that real kernels have.
#
# A field that a kernel renames is missing here under its name and its aliases, and fails the test.

_ROOT = Path(__file__).parents[2]
_FIELD = re.compile(r"^\tfield:[^;]*?(\w+)(?:\[[^]]*\])?;", re.MULTILINE)
# Fields of each event of each kernel; of those that were written by hand, in the second.
_CAPTURED, _WRITTEN = (
    {(f.kernel, f.event): set(_FIELD.findall(f.text)) for f in captured(part)}
    for part in (CAPTURED, WRITTEN)
)
_KERNELS = sorted({kernel for kernel, _ in _CAPTURED})
Release = tuple[int, int]


@dataclass(frozen=True)
class Absent:
    """Fields that kernels before `before`, or from `since` on, do not record."""

    events: str
    fields: tuple[str, ...]
    reason: str
    before: Release = (0, 0)
    since: Release = (9999, 0)

    def covers(self, event: str, release: Release) -> bool:
        return fnmatchcase(event, self.events) and (release < self.before or release >= self.since)


# A release marked "by" is the first captured one that has the field.
_ABSENT = (
    Absent(
        "writeback:*",
        ("cgroup_ino",),
        "4.4 records a path, older kernels nothing; the inode came later, about 4.6",
        before=(4, 6),
    ),
    Absent(
        "writeback:balance_dirty_pages",
        ("goal",),
        "of patches of 2011 that no released kernel has",
        since=(0, 0),
    ),
    Absent(
        "writeback:*",
        ("cgroup_path",),
        "added in 4.3",
        before=(4, 3),
    ),
    Absent(
        "writeback:*",
        ("cgroup_path",),
        "the inode since about 4.6",
        since=(4, 6),
    ),
    Absent(
        "writeback:global_dirty_state",
        ("nr_unstable",),
        "5.8 counts unstable NFS pages as writeback",
        since=(5, 8),
    ),
    Absent(
        "vmscan:mm_vmscan_write_folio",
        ("pfn",),
        "by 4.4; before, the address of the struct page",
        before=(4, 4),
    ),
    Absent("vmscan:mm_vmscan_kswapd_wake", ("zid",), "added in 4.8", before=(4, 8)),
    Absent("vmscan:mm_vmscan_wakeup_kswapd", ("gfp_flags",), "added in 4.17", before=(4, 17)),
    Absent(
        "vmscan:mm_vmscan_lru_isolate",
        ("nr_skipped", "lru"),
        "added in 4.11; before, `file` says half of what lru says",
        before=(4, 11),
    ),
    Absent(
        "vmscan:mm_vmscan_lru_shrink_inactive",
        ("nr_dirty", "nr_writeback", "nr_congested", "nr_immediate"),
        "added in 4.11",
        before=(4, 11),
    ),
    Absent("vmscan:mm_shrink_slab_*", ("nid",), "by 4.4", before=(4, 4)),
    Absent("jbd2:jbd2_run_stats", ("request_delay",), "by 3.10", before=(3, 10)),
    Absent(
        "syscalls:sys_enter_sync",
        ("fd",),
        "sync() takes no argument; the catalog gives one list to all calls that flush",
        since=(0, 0),
    ),
    Absent(
        "syscalls:sys_enter_msync",
        ("fd",),
        "msync() takes an address; the catalog gives one list to all calls that flush",
        since=(0, 0),
    ),
)


@dataclass(frozen=True)
class CatalogEvent:
    """Names of one event, and of each of its fields, the newest first."""

    names: tuple[str, ...]
    fields: tuple[tuple[str, ...], ...]


def _catalog_event(names: list[str], fields: list[str]) -> CatalogEvent:
    """Each field is "name unit < alias < alias"."""
    return CatalogEvent(
        tuple(names),
        tuple(tuple(part.split()[0] for part in field.split("<")) for field in fields),
    )


@cache
def _catalog() -> list[CatalogEvent]:
    catalog = tomllib.loads((_ROOT / "sql" / "catalog" / "events.toml").read_text())
    events = [
        _catalog_event([event["name"], *event.get("aliases", [])], event["fields"])
        for event in catalog["event"]
    ]
    for group in catalog["syscalls"]:
        for side in ("enter", "exit"):
            events += [
                _catalog_event([f"syscalls:sys_{side}_{call}"], group[f"{side}_fields"])
                for call in group["names"]
            ]
    return events


def _recorded_fields(kernel: str, event: str) -> set[str] | None:
    """The fields of the event in that kernel; None when it has no such event."""
    return _CAPTURED.get((kernel, event))


def _release(kernel: str) -> Release:
    major, minor = kernel.split(".")[:2]
    return int(major), int(minor)


@pytest.mark.parametrize("kernel", _KERNELS)
def test_fields_have_a_name_of_the_catalog(kernel: str) -> None:
    """The fields that are missing are exactly those that the kernel is known not to record."""
    for event in _catalog():
        for name in event.names:
            recorded = _recorded_fields(kernel, name)
            if recorded is None:
                continue
            missing = {names[0] for names in event.fields if recorded.isdisjoint(names)}
            known = {
                field
                for absent in _ABSENT
                if absent.covers(event.names[0], _release(kernel))
                for field in absent.fields
                if any(names[0] == field for names in event.fields)
            }
            assert missing == known, f"{kernel} {name} records {sorted(recorded)}"


def test_every_event_was_captured_somewhere() -> None:
    """An event whose name is misspelt in the catalog is in no kernel and in no text."""
    for event in _catalog():
        assert any(name in event.names for _, name in [*_CAPTURED, *_WRITTEN]), event.names[0]


def test_events_of_text_have_the_fields_of_the_catalog() -> None:
    """Events that were never merged are known by formats that were written by hand."""
    for event in _catalog():
        told = [fields for (_, name), fields in _WRITTEN.items() if name in event.names]
        if not told or any(_recorded_fields(k, n) for k in _KERNELS for n in event.names):
            continue
        for names in event.fields:
            assert any(not fields.isdisjoint(names) for fields in told), (event.names[0], names)


def test_every_exception_is_needed() -> None:
    """An exception that no captured kernel calls for says nothing that was seen."""
    for absent in _ABSENT:
        assert any(
            absent.covers(event.names[0], _release(kernel))
            and any(_recorded_fields(kernel, name) is not None for name in event.names)
            for kernel in _KERNELS
            for event in _catalog()
        ), absent


# Record profiles: they have every event that the queries read, and options trace-cmd can use.

_SQL = REPOSITORY / "sql"
_LIBRARY = load_library(_SQL)
_CATALOG = tomllib.loads((_SQL / "catalog" / "events.toml").read_text())
# Kernels of which all formats of two systems are there; of others, what one run enabled.
_CAPTURED_SYSTEMS = ("writeback", "vmscan")
_EVENTS: dict[str, list[str]] = {}
for _format in captured():
    _EVENTS.setdefault(_format.kernel, []).append(_format.event)
_RECORDED_KERNELS = [
    recorded_kernel
    for recorded_kernel, events in _EVENTS.items()
    if "writeback:wbc_writepage" in events
]


def _recordable() -> set[str]:
    """Events of the catalog that a kernel, ours too, fires and ingest loads without being asked."""
    events = {
        entry["name"]
        for entry in _CATALOG["event"]
        if re.match(r"\d|no release", entry["since"]) and entry.get("profile", True)
    }
    for group in _CATALOG["syscalls"]:
        for call in group["names"]:
            events |= {f"syscalls:sys_enter_{call}", f"syscalls:sys_exit_{call}"}
    return events


def test_each_profile_has_all_of_those_that_it_names() -> None:
    profiles = {profile.name: profile for profile in _LIBRARY.profiles}
    assert list(profiles) == ["writeback", "stalls", "reclaim", "deep"]
    small, stalls, reclaim, large = (profile.names for profile in profiles.values())
    assert small < stalls < large
    assert small < reclaim < large
    # Where every switch is recorded, nothing else has to tell who was blocked.
    assert [name for name, one in profiles.items() if one.has_blocked] == ["stalls"]


def test_the_largest_has_every_event_that_can_be_recorded() -> None:
    newest = {names[0] for names in _LIBRARY.profiles[-1].events}
    # One for each page that is dirtied: read where somebody asked for it.
    too_many = {"writeback:writeback_dirty_folio"}
    assert newest | {*_LIBRARY.profiles[-1].probes} | too_many == _recordable()


def test_probes_are_of_every_profile_and_in_no_option() -> None:
    """trace-cmd and the script for other machines ask for events that a kernel has by itself."""
    for profile in _LIBRARY.profiles:
        assert {*profile.probes} >= {*_LIBRARY.profiles[0].probes}
        assert {name.partition(":")[0] for name in profile.probes} == {"wbscope"}
        assert not {name for names in profile.events for name in names} & {*profile.probes}
        assert not [option for option in profile.options if "wbscope" in option]


def test_older_names_are_those_of_the_catalog() -> None:
    aliases = {entry["name"]: entry.get("aliases", []) for entry in _CATALOG["event"]}
    for names in _LIBRARY.profiles[-1].events:
        assert list(names[1:]) == aliases.get(names[0], []), names[0]


def test_every_query_has_a_profile_but_for_events_of_patches() -> None:
    without = [
        query.name
        for query in _LIBRARY.queries()
        if profile_of(query.events, _LIBRARY.profiles) is None
    ]
    assert without == ["completion_waits"]


@pytest.mark.parametrize(
    ("query", "profile"),
    [
        ("throttle_by_task", "writeback"),
        ("writeback_work", "writeback"),
        ("reclaim_writes", "reclaim"),
        ("block_latency", "stalls"),
        ("copy_and_sync", "stalls"),
        ("run_queue", "deep"),
    ],
)
def test_the_smallest_profile_is_named(query: str, profile: str) -> None:
    found = profile_of(_LIBRARY.query(query).events, _LIBRARY.profiles)
    assert found is not None
    assert found.name == profile


@pytest.mark.parametrize("kernel", _RECORDED_KERNELS)
def test_every_option_finds_an_event_on_every_kernel(kernel: str) -> None:
    events = _EVENTS[kernel]
    tried = 0
    for option in _LIBRARY.profiles[-1].options:
        dash, pattern = shlex.split(option)
        assert dash == "-e"
        system, _, name = pattern.partition(":")
        if system in _CAPTURED_SYSTEMS:
            tried += 1
            wanted = pattern if name else f"{system}:*"
            assert any(fnmatchcase(event, wanted) for event in events), pattern
    assert tried > 5


def test_there_are_old_and_new_kernels_to_try() -> None:
    assert {kernel.split(".")[0] for kernel in _RECORDED_KERNELS} >= {"3", "4", "5", "6"}


def test_every_event_is_asked_for_by_an_option() -> None:
    for profile in _LIBRARY.profiles:
        options = [*profile.options, *profile.file_systems]
        words = [word for option in options for word in shlex.split(option)]
        patterns = [
            after if ":" in after else f"{after}:*"
            for before, after in pairwise(words)
            if before == "-e"
        ]
        for names in profile.events:
            assert any(fnmatchcase(names[0], pattern) for pattern in patterns), names[0]


_PROFILES = (
    Profile("small", "", (("a:one",), ("a:do_new_thing", "a:do_new_work")), ("-e a",), ()),
    Profile("large", "", (("a:one",), ("b:two", "b:2")), ("-e a", "-e b"), ()),
)


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        ([("a:one",)], "-e a:one"),
        ([("x:unknown", "a:one")], "-e a:one"),
        ([("a:do_new_work",)], "-e 'a:do_new_*'"),
        ([("b:2",)], "-e b:two"),
        ([("x:unknown",)], "-e x:unknown"),
        ([("a:one",), ("a:one", "b:two")], "-e a:one"),
    ],
)
def test_options_for_events(groups: list[tuple[str, ...]], options: str) -> None:
    assert event_options(groups, _PROFILES) == options


def test_a_question_with_many_sources_asks_for_all_of_them() -> None:
    recorded = Recorded({}, {}, {})
    with pytest.raises(EvidenceError) as caught:
        require_events(_LIBRARY.query("copy_and_sync"), recorded, "run.db", _LIBRARY.profiles)
    command = shlex.split(caught.value.fix or "")
    assert command[:2] == ["trace-cmd", "record"]
    patterns = [after for before, after in pairwise(command) if before == "-e"]
    for call in ("write", "pwritev2", "fsync", "syncfs", "copy_file_range", "sendfile64"):
        for side in ("enter", "exit"):
            event = f"syscalls:sys_{side}_{call}"
            assert any(fnmatchcase(event, pattern) for pattern in patterns), event
    assert {"sched:sched_process_exit", "writeback:*_dirty_state"} < set(patterns)
    assert "sched:sched_switch" not in patterns


def test_a_catalog_without_profiles_has_none(tmp_path: Path) -> None:
    assert read_profiles(tmp_path / "profiles.toml") == ()


@pytest.mark.parametrize("text", ["[[profile]]\nname = 1\n", "not toml", "[other]\n"])
def test_a_broken_list_of_profiles_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "profiles.toml"
    path.write_text(text)
    with pytest.raises(SetupError) as caught:
        read_profiles(path)
    assert caught.value.slug == "broken-sql-library"


def test_events_of_file_systems_only_are_asked_for_by_their_options() -> None:
    """Of one file system: trace-cmd would refuse those of the others."""
    query = _LIBRARY.query("server_latency")
    events = [name for group in query.events for name in group]
    words = shlex.split(pattern_options(_LIBRARY.profiles[-1], events))
    assert words == ["-e", "nfs:nfs_initiate_*"]
    assert pattern_options(_LIBRARY.profiles[-1], ["fuse:fuse_request_end"]) == "-e fuse"
