# SPDX-License-Identifier: Apache-2.0
"""taskstats messages of every layout, /proc of threads, and the lines that are made of them."""

from __future__ import annotations

import errno
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from support.waits import GUARD_SECONDS
from wbscope.base.errors import SetupError
from wbscope.record.tasks import FILE, TaskIo, add_living, living_threads
from wbscope.record.taskstats import ExitedThread, parse_message

_TID, _TGID = 4242, 4200
# include/uapi/linux/taskstats.h: how each field is packed, and its value; `x` stands for the
# numbers that version 15 has behind each sum of delays.
_FIELDS: tuple[tuple[str, str, int | bytes], ...] = (
    ("version", "H6x", 0),
    ("flags and nice", "Q", 0),
    ("cpu_count", "Q", 3),
    ("cpu_delay_total", "Q", 5),
    ("x", "Q", 1),
    ("blkio_count", "Q", 7),
    ("blkio_delay_total", "Q", 1100),
    ("x", "Q", 1),
    ("swapin_count", "Q", 9),
    ("swapin_delay_total", "Q", 1300),
    ("x", "Q", 1),
    ("cpu_run_real_total", "Q", 11),
    ("cpu_run_virtual_total", "Q", 13),
    ("ac_comm", "32s", b"d d)\xff"),
    ("ac_sched", "Q", 0),
    ("ac_uid", "I", 1000),
    ("ac_gid", "I", 1000),
    ("ac_pid", "I", _TID),
    ("ac_ppid", "I", 1),
    ("ac_btime", "Q", 17),
    ("ac_etime", "Q", 1900),
    ("ac_utime to hiwater_vm", "64s", b""),
    ("read_char", "Q", 2300),
    ("write_char", "Q", 2900),
    ("syscalls", "16s", b""),
    ("read_bytes", "Q", 3100),
    ("write_bytes", "Q", 3700),
    ("cancelled_write_bytes", "Q", 4100),
    ("nvcsw to cpu_scaled", "40s", b""),
    ("freepages_count", "Q", 43),
    ("freepages_delay_total", "Q", 4700),
    ("x", "Q", 1),
    ("thrashing_count", "Q", 53),
    ("thrashing_delay_total", "Q", 5900),
    ("x", "Q", 1),
    ("ac_btime64", "Q", 61),
    ("compact_count", "Q", 67),
    ("compact_delay_total", "Q", 71),
    ("x", "Q", 1),
    ("ac_tgid", "Q", _TGID),
)
_WANTED = ExitedThread(
    tid=_TID,
    tgid=_TGID,
    comm="d d)\udcff",
    life_ns=1_900_000,
    version=16,
    write_bytes=3700,
    cancelled_write_bytes=4100,
    write_char_bytes=2900,
    read_bytes=3100,
    read_char_bytes=2300,
    blkio_delay_ns=1100,
    swapin_delay_ns=1300,
    freepages_delay_ns=4700,
    thrashing_delay_ns=5900,
)


def _stats(version: int, more: int = 0) -> bytes:
    packed = b""
    for name, form, value in _FIELDS:
        times = more if name == "x" else 1
        packed += struct.pack(f"={form}", version if name == "version" else value) * times
    return packed


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _message(stats: bytes, *, tid: int = _TID, aggregate: int = 4, command: int = 2) -> bytes:
    inner = _attribute(1, struct.pack("=I", tid)) + _attribute(3, stats)
    body = struct.pack("=BBH", command, 1, 0) + _attribute(aggregate, inner)
    return struct.pack("=IHHII", 16 + len(body), 31, 0, 0, 0) + body


@pytest.mark.parametrize(("version", "more"), [(16, 0), (15, 1), (15, 2), (12, 0)])
def test_each_layout(version: int, more: int) -> None:
    (found,) = parse_message(_message(_stats(version, more) + bytes(64)))
    assert found == ExitedThread(**{**vars(_WANTED), "version": version})


