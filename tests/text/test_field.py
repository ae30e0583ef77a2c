# SPDX-License-Identifier: Apache-2.0
"""The first line of texts as people post them: no all-clear for tasks that sleep, no cause that the
text does not show.
"""

from __future__ import annotations

import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from support.cli import Wbscope
from support.once import Once
from support.properties import for_all
from support.runs import REPOSITORY

_FOLDER = REPOSITORY / "tests/data/field"
_EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((_FOLDER / "expected.toml").read_text())
with tarfile.open(_FOLDER / "reports.tar.xz") as _archive:
    _NAMES = sorted(_archive.getnames())


@pytest.fixture(scope="module")
def reports(once: Once) -> Path:
    def unpack(folder: Path) -> None:
        with tarfile.open(_FOLDER / "reports.tar.xz") as archive:
            archive.extractall(folder)  # ours

    return once.made("field-reports", unpack)


def _file(name: str) -> str:
    (found,) = [one for one in _NAMES if one.partition(".")[0] == name]
    return found


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_first_line(wbscope: Wbscope, reports: Path, name: str) -> None:
    wanted = _EXPECTED[name]
    told = wbscope.document("explain", reports / _file(name))
    first = told["rows"][0]
    assert [first[key] for key in ("severity", "confidence", "id")] == wanted["first"], first
    assert not [words for words in wanted.get("words", []) if words not in first["text"]], first
    if "advice" in wanted:
        advice = first["advice"] or {"settings": []}
        settings = [f"{one['knob']} = {one['value']}" for one in advice["settings"]]
        assert settings == wanted["advice"]
    if "warning" in wanted:
        assert wanted["warning"] in {one["slug"] for one in told["warnings"]}


@pytest.mark.parametrize(
    "name", sorted(one for one in _NAMES if one.partition(".")[0] not in _EXPECTED)
)
def test_no_trace(wbscope: Wbscope, reports: Path, name: str) -> None:
    done = wbscope.run("explain", reports / name)
    assert (done.returncode, done.stderr.startswith("error[not-a-trace]")) == (3, True)


def test_completions_that_were_not_recorded_are_no_silence(
    wbscope: Wbscope, reports: Path, tmp_path: Path
) -> None:
    lines = (reports / _file("made-disk-hang")).read_text().splitlines(keepends=True)
    text = tmp_path / "issued.txt"
    text.write_text("".join(line for line in lines if "block_rq_complete" not in line))
    told = wbscope.document("explain", text)["rows"]
    assert not [one for one in told if one["id"] == "device_hung" or "completed" in one["text"]]


# Counts that no machine can have leave nothing to advise.
@pytest.mark.parametrize("name", sorted(n for n in _EXPECTED if "dirty-below-zero" in n))
def test_no_advice_from_impossible_counts(wbscope: Wbscope, reports: Path, name: str) -> None:
    rows = wbscope.document("explain", reports / _file(name))["rows"]
    assert [one["id"] for one in rows if one["advice"]] == ["impossible_count"]
    assert not [one for one in rows if "-8.00 KiB" in one["text"]]


_PAUSE = (
    "{task} [000] ..... {ts:.6f}: balance_dirty_pages: bdi 8:0: limit={limit} setpoint={set}"
    " dirty={dirty} bdi_setpoint={set} bdi_dirty={dirty} dirty_ratelimit={rate}"
    " task_ratelimit={rate} dirtied={pages} dirtied_pause={pages} paused=0 pause={pause}"
    " period={period} think={think} cgroup_ino=1"
)
_STATE = (
    "{task} [000] ..... {ts:.6f}: global_dirty_state: dirty={dirty} writeback=9 bg_thresh={bg}"
    " thresh={set} limit={limit} dirtied={total} written={written}"
)
_SWITCH = (
    "{task} [000] ..... {ts:.6f}: sched_switch: prev_comm=dd prev_pid={tid} prev_prio=120"
    " prev_state={state} ==> next_comm=swapper/0 next_pid=0 next_prio=120"
)


# Nothing but the device's own requests, or samples of its counters, clears it.
@for_all(
    10,
    pause=st.integers(20, 199),
    share=st.floats(0.25, 0.97),
    pages=st.integers(1, 4000),
    limit=st.integers(100, 1 << 20),
    tasks=st.integers(1, 3),
    has_state=st.booleans(),
    has_switch=st.booleans(),
)
def test_nothing_clears_a_task_that_sleeps(
    wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory, pause: int, share: float,
    pages: int, limit: int, tasks: int, has_state: bool, has_switch: bool,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("asleep")
    period = pause / share
    facts = {"limit": limit, "set": limit * 8 // 9, "dirty": limit * 9 // 10, "bg": limit // 2,
             "rate": 4 * pages * 1000 // pause, "pages": pages, "pause": pause,
             "period": pause, "think": int(period - pause)}  # fmt: skip
    lines = []
    for step in range(120):
        for tid in range(700, 700 + tasks):
            ts = 100 + (step + (tid - 700) / 7) * period / 1000
            facts |= {"task": f"dd-{tid}", "tid": tid, "total": 10**6 + step * pages * tasks,
                      "written": 10**6 + step * pages * tasks - 50}  # fmt: skip
            if has_state:
                lines.append((ts - 2e-6, _STATE.format(ts=ts - 2e-6, **facts)))
            lines.append((ts, _PAUSE.format(ts=ts, **facts)))
            if has_switch:
                lines.append((ts + 1e-6, _SWITCH.format(ts=ts + 1e-6, state="D", **facts)))
                woken = ts + pause / 1000
                wake = _SWITCH.format(ts=woken, state="S", **facts)
                lines.append((woken, wake.replace("prev_comm=dd", "prev_comm=swapper/0").replace(
                    f"prev_pid={tid}", "prev_pid=0").replace("next_pid=0", f"next_pid={tid}")
                    .replace("next_comm=swapper/0", "next_comm=dd")))  # fmt: skip
    trace = folder / "trace.txt"
    trace.write_text("\n".join(line for _, line in sorted(lines)) + "\n")
    page, story, tracks = folder / "page.html", folder / "page.md", folder / "run.pftrace"
    verbs = [("explain", trace), ("report", trace), ("explain", trace, "--json"),
             ("report", trace, "-o", page), ("report", trace, "-o", story),
             ("timeline", trace, "-o", tracks)]  # fmt: skip
    told = [wbscope.run(*words) for words in verbs]
    assert [one.returncode for one in told] == [0] * len(told), told
    texts = [one.stdout.encode() for one in told]
    texts += [path.read_bytes() for path in (page, story, tracks)]
    assert not [text for text in texts if b"Nothing is wrong" in text]
    assert '"severity": "ok"' not in told[2].stdout
