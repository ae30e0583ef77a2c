# SPDX-License-Identifier: Apache-2.0
"""Fronts of lines, notes, logs, damage and encodings of texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.texttrace import load, load_lines, refusal

# Fronts of lines, notes between them, logs, and files that are no trace.

_PAYLOAD = "nid=1"
_EVENT = "mm_vmscan_kswapd_sleep"
_FULL = f"vmscan:{_EVENT}"
# (front of the line, comm, tid, cpu, ts)
_FRONTS = [
    ("           <...>-123   [000]  8.000001: ", None, 123, 0, 8_000_001_000),
    ("          <idle>-0     [003]  8.000001: ", "<idle>", 0, 3, 8_000_001_000),
    (" kworker/u8:2-flush-8:0-45  [001] d..1.  8.5: ", "kworker/u8:2-flush-8:0", 45, 1, 85 * 10**8),
    ("  a [b] c: d-7   (    123) [001] .....  8.000001: ", "a [b] c: d", 7, 1, 8_000_001_000),
    ("  x-1   (-------) [001] d.s2  8.000001: ", "x", 1, 1, 8_000_001_000),
    ("  dd-123     0d..1.  8.000001: ", "dd", 123, 0, 8_000_001_000),
    ("      dd-123     1d..1 1234us+: ", "dd", 123, 1, 1_234_000),
    ("  migratio-26      1d..2.    12.5: ", None, 26, 1, 12_500_000_000),
    ("  dd-1 [000]  8.123456789: ", "dd", 1, 0, 8_123_456_789),
    ("  dd-1 [000]  8.000001: (+711)   ", "dd", 1, 0, 8_000_001_000),
    ("  dd   12/34 [002]  8.000001: vmscan:", "dd", 34, 2, 8_000_001_000),
    ("my prog    34 [002]  8.000001:          1 vmscan:", "my prog", 34, 2, 8_000_001_000),
    ("     dd    34  8.000001: vmscan:", "dd", 34, None, 8_000_001_000),
]


@pytest.mark.parametrize(("front", "comm", "tid", "cpu", "ts"), _FRONTS)
def test_front(
    tmp_path: Path, front: str, comm: str | None, tid: int, cpu: int | None, ts: int
) -> None:
    loaded = load_lines([f"{front}{_EVENT}: {_PAYLOAD}"], tmp_path)
    (row,) = loaded.rows(_FULL)
    assert (row["tid"], row["cpu"], row["ts"], row["nid"]) == (tid, cpu, ts, 1)
    assert loaded.sql("SELECT comm FROM task WHERE tid = ?", tid) == [(comm,)]


def test_ticks_are_said(wbscope: Wbscope, tmp_path: Path) -> None:
    loaded = load_lines([f"dd-1 [000] .....  {i}: {_EVENT}: nid=0" for i in (41, 42)], tmp_path)
    assert [row["ts"] for row in loaded.rows(_FULL)] == [41, 42]
    assert loaded.meta()["clock_unit"] == "ticks"
    answer = wbscope.document("query", "event_counts", loaded.path)
    assert "clock-without-unit" in {w["slug"] for w in answer["warnings"]}


@pytest.mark.parametrize(
    ("note", "count"),
    [
        ("CPU:1 [LOST 12 EVENTS]", 12),
        ("CPU 1: [12 EVENTS DROPPED]", 12),
        ("CPU:1 [12 EVENTS DROPPED]", 12),
        ("CPU:1 [EVENTS DROPPED]", None),
        ("CPU:1 [LOST EVENTS]", None),
    ],
)
def test_lost_events(tmp_path: Path, note: str, count: int | None) -> None:
    def line(cpu: int, ts: int) -> str:
        return f"dd-1 [00{cpu}]  {ts}.0: {_EVENT}: nid=0"

    loaded = load_lines([line(1, 1), note, line(0, 2), line(1, 3)], tmp_path)
    assert loaded.sql("SELECT ts, cpu, count FROM lost_events") == [(3_000_000_000, 1, count)]
    assert loaded.meta()["lost_events_count"] == (count or 0)


def test_events_that_bpftrace_lost_are_of_no_cpu(tmp_path: Path) -> None:
    lines = [f"dd-1 [000]  {ts}.0: {_EVENT}: nid=0" for ts in (1, 2)]
    notes = ["Lost 12 events", "Lost 5 events", "Lost events", "Lost 1 events of them"]
    loaded = load_lines([lines[0], *notes, lines[1], "Lost 3 events"], tmp_path)
    told = loaded.sql("SELECT ts, cpu, count FROM lost_events ORDER BY count DESC")
    assert told == [(2_000_000_000, None, 17), (2_000_000_000, None, 3)]
    assert loaded.meta()["lost_events_count"] == 20
    assert loaded.counters()["text_not_understood"] == 2


def test_overwritten_records_are_said(wbscope: Wbscope, tmp_path: Path) -> None:
    lines = ["# tracer: nop", "# entries-in-buffer/entries-written: 5/105   #P:8"]
    loaded = load_lines([*lines, f"dd-1 [000]  1.0: {_EVENT}: nid=0"], tmp_path)
    assert loaded.counters()["text_overwritten"] == 100
    assert loaded.meta()["cpus_count"] == 8
    answer = wbscope.document("query", "event_counts", loaded.path)
    assert "records-overwritten" in {w["slug"] for w in answer["warnings"]}


def test_tracers_without_events(tmp_path: Path) -> None:
    front = "dd-1 [000] d..1.  1.0: "
    loaded = load_lines(
        [
            front + "schedule <-do_nanosleep",
            front + "sys_write(fd: 1, buf: 7ffe0012, count: 1000)",
            front + "sys_write -> 0x1000",
            front + "sys_fsync -> 0xfffffffffffffffb",
            front + "tracing_mark_write: two words: and more",
            " => schedule",
        ],
        tmp_path,
    )
    (function,) = loaded.rows("ftrace:function")
    assert (function["ip"], function["parent_ip"]) == ("schedule", "do_nanosleep")
    (enter,) = loaded.rows("syscalls:sys_enter_write")
    assert (enter["fd"], enter["buf"], enter["count"]) == (1, 0x7FFE0012, 0x1000)
    assert loaded.rows("syscalls:sys_exit_write")[0]["ret"] == 0x1000
    assert loaded.rows("syscalls:sys_exit_fsync")[0]["ret"] == -5
    assert loaded.rows("ftrace:print")[0]["buf"] == "two words: and more"
    assert loaded.counters()["text_continuations"] == 1


def test_events_without_a_reference(tmp_path: Path) -> None:
    line = "dd-1 [000]  1.0: my_event: bdi 8:0: a=1 b=0x1f, c: -3 d=10(20) rate=15% name=two words"
    loaded = load_lines([line, line.replace("name=", "late=7 name=")], tmp_path)
    first, second = loaded.rows("my_event")
    wanted = {"bdi": "8:0", "a": 1, "b": 31, "c": -3, "d": 10, "d_paren": 20, "rate": 15}
    assert {k: first[k] for k in wanted} == wanted
    assert (first["name"], first["late"], second["late"]) == ("two words", None, 7)


def test_raw_fields_where_trace_cmd_could_not_print(tmp_path: Path) -> None:
    line = (
        "dd-1 [000]  1.0: mm_vmscan_direct_reclaim_begin:"
        " [FAILED TO PARSE] gfp_flags=0x153cca memcg_id=0 order=8"
    )
    (row,) = load_lines([line], tmp_path).rows("vmscan:mm_vmscan_direct_reclaim_begin")
    assert (row["gfp_flags"], row["order"]) == (0x153CCA, 8)


def test_comm_with_everything_in_it(tmp_path: Path) -> None:
    line = (
        "dd-1 [000] d..2.  1.0: sched_switch: prev_comm=a b-1 prev_pid=1 prev_prio=120"
        " prev_state=R+ ==> next_comm=k/u:2 [x] next_pid=2 next_prio=100"
    )
    (row,) = load_lines([line], tmp_path).rows("sched:sched_switch")
    assert (row["prev_comm"], row["next_comm"], row["prev_state"]) == ("a b-1", "k/u:2 [x]", 0x100)


_RECLAIM = (
    "reclaim: blkdev_writepage+0x0/0x20 zone=Normal inactive=112313(821289) active=9942(10039)"
    " isolated=27(27) dirty=59709(146944) writeback=739(4017)",
    "reclaim: blkdev_writepage+0x0/0x20 zone=Normal inactive=111102(806876) active=9925(10022)"
    " isolated=32(32) dirty=72125(146914) writeback=957(3972)",
    "reclaim: xfs_vm_writepage+0x0/0x4f0 zone=DMA inactive=776(430813) active=2(2931)"
    " isolated=32(32) dirty=814(68649) writeback=0(18765)",
)


@pytest.mark.parametrize(
    ("front", "ts"),
    [
        ("", 0),
        ("[   12.345678] ", 12_345_678_000),
        ("<6>[   12.345678] ", 12_345_678_000),
        ("[   12.345678][  T123] ", 12_345_678_000),
        ("Jul 25 22:23:01 host kernel: [   12.345678] ", 12_345_678_000),
    ],
)
def test_reclaim_lines_of_a_kernel_log(
    wbscope: Wbscope, tmp_path: Path, front: str, ts: int
) -> None:
    other = ["[    1.000000] Linux version 3.0", "[    1.5] sda: sda1"]
    loaded = load_lines([*other, *(front + line for line in _RECLAIM)], tmp_path)
    assert loaded.meta()["format"] == "kernel log text"
    assert loaded.counters()["text_other"] == 2
    rows = loaded.rows("printk:reclaim")
    assert [row["ts"] for row in rows] == [ts] * 3
    assert (rows[0]["cpu"], rows[0]["tid"], rows[0]["zone"]) == (None, None, "Normal")
    assert (rows[0]["inactive_zone"], rows[0]["inactive_global"]) == (112313, 821289)
    assert (rows[2]["caller"], rows[2]["dirty_global"]) == ("xfs_vm_writepage+0x0/0x4f0", 68649)
    first, second, dma = wbscope.query("reclaim_dirty_state", loaded.path)
    assert [row["zone"] for row in (first, second, dma)] == ["Normal", "Normal", "DMA"]
    assert dma["zone_pending_ratio"] == pytest.approx(814 / 776)
    assert second["zone_dirty_bytes"] == 72125 * 4096
    assert first["pending_ratio"] == pytest.approx((146944 + 4017) / 821289)


@pytest.mark.parametrize(
    "content",
    [
        b"Dear all,\n\nthis is a letter.\nIt has lines: several.\n",
        b"\n\n\n",
        b"# only a comment\n",
        b"a" * 200_000,
        b"dd-1 [000]  1.0: e: a=1\n" + b"no record at all\n" * 5,
        b"[    1.000000] Linux version 3.0\n",
        "käse \ufffd\n".encode() * 50,
    ],
)
def test_text_that_is_no_trace(tmp_path: Path, content: bytes) -> None:
    code, said = refusal(content, tmp_path)
    assert code == 3
    assert said.startswith("error[not-a-trace]: ")
    assert said.count("error[") == 1


def test_lines_between_that_are_none(tmp_path: Path) -> None:
    good = [f"dd-1 [000]  {i}.0: {_EVENT}: nid=0" for i in range(5)]
    loaded = load_lines([*good[:3], "what is this", *good[3:]], tmp_path)
    assert loaded.counters()["text_not_understood"] == 1
    assert re.search(r'lines-not-understood.*\n  at: line 4: "what is this"', loaded.said)
    assert len(loaded.rows(_FULL)) == 5


def test_hostile_bytes(tmp_path: Path) -> None:
    good = f"dd-1 [000]  1.0: {_EVENT}: nid=0\n".encode()
    noise = [
        b"\0" * 5000 + good,
        b"\xff\xfe-1 [000]  2.0: my_event: name=\xff\xc0 a=99999999999999999999\r\n",
        b"x-99999999999 [000]  3.0: e: a=1\n",
        b"x-1 [000]  99999999999999999999.0: e: a=1\n",
        b"x-1 [000]  3.0: big: name=" + b"z" * 300_000 + b"\n",
        b"dd-1 [000]  0.5: " + _EVENT.encode() + b": nid=0",
    ]
    loaded = load_lines(good * 20 + b"".join(noise), tmp_path)
    counters = loaded.counters()
    assert len(loaded.rows(_FULL)) == 22
    assert counters["text_cut"] == 1
    assert counters["text_not_understood"] == 2
    assert counters["time_backwards"] == 1
    assert counters["replaced_text"] > 0
    (strange,) = loaded.rows("my_event")
    assert strange["a"] == "99999999999999999999"


def test_globs_range_and_limit(tmp_path: Path) -> None:
    lines = [
        f"dd-1 [000]  {i}.0: {event}: nid={i}"
        for i in range(10)
        for event in (_EVENT, "a_new_event")
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    loaded = load(tmp_path / "t.txt", tmp_path / "globs.db", "--events", "vmscan:*sleep")
    # The second has no reference, so that its system is not known.
    assert loaded.sql("SELECT event, count, loaded_count FROM event_counts ORDER BY event") == [
        ("a_new_event", 10, 0),
        (_FULL, 10, 10),
    ]
    span = ("--time-range", "+2000000000..+4000000000")
    part = load(tmp_path / "t.txt", tmp_path / "part.db", "--all", *span)
    assert [row["nid"] for row in part.rows(_FULL)] == [2, 3]
    assert part.meta()["partial"] == 1
    few = load(tmp_path / "t.txt", tmp_path / "few.db", "--all", "--limit", "5")
    assert few.meta()["loaded_count"] == 5


def test_run_folder_of_text_knows_its_kernel(wbscope: Wbscope, tmp_path: Path) -> None:
    """fs_free_space is reason 4 on 7.x and 5 on 6.x: the file uname decides."""
    line = (
        "kworker/0-5 [000]  1.0: writeback_start: bdi 8:0: sb_dev 0:0 nr_pages=9 sync_mode=0"
        " kupdate=0 range_cyclic=1 background=0 reason=fs_free_space cgroup_ino=1"
    )
    (tmp_path / "trace.txt").write_text(line + "\n")
    for release, reason in (("6.1.0-9", 5), ("7.2.13", 4)):
        (tmp_path / "uname").write_text(f"Linux host {release} #1 SMP x86_64 GNU/Linux\n")
        loaded = load(tmp_path, tmp_path / f"{release}.db")
        assert loaded.meta()["kernel_release"] == release
        assert loaded.rows("writeback:writeback_start")[0]["reason"] == reason


# Texts that are damaged, empty or in another encoding, and markers of many lines.

_LINE = b"dd-1 [000]  1.0: " + _EVENT.encode() + b": nid=0\n"
_NOISE = bytes(range(128, 256)).replace(b"\n", b"") + b"\x01\x02\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_LINE * 3 + b"\0" * 5000 + _LINE * 3, "found 5000 NUL bytes"),
        (_LINE * 6 + b"\0" * 100_000, "found 100000 NUL bytes"),
        (_LINE * 3 + _NOISE + _LINE * 3, "found 1 lines that are no text"),
        (_LINE * 6 + b"x" * 70_000 + b"\n", "found 1 lines longer than 64 KiB"),
        (_LINE * 6 + _LINE[:10], "found 1 record that ends in the middle (line 7)"),
    ],
    ids=["hole", "tail", "noise", "long", "cut"],
)
def test_damage_is_said(wbscope: Wbscope, tmp_path: Path, content: bytes, words: str) -> None:
    loaded = load_lines(content, tmp_path)
    assert len(loaded.rows(_FULL)) == 6
    assert loaded.meta()["damaged"] == 1
    assert words in loaded.meta()["damage"]
    assert "warning[damaged-trace]: " in loaded.said
    warnings = wbscope.document("query", "event_counts", loaded.path)["warnings"]
    assert "damaged-trace" in {w["slug"] for w in warnings}


_WRITER = (
    b"  dd-1 [000] .....  1.0: balance_dirty_pages: bdi 8:0: limit=100 setpoint=90 dirty=80"
    b" bdi_setpoint=1 bdi_dirty=1 dirty_ratelimit=1 task_ratelimit=1 dirtied=1 dirtied_pause=1"
    b" paused=0 pause=3 period=4 think=0 cgroup_ino=1"
)


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("cut", [b" paus", b" pause=", b" cgroup_"])
def test_last_line_that_was_cut(wbscope: Wbscope, tmp_path: Path, before: int, cut: bytes) -> None:
    end = _WRITER.rindex(cut) + len(cut)
    lines = (_WRITER + b"\n") * before + _WRITER[:end]
    loaded = load_lines(b"# tracer: nop\n" + lines, tmp_path)
    meta = loaded.meta()
    assert (meta["damaged"], meta["events_count"]) == (1, before + 1)
    assert f"found 1 record that ends in the middle (line {before + 2})" in meta["damage"]
    budget = "throttle_summary.pause_p99_ns<=1h"
    gate = wbscope.run("gate", tmp_path / "lines.txt", "--budget", budget)
    assert (gate.returncode, "damaged-run" in gate.stdout + gate.stderr) == (4, True)


_RAW_ISSUE = (
    b"  dd-1 [000] .....  1.0: block_rq_issue: dev=266338304 sector=8 nr_sector=8 bytes=4096"
    b" rwbs=W comm=dd cmd="
)


@pytest.mark.parametrize(
    "last",
    [
        b"  dd-1 [000] .....  2.0: block_dirty_buffer: dev=266338304 sector=0 size=4096",
        _RAW_ISSUE,
        _WRITER.replace(b"bdi 8:0: ", b"bdi=8:0 "),
    ],
    ids=["of an event that is not loaded", "with an empty last value", "the only one of its event"],
)
def test_raw_records_are_whole(tmp_path: Path, last: bytes) -> None:
    """trace-cmd report -R, without a newline behind the last one: no print format tells its end."""
    loaded = load_lines((_RAW_ISSUE + b"\n") * 3 + last, tmp_path)
    assert loaded.meta()["damaged"] == 0


def test_a_number_that_may_be_cut_is_not_told(tmp_path: Path) -> None:
    end = _WRITER.index(b" dirty=80") + len(b" dirty=8")
    loaded = load_lines(_WRITER + b"\n" + _WRITER[:end], tmp_path)
    whole, cut = loaded.rows("writeback:balance_dirty_pages")
    assert (whole["setpoint"], whole["dirty"]) == (90, 80)
    assert (cut["setpoint"], cut["dirty"]) == (90, None)


def test_noise_is_no_part_of_a_marker(tmp_path: Path) -> None:
    loaded = load_lines(b"dd-1 [000] ..... 1.0: tracing_mark_write: one\n" + _NOISE, tmp_path)
    assert [row["buf"] for row in loaded.rows("ftrace:print")] == ["one"]
    assert loaded.meta()["damaged"] == 1


@pytest.mark.parametrize(
    "content",
    [
        _LINE * 3 + b"what is this\n" + _LINE * 3,
        _LINE * 5 + _LINE[:-1],
        _LINE * 5 + _LINE.replace(b"nid=0", b"  nid=12345")[:-1],
        b"\xef\xbb\xbf" + _LINE * 6,
        _LINE.replace(b"\n", b"\r\n") * 6,
    ],
    ids=["other words", "no newline", "a longer line without newline", "mark of UTF-8", "CR"],
)
def test_no_damage(tmp_path: Path, content: bytes) -> None:
    loaded = load_lines(content, tmp_path)
    assert loaded.meta()["damaged"] == 0
    assert len(loaded.rows(_FULL)) == 6


def test_lines_of_others_in_a_kernel_log_are_no_damage(tmp_path: Path) -> None:
    reclaim = (
        "reclaim: blkdev_writepage+0x0/0x20 zone=Normal inactive=112313(821289)"
        " active=9942(10039) isolated=27(27) dirty=59709(146944) writeback=739(4017)"
    )
    lines = ["[    1.000000] Linux version 3.0", reclaim, "Jul 25 host sshd[1]: hello"]
    loaded = load_lines(lines, tmp_path)
    assert loaded.meta()["damaged"] == 0
    assert "damaged" not in loaded.said


_FRONT = "dd-1 [000] ..... 1.0: "


@pytest.mark.parametrize("name", ["tracing_mark_write: ", "print: tracing_mark_write: "])
def test_marker_of_many_lines(tmp_path: Path, name: str) -> None:
    text = ["one", "", "  two: 2", "# three", "[four]"]
    lines = [
        "##### CPU 0 buffer started ####",
        _FRONT + name + text[0],
        *text[1:],
        "##### CPU 1 buffer started ####",
        _FRONT + name + "five",
        _FRONT + f"{_EVENT}: nid=0",
        "astray",
    ]
    loaded = load_lines(lines, tmp_path)
    assert [row["buf"] for row in loaded.rows("ftrace:print")] == ["\n".join(text), "five"]
    assert loaded.counters()["text_not_understood"] == 1
    assert [row["seq"] for row in loaded.rows(_FULL)] == [3]


def test_many_lines_of_a_marker_make_no_trace_less_of_one(tmp_path: Path) -> None:
    marker = [_FRONT + "tracing_mark_write: a letter", *(["of many lines"] * 500)]
    loaded = load_lines(marker, tmp_path)
    (row,) = loaded.rows("ftrace:print")
    assert row["buf"].count("\n") == 500


@pytest.mark.parametrize(
    "lines",
    [
        ["# tracer: nop", f"{_FRONT}my_function: a text", *(["of many lines"] * 50)],
        ["cpus=4", f"{_FRONT}my_function: a text", *(["of many lines"] * 50)],
        [f"{_FRONT}{_EVENT}: nid=0", *(["of many lines"] * 50)],
    ],
    ids=["tracer", "cpus", "known event"],
)
def test_a_trace_is_not_refused_for_other_lines(tmp_path: Path, lines: list[str]) -> None:
    loaded = load_lines(lines, tmp_path)
    assert loaded.meta()["events_count"] == 1
    assert loaded.counters()["text_not_understood"] == 50


_LETTER = "# tracer: nop\n#\n" + _LINE.decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[    1.000000] Linux version 3.0\n", 'found a kernel log without "reclaim:" lines'),
        (b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n", "heading and no"),
        (b"cpus=4\nCPU 0 is empty\n", "found a trace with a heading and no record"),
        (_LETTER.encode("utf-16"), "found UTF-16 text, wanted UTF-8"),
        (_LETTER.encode("utf-16-le"), "found UTF-16 text, wanted UTF-8"),
        (_LETTER.encode("utf-16-be"), "found UTF-16 text, wanted UTF-8"),
        (_LETTER.encode("utf-32"), "found UTF-32 text, wanted UTF-8"),
    ],
)
def test_what_it_is_instead(tmp_path: Path, content: bytes, words: str) -> None:
    code, said = refusal(content, tmp_path)
    assert code == 3
    assert words in said
    assert said.count("error[") == 1
