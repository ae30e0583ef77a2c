# SPDX-License-Identifier: Apache-2.0
"""The patches of each kernel apply as they are, are in the kernel's style, and compile."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

_SERIES = ("6.1", "6.12", "7.2")
_EVENTS = {
    "mm_vmscan_reclaim_writeback",
    "balance_dirty_pages_done",
    "wb_domain_dirty_state",
}


def _events(text: str) -> dict[str, str]:
    """Trace events by name, each as the source has it."""
    start = r"^(?=(?:TRACE_EVENT|DEFINE_EVENT|DECLARE_EVENT_CLASS)\w*\()"
    parts = re.split(start, text, flags=re.MULTILINE)
    # DEFINE_EVENT(class, name, ... is called "class, name".
    return {
        match[1]: part[: part.index("\n);\n")]
        for part in parts
        if (match := re.match(r"\w+\((\w+(?:, *\w+)?),\n", part)) and "\n);\n" in part
    }


@pytest.mark.parametrize("series", _SERIES)
def test_patches_apply_where_they_say(series: str, kernel_build: ModuleType) -> None:
    """No fuzz (-F0), and not even an offset in the source that the series was made for."""
    patches = kernel_build.patches(series)
    assert len(patches) == len(_EVENTS)
    assert list((Path(patches[0]).parent).glob("0000-cover-letter.patch"))
    said = kernel_build.apply(series)
    made, fetched = kernel_build.made_for(series), kernel_build.version(series)
    assert kernel_build.misplaced(said, made, fetched) == []


@pytest.mark.parametrize("series", _SERIES)
def test_checkpatch_finds_nothing(series: str, kernel_build: ModuleType) -> None:
    assert kernel_build.checkpatch(series) == []


@pytest.mark.parametrize("series", _SERIES)
def test_existing_events_stay(series: str, kernel_build: ModuleType) -> None:
    """Every event that was there is there as it was, and just the three are new."""
    kernel_build.apply(series)
    tree = kernel_build.folder(series)
    added = set()
    for name in ("vmscan", "writeback"):
        header = f"include/trace/events/{name}.h"
        before = _events((tree / "pristine" / header).read_text())
        after = _events((tree / "linux" / header).read_text())
        assert len(before) > 15
        assert {event: after.get(event) for event in before} == before
        added |= set(after) - set(before)
    assert added == _EVENTS


@pytest.mark.parametrize("series", _SERIES)
def test_objects_compile_without_warnings(
    series: str, kernel_build: ModuleType, request: pytest.FixtureRequest
) -> None:
    if series != "6.1":
        request.getfixturevalue("full")
    for path in kernel_build.compile_objects(series):
        assert path.stat().st_size > 0