def test_what_older_kernels_do_not_have() -> None:
    old = _stats(8)
    (found,) = parse_message(_message(old[: old.index(struct.pack("=Q", 53))]))
    assert (found.tgid, found.thrashing_delay_ns, found.freepages_delay_ns) == (None, None, 4700)
    (found,) = parse_message(_message(old))  # behind what version 8 has is something else
    assert (found.tgid, found.thrashing_delay_ns) == (None, None)


def test_a_struct_of_another_thread_is_not_read() -> None:
    assert not list(parse_message(_message(_stats(16), tid=_TID + 1)))


def test_sums_of_processes_and_other_messages_are_left_out() -> None:
    assert not list(parse_message(_message(_stats(16), aggregate=5)))
    assert not list(parse_message(_message(_stats(16), command=1)))
    assert not list(parse_message(struct.pack("=IHHIIi", 20, 2, 0, 0, 0, -errno.EPERM)))


def test_every_cut_of_a_message() -> None:
    whole = _message(_stats(16))
    for size in range(len(whole)):
        assert not list(parse_message(whole[:size])), size
        # Sizes that still fit, and less of the struct than the kernel has.
        cut = _stats(16)[: size // 2]
        for thread in parse_message(_message(cut)):
            assert thread.write_bytes == 3700


def test_every_damaged_byte_ends() -> None:
    whole = bytearray(_message(_stats(16)))
    for place in range(48):
        for value in (0, 1, 3, 0x7F, 0xFF):
            damaged = whole.copy()
            damaged[place] = value
            list(parse_message(bytes(damaged)))
    assert len(list(parse_message(bytes(whole) * 3))) == 3


def _thread(
    proc: Path, pid: int, tid: int, comm: str, io: str, *, state: str = "S", flags: int = 0
) -> None:
    folder = proc / str(pid) / "task" / str(tid)
    folder.mkdir(parents=True)
    fields = [state, "1", "1", "1", "0", "-1", str(flags), *["0"] * 12, "77"]
    (folder / "stat").write_text(f"{tid} ({comm}) {' '.join(fields)}\n", errors="surrogateescape")
    (folder / "io").write_text(io)


_IO = "rchar: 11\nwchar: 13\nsyscr: 1\nsyscw: 2\nread_bytes: 17\nwrite_bytes: {}\n" \
    "cancelled_write_bytes: 23\nof_the_future: 5\n"  # fmt: skip


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    proc = tmp_path / "proc"
    _thread(proc, 7, 7, "sh", _IO.format(4096))
    _thread(proc, 7, 8, "a) b\n\\", _IO.format(8192))
    _thread(proc, 9, 9, "gone", _IO.format(12288), flags=4)
    _thread(proc, 10, 10, "zombie", _IO.format(12288), state="Z")
    (proc / "self").mkdir()
    (proc / "self/io").write_text(_IO.format(0))
    (proc / "sys/kernel").mkdir(parents=True)
    (proc / "11").mkdir()  # whose threads this user may not read
    return proc


def test_living_threads(proc: Path) -> None:
    found = {thread.tid: thread for thread in living_threads(proc)}
    assert {tid: thread.is_exiting for tid, thread in found.items()} == {
        7: False, 8: False, 9: True, 10: True,
    }  # fmt: skip
    assert (found[8].tgid, found[8].comm) == (7, "a) b\n\\")
    assert found[8].values == {
        "read_char_bytes": 11, "write_char_bytes": 13, "read_bytes": 17, "write_bytes": 8192,
        "cancelled_write_bytes": 23,
    }  # fmt: skip


class _Listener:
    """In the place of the kernel's."""

    messages: tuple[bytes, ...] = ()

    has_room = True

    def __init__(self) -> None:
        self._end, self._other = os.pipe()

    def fileno(self) -> int:
        return self._end

    def read(self) -> Iterator[bytes]:
        messages, _Listener.messages = _Listener.messages, ()
        for message in messages:
            if message == b"":
                raise OSError(errno.ENOBUFS, "no room")
            yield message

    def close(self) -> None:
        os.close(self._end)
        os.close(self._other)


def _exit(tid: int, comm: bytes, life_us: int, write_bytes: int, blkio_ns: int = 0) -> bytes:
    stats = bytearray(_stats(16))
    for place, form, value in (
        (40, "=Q", blkio_ns), (56, "=Q", 0), (80, "=32s", comm), (128, "=I", tid),
        (144, "=Q", life_us), (256, "=Q", write_bytes), (264, "=Q", 0), (320, "=Q", 0),
        (336, "=Q", 0), (368, "=I", tid),
    ):  # fmt: skip
        struct.pack_into(form, stats, place, value)
    return _message(bytes(stats), tid=tid)


def _recorded(tmp_path: Path, proc: Path, *messages: bytes) -> tuple[TaskIo, list[str]]:
    _Listener.messages = messages
    recorded = TaskIo(tmp_path, time.CLOCK_BOOTTIME, proc, _Listener)
    recorded.start()
    recorded.finish()
    return recorded, (tmp_path / FILE).read_text().splitlines()


_LONG = 10**12  # us: longer than this machine is up


def test_who_lives_has_two_lines_and_who_exits_one_more(tmp_path: Path, proc: Path) -> None:
    recorded, lines = _recorded(
        tmp_path,
        proc,
        _exit(31, b"dd", 0, 23 << 12),
        _exit(32, b"idle", 0, 0),  # dirtied nothing
        _exit(33, b"before", _LONG, 8 << 12),  # exited while we began
        _exit(8, b"lives", _LONG, 5 << 12),  # has an end line
    )
    whens = [line.split()[0] for line in lines]
    assert whens == ["start", "start", "end", "end", "exit"]
    assert lines[-1].endswith(
        " tid=31 tgid=31 write_bytes=94208 cancelled_write_bytes=0 write_char_bytes=2900"
        " read_bytes=3100 read_char_bytes=2300 comm=dd"
    )
    (odd,) = [line for line in lines if line.startswith("start") and " tid=8 " in line]
    assert odd.endswith("write_bytes=8192 cancelled_write_bytes=23 comm=a) b\\n\\\\")
    facts = recorded.facts()
    assert (facts["exits"], facts["taskstats_version"], facts["why_not"]) == ("taskstats", 16, None)
    assert (facts["start_count"], facts["exit_count"], facts["end_count"]) == (2, 1, 2)
    assert recorded.problems() == []


class _Exits(_Listener):
    """Tells of an exit when it is asked to."""

    told: threading.Event

    def exits(self, message: bytes) -> None:
        self.told = threading.Event()
        _Listener.messages = (message,)
        os.write(self._other, b".")
        assert self.told.wait(GUARD_SECONDS)

    def read(self) -> Iterator[bytes]:
        if _Listener.messages:
            os.read(self._end, 1)
            yield from super().read()
            self.told.set()


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_thread_that_exits_while_the_end_is_read_has_one_line(
    tmp_path: Path, is_noted: bool
) -> None:
    """The end of one thread is read from a pipe, and so not before the other is told of."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/io").write_text(_IO.format(0))
    for pid in (6, 7, 8):
        _thread(proc, pid, pid, "dd", _IO.format(4096))
    # In the order in which they are read.
    pids = [int(path.name) for path in proc.iterdir() if path.name != "self"]
    first, last = pids[0], pids[-1]
    listener = _Exits()
    recorded = TaskIo(tmp_path, time.CLOCK_BOOTTIME, proc, lambda: listener)
    recorded.start()
    held = proc / f"{last}/task/{last}/io"
    held.unlink()
    os.mkfifo(held)
    exits = first if is_noted else last
    ending = threading.Thread(target=recorded.finish, daemon=True)
    ending.start()
    with held.open("w") as pipe:  # when it is opened to be read
        listener.exits(_exit(exits, b"dd", _LONG, 5 << 12))
        pipe.write(_IO.format(8192))
    ending.join(GUARD_SECONDS)
    lines = (tmp_path / FILE).read_text().splitlines()
    whens = [line.split()[0] for line in lines if f" tid={exits} " in line]
    assert whens == ["start", "end" if is_noted else "exit"]


@pytest.mark.parametrize(
    ("switch", "delay", "is_told"),
    [("0", 5, False), ("1", 5, True), ("1", 0, True), (None, 5, True), (None, 0, False)],
)
def test_delays_that_nobody_counts_are_not_told(
    tmp_path: Path,
    proc: Path,
    switch: str | None,
    delay: int,
    is_told: bool,
) -> None:
    if switch is not None:
        (proc / "sys/kernel/task_delayacct").write_text(f"{switch}\n")
    _, lines = _recorded(tmp_path, proc, _exit(31, b"dd", 0, 4096, delay))
    assert (f"blkio_delay_ns={delay} " in lines[-1]) == is_told


def test_what_was_lost_is_told(tmp_path: Path, proc: Path) -> None:
    recorded, _ = _recorded(tmp_path, proc, b"")
    assert recorded.facts()["exits_lost"]
    assert len(recorded.problems()) == 1


def test_a_file_without_room(tmp_path: Path, proc: Path) -> None:
    """More lines than ingest reads of a file; the short ones still fit."""
    for tid in (12, 13):
        _thread(proc, 12, tid, "x" * (8 << 20), _IO.format(4096))
    recorded, lines = _recorded(tmp_path, proc, _exit(31, b"dd", 0, 4096))
    assert (tmp_path / FILE).stat().st_size < 16 << 20
    assert len(lines) == 2 + 1 + 2 + 1  # one of the long ones, at the start
    assert recorded.facts()["left_out_count"] == 3
    assert "3 threads are not in task_io" in recorded.problems()[0]


def test_lines_that_memory_has_no_room_for(tmp_path: Path, proc: Path) -> None:
    """Nothing is written meanwhile: they are left out of the counts of lines, too."""
    _thread(proc, 12, 12, "\N{EURO SIGN}" * (11 << 20), _IO.format(4096))
    messages = [_exit(tid, b"dd", 0, 4096) for tid in range(31, 37)]
    recorded, lines = _recorded(tmp_path, proc, *messages)
    facts = recorded.facts()
    told = [facts[f"{when}_count"] for when in ("start", "end", "exit", "left_out")]
    assert told == [2, 2, 6, 2]
    assert len(lines) == 2 + 2 + 6
    assert len(recorded.problems()) == 1
    assert recorded.problems()[0].startswith("2 threads are not in task_io")


def test_refused_taskstats_leaves_those_that_live(tmp_path: Path, proc: Path) -> None:
    def refuse() -> NoReturn:
        raise SetupError("no-taskstats", "taskstats", "wants CAP_NET_ADMIN")

    recorded = TaskIo(tmp_path, time.CLOCK_BOOTTIME, proc, refuse)
    recorded.start()
    recorded.finish()
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["start"] * 4 + ["end"] * 4
    assert (recorded.facts()["exits"], recorded.facts()["why_not"]) == (None, "wants CAP_NET_ADMIN")
    assert recorded.problems() == []


def test_a_kernel_that_counts_nothing(tmp_path: Path, proc: Path) -> None:
    (proc / "self/io").unlink()
    recorded = TaskIo(tmp_path, time.CLOCK_BOOTTIME, proc)
    recorded.start()
    recorded.finish()
    assert not (tmp_path / FILE).exists()
    assert "CONFIG_TASK_IO_ACCOUNTING" in recorded.facts()["why_not"]


def test_the_end_of_a_recorder_that_was_killed(tmp_path: Path, proc: Path) -> None:
    add_living(tmp_path, time.CLOCK_BOOTTIME, proc)
    assert not (tmp_path / FILE).exists()  # it had none
    (tmp_path / FILE).write_text("start ts=1 tid=7 write_b")  # cut short
    for _ in range(2):  # each step of a recovery can be done again
        add_living(tmp_path, time.CLOCK_BOOTTIME, proc)
        lines = (tmp_path / FILE).read_text().splitlines()
        assert [line.split()[0] for line in lines] == ["start"] + ["end"] * 4
