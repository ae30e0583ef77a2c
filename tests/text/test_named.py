# SPDX-License-Identifier: Apache-2.0
"""Who is named: whose pages, who lost time, in texts as people post them."""

from __future__ import annotations

import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import wbscope
from hypothesis import strategies as st
from support.cli import Wbscope
from support.once import Once
from support.properties import for_all
from support.runs import REPOSITORY
from support.texttrace import load_lines
from wbscope.library.finding import Finding

# Who is told to have lost time: not the recorder, and by name only those who lost some of it.

_PLAIN = "order=0 gfp_flags=GFP_KERNEL"


def _reclaims(tid: int, comm: str, start_ms: int, dur_ms: float) -> list[tuple[float, str]]:
    start, end = 100 + start_ms / 1000, 100 + (start_ms + dur_ms) / 1000
    task = f"{comm}-{tid} [000]"
    return [
        (start, f"{task} {start:.6f}: mm_vmscan_direct_reclaim_begin: {_PLAIN}"),
        (end, f"{task} {end:.6f}: mm_vmscan_direct_reclaim_end: nr_reclaimed=32"),
    ]


def _told(folder: Path, lines: list[tuple[float, str]], own: str | None = None) -> tuple[str, int]:
    """Whom direct_reclaim names, and what it cost."""
    (folder / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    if own is not None:
        (folder / "recorder_tasks").write_text(own)
    with wbscope.open(folder) as run:
        (one,) = (one for one in run.findings() if one.id == "direct_reclaim")
    return one.facts["tasks"], one.cost_task_ns


def _with_sampler() -> list[tuple[float, str]]:
    """A writer that reclaimed for 300 ms, and a sampler (70) with five children: 20 ms each."""
    lines = _reclaims(11, "dd", 0, 300)
    for tid in range(70, 76):
        lines += _reclaims(tid, "sh", 400 + tid, 20)
    return lines


@pytest.mark.parametrize("own", ["70 9\n71\n72\n73\n74\n75\n", "9 70 71 72 73 74 75"])
def test_the_recorder_is_no_victim(tmp_path: Path, own: str) -> None:
    assert _told(tmp_path, _with_sampler(), own) == ("dd 11", 300_000_000)


def test_a_run_that_does_not_tell_its_recorder(tmp_path: Path) -> None:
    assert _told(tmp_path, _with_sampler()) == ("1 dd and 6 sh", 420_000_000)


def test_numbers_that_hold_a_thread_s(tmp_path: Path) -> None:
    """7 and 1 are no threads of the recorder because 70, 71 and 11 are."""
    lines = _reclaims(7, "dd", 0, 300) + _reclaims(1, "sh", 400, 200)
    assert _told(tmp_path, lines, "70 71 11\n") == ("dd and sh", 500_000_000)


@pytest.mark.parametrize(
    ("writers", "others", "told"),
    [
        # 9 tasks of 1 ms are 3 % of 309 ms; of 20 ms they are 38 % of 480.
        ([300], [1] * 9, "dd 11 and 9 more"),
        ([300], [20] * 9, "1 dd and 9 sh"),
        ([150, 150], [1] * 9, "2 dd and 9 more"),
        ([300], [1], "dd 11 and 1 more"),
        ([300], [20], "dd and sh"),
        ([300], [], "dd 11"),
    ],
)
def test_tasks_that_lost_next_to_nothing(
    tmp_path: Path, writers: list[int], others: list[int], told: str
) -> None:
    lines = []
    for place, dur_ms in enumerate(writers):
        lines += _reclaims(11 + place, "dd", 0, dur_ms)
    for place, dur_ms in enumerate(others):
        lines += _reclaims(70 + place, "sh", 400 + 30 * place, dur_ms)
    assert _told(tmp_path, lines) == (told, (sum(writers) + sum(others)) * 1_000_000)


def test_its_pauses_are_told_by_a_rule_of_their_own(tmp_path: Path) -> None:
    """wbscope (70) and a script's sh (71) slept 300 ms each over the limit, dd 500 ms."""
    state = "dirty=30000 writeback=0 bg_thresh=15000 thresh=30000 limit=30000 dirtied=9 written=9"
    lines = [(100.0, f"dd-11 [000] 100.000000: global_dirty_state: {state}")]
    for tid, comm, count in ((11, "dd", 5), (70, "wbscope", 3), (71, "sh", 3)):
        for i in range(count):
            ts = 101 + i / 5
            lines.append(
                (
                    ts,
                    f"{comm}-{tid} [000] {ts:.6f}: balance_dirty_pages: bdi 8:0: limit=30000"
                    " setpoint=25000 dirty=30000 bdi_setpoint=25000 bdi_dirty=30000"
                    " dirty_ratelimit=1000 task_ratelimit=0 dirtied=512 dirtied_pause=32 paused=0"
                    " pause=100 period=100 think=0 cgroup_ino=1",
                )
            )
    lines.append((103.0, f"dd-11 [000] 103.000000: global_dirty_state: {state}"))
    (tmp_path / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    (tmp_path / "recorder_tasks").write_text("70\n71\n")
    with wbscope.open(tmp_path) as run:
        rows = run.query("lost_time").records()
        found = {one.id: one for one in run.findings()}
    assert sorted((row["comm"], row["total_ns"]) for row in rows) == [
        ("dd", 500_000_000), ("wbscope", 300_000_000)
    ]  # fmt: skip
    assert found["recorder_writes"].cost_task_ns == 300_000_000


# Whose pages held a task up, where those who dirtied them were not throttled themselves.

_PAGES = 256  # in a MiB
_TAIL = "sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background"


def _victim() -> list[tuple[float, str]]:
    """The root's task on 8:0, with 40 of 117 MiB: 100 sleeps of 20 ms, 2 s in all."""
    end = "dirty=0 writeback=0 bg_thresh=15000 thresh=40000 limit=40000 dirtied=9000 written=9000"
    lines = [(107.0, f"global_dirty_state: {end}")]
    for i in range(100):
        ts = 101 + i / 20
        state = "dirty=10000 writeback=20000 bg_thresh=15000 thresh=40000 limit=40000"
        numbers = int(ts - 100) * 1000
        lines += [
            (ts, f"global_dirty_state: {state} dirtied={numbers} written={numbers}"),
            (
                ts + 0.0002,
                "balance_dirty_pages: bdi 8:0: limit=40000 setpoint=33750 dirty=30000"
                f" bdi_setpoint=33000 bdi_dirty={40 * _PAGES} dirty_ratelimit=100000"
                " task_ratelimit=100000 dirtied=512 dirtied_pause=32 paused=0 pause=20 period=20"
                " think=0 cgroup_ino=1",
            ),
        ]
    return [(ts, f"root-178 [000] {ts:.6f}: {text}") for ts, text in lines]


def _flushed(ts: float, bdi: str, cgroup: int, pages: int) -> list[tuple[float, str]]:
    """A chunk of a flusher, which has 10000 pages to write before it."""
    return [
        (t, f"kworker/u4:1-25 [001] {t:.6f}: {event}: bdi {bdi}: sb_dev 0:0 nr_pages={left}"
            f" {_TAIL} cgroup_ino={cgroup}")
        for t, event, left in (
            (ts, "writeback_start", 10000),
            (ts + 0.01, "writeback_written", 10000 - pages),
        )
    ]  # fmt: skip


def _requests(device: str, count: int, seconds: float = 0.001) -> list[tuple[float, str]]:
    """Of 1 MiB each, one in 50 ms."""
    lines = []
    for i in range(count):
        ts, end = 101.01 + i / 20, 101.01 + i / 20 + seconds
        where = f"() {1000 + i * 2048} + 2048"
        issue, done = f"{device} W 1048576 {where} [kworker]", f"{device} W {where} [0]"
        lines += [
            (ts, f"kworker/0:1-26 [000] {ts:.6f}: block_rq_issue: {issue}"),
            (end, f"kworker/0:1-26 [000] {end:.6f}: block_rq_complete: {done}"),
        ]
    return lines


def _starved(lines: list[tuple[float, str]], folder: Path) -> Finding:
    with wbscope.open(load_lines([line for _, line in sorted(lines)], folder).path) as run:
        (one,) = (one for one in run.findings() if one.id.endswith("_starves"))
    return one


def test_the_other_cgroup_that_was_written_for(tmp_path: Path) -> None:
    """Cgroup 27 wrote 30 MiB in one go, before anybody was throttled: no event has its pages."""
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100)
    # What is written to a file of the journal elsewhere is not worth a name.
    lines += _flushed(100.7, "8:16", 1, 7)
    one = _starved(lines, tmp_path)
    assert (one.id, one.severity, one.confidence) == ("cgroup_starves", "severe", "inferred")
    # Of each sleep of 20 ms (and no more: nothing tells a jiffy) the disk has a request for 1 ms.
    assert one.cost_task_ns == 2_000_000_000
    assert one.facts["holder_share_ratio"] is None
    assert one.text == (
        "root 178 waited 2.00 s writing to 8:0, throttled by another cgroup's dirty pages: 34.1 %"
        " of the dirty pages belonged to their own cgroup, and besides these only pages of 27 were"
        " written; 8:0 was idle for 95.0 % of that time."
    )
    assert one.advice is not None
    assert "io.max of 27, if it has one" in one.advice.text
    assert [knob for knob, _ in one.advice.settings] in ([], ["/sys/fs/cgroup/memory.high"])


@pytest.mark.parametrize(
    ("high", "told"), [(None, "max"), (500 << 20, str(500 << 20)), (400 << 20, None)]
)
def test_memory_high_leaves_room_for_other_memory(
    tmp_path: Path, high: int | None, told: str | None
) -> None:
    """Half of the machine's limit is a fifth of 390.6 MiB; 50 MiB of the cgroup are no files."""
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100)
    (tmp_path / "trace.txt").write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    (tmp_path / "cgroups").write_text("1 /sys/fs/cgroup\n27 /sys/fs/cgroup/h\n")
    files = {"memory.stat": f"anon 0\nfile {30 << 20}", "memory.current": 80 << 20}
    if high is not None:
        files["memory.high"] = high
    sample = "".join(f"== 27/{name}\n{text}\n" for name, text in files.items())
    (tmp_path / "cgroup.samples").write_text(f"# ts={102 * 10**9}\n{sample}")
    with wbscope.open(tmp_path) as run:
        (one,) = (one for one in run.findings() if one.id == "cgroup_starves")
    assert one.advice is not None
    assert "Give /h a memory.high that leaves 391 MiB to its files, beside" in one.advice.text
    knob = "/sys/fs/cgroup/h/memory.high"
    # No limit is raised by this.
    wanted = () if told is None else ((knob, str(40000 * 4096 // 2 * 5 + (50 << 20))),)
    assert one.advice.settings == wanted
    assert one.advice.now == (() if told is None else (f"{knob} = {told}",))


@pytest.mark.parametrize("seconds", [0.001, 0.049])
def test_a_busy_disk_is_held_back_by_nothing(tmp_path: Path, seconds: float) -> None:
    lines = _victim() + _flushed(100.5, "8:0", 27, 30 * _PAGES) + _requests("8,0", 100, seconds)
    one = _starved(lines, tmp_path)
    assert one.advice is not None
    assert ("io.max" in one.advice.text) is ("was idle" in one.text) is (seconds < 0.01)


def test_several_other_cgroups_are_not_named(tmp_path: Path) -> None:
    lines = _victim() + _flushed(100.5, "8:0", 27, 10 * _PAGES)
    one = _starved(lines + _flushed(100.6, "8:0", 28, 10 * _PAGES), tmp_path)
    assert (one.id, one.confidence) == ("cgroup_starves", "inferred")
    assert (one.facts["likely_cgroup_ino"], one.facts["holder_cgroup_ino"]) == (None, None)
    assert one.advice is None


@pytest.mark.parametrize("other", ["nobody", "flusher", "requests"])
def test_nobody_is_accused_where_nothing_tells(tmp_path: Path, other: str) -> None:
    """Nobody else was written for; or another disk was, by a flusher or past it, beside 27."""
    lines = _victim() + _requests("8,0", 100)
    if other != "nobody":
        lines += _flushed(100.5, "8:0", 27, 30 * _PAGES)
    if other == "flusher":
        lines += _flushed(100.6, "8:16", 1, 20 * _PAGES)
    if other == "requests":
        lines += _requests("8,16", 20)
    one = _starved(lines, tmp_path)
    assert (one.id, one.severity) == ("slow_bdi_starves", "warning")
    assert one.title == "Other dirty pages throttle writers"
    assert "whose the others were is unknown; 8:0 was idle for 95.0 %" in one.text
    assert one.advice is not None
    assert one.advice.settings == ()
    assert "hold back requests above 8:0" in one.advice.text


# The first line of texts as people post them: no all-clear for tasks that sleep, no cause that the
# text does not show.

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


# What files beside a trace tell of it: counters after the run, settings that are 0.

_LIMITS = "bg_thresh=15000 thresh=30000 limit=30000"


def _run(folder: Path, files: dict[str, str], dirtied: tuple[int, int] = (0, 150)) -> Path:
    """156 pages are dirty at most, 150 and 6 under writeback; 4 KiB are written by a call."""
    lines = [
        f"dd-11 [000] 100.000000: global_dirty_state: dirty=10 writeback=6 {_LIMITS}"
        f" dirtied={dirtied[0]} written=0",
        "dd-11 [000] 100.001000: sys_exit_write: 0x1000",
        f"dd-11 [000] 100.002000: global_dirty_state: dirty=150 writeback=6 {_LIMITS}"
        f" dirtied={dirtied[1]} written=0",
    ]
    (folder / "trace.txt").write_text("".join(f"{line}\n" for line in lines))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def _limits(folder: Path, **span: Any) -> dict[str, Any]:
    with wbscope.open(folder) as run:
        return run.query("dirty_limits", **span).records()[0]


def test_most_that_was_dirty(tmp_path: Path) -> None:
    """Counters are read after the run, when the recorder's own files may be dirty, too."""
    files = {"vmstat.before": "nr_dirty 999\n", "vmstat.after": "nr_dirty 240\nnr_writeback 7\n"}
    assert _limits(_run(tmp_path, files))["dirty_max_bytes"] == 156 * 4096


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("bytes = 0\nratio = 0", (None, 0)),
        ("bytes = 0\nratio = 10", (None, 10)),
        ("bytes = 4096\nratio = 0", (4096, None)),
        # Of a pair the ratio is 0 while the bytes are in force.
        ("ratio = 0", (None, None)),
        ("ratio = 10", (None, 10)),
    ],
)
@pytest.mark.parametrize("kind", ["dirty", "dirty_background"])
def test_a_ratio_of_0_is_in_force(
    tmp_path: Path, kind: str, settings: str, told: tuple[int | None, int | None]
) -> None:
    lines = "".join(f"vm.{kind}_{line}\n" for line in settings.splitlines())
    row = _limits(_run(tmp_path, {"sysctls": lines}))
    assert (row[f"vm_{kind}_bytes"], row[f"vm_{kind}_percent"]) == told


def test_what_writes_without_a_call(tmp_path: Path) -> None:
    """1000 pages were dirtied, and calls wrote one: io_uring asks for its writes in memory."""
    with wbscope.open(_run(tmp_path, {}, dirtied=(0, 1000))) as run:
        (row,) = (row for row in run.query("check").records() if row["source"] == "system calls")
    assert row["verdict"] == "not comparable"
    assert "mmap, io_uring and calls that were not recorded" in str(dict(row))
