# SPDX-License-Identifier: Apache-2.0
"""The catalog's fields against the formats that real kernels have.

A field that a kernel renames is missing here under its name and its aliases, and fails the test.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
from wbscope.ingest.program import CAPTURED, WRITTEN, captured

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
