# SPDX-License-Identifier: Apache-2.0
"""Texts that are damaged, empty or in another encoding, and markers of many lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Wbscope
from support.texttrace import load_lines, refusal

_EVENT = "mm_vmscan_kswapd_sleep"
_FULL = f"vmscan:{_EVENT}"
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
