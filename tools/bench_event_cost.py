#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs, counted: the time of an event, and the CPU time of the recorder.

usage: bench_event_cost.py [--rounds 40] [--reads 500] [--seconds 20] [--probes]

Throughput with and without a recording (bench_overhead.py) differs by less than it varies.
Here the parts are counted: writeback:global_dirty_state fires for each read of /proc/vmstat,
so the time of reads with and without it, in turns, is that of an event; and all CPU time
that is used while a recorded command sleeps is the recorder's. Needs root and a machine
with nothing else to do.

With --probes: the time of an entry and a return, with arguments as record has them, of a
function that is called for each new name of a thread, beside that of the event task_rename,
which fires there, too. A guest on an emulated CPU is slow in all of them: the ratio counts.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_TRACEFS = Path("/sys/kernel/tracing")
_EVENT = "writeback/global_dirty_state"
_WBSCOPE = Path(sys.executable).with_name("wbscope")
_PROFILES = ("writeback", "reclaim", "deep")
_RENAMED = "task/task_rename"
_FUNCTION, _GROUP = "__set_task_comm", "wbscope_bench"
_ENTRY, _RETURN = "wb=$arg1:x64 pages=$arg3:u64", "ret=$retval:s32"
_PROBES = {  # lines that a kernel may take, the first that it does
    "fprobe": ((f"f:{_GROUP}/in {_FUNCTION} {_ENTRY}",),
               (f"f1024:{_GROUP}/out {_FUNCTION}%return", f"f:{_GROUP}/out {_FUNCTION}%return")),
    "kprobe": ((f"p:{_GROUP}/in {_FUNCTION} {_ENTRY}",),
               (f"r1024:{_GROUP}/out {_FUNCTION} {_RETURN}", f"r1024:{_GROUP}/out {_FUNCTION}")),
}  # fmt: skip
_PR_SET_NAME = 15
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--reads", type=int, default=500, help="of /proc/vmstat in a round")
    parser.add_argument("--seconds", type=int, default=20, help="that a command sleeps")
    parser.add_argument("--probes", action="store_true", help="the time of two of them instead")
    options = parser.parse_args()
    if options.probes:
        rename = ctypes.CDLL(None).prctl
        _show("task_rename", _RENAMED, 1, lambda: rename(_PR_SET_NAME, b"bench"), options)
        for kind, lines in _PROBES.items():
            with _probes(lines) as made:
                if made:
                    told = f"entry and return by {kind}"
                    _show(told, _GROUP, 2, lambda: rename(_PR_SET_NAME, b"bench"), options)
        return 0
    with open("/proc/vmstat", "rb", buffering=0) as vmstat:

        def read() -> None:
            vmstat.seek(0)
            vmstat.read(1 << 16)

        _show("an event", _EVENT, 1, read, options)
    print(f"\nCPU time, % of one CPU, while a command sleeps {options.seconds} s:")
    print(f"\n| recording | % |\n|---|---:|\n| none | {_busy([], options.seconds):.2f} |")
    for profile in _PROFILES:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            record = [_WBSCOPE, "record", "--profile", profile, "--no-report", "-q"]
            record += ["-o", f"{folder}/run", "--"]
            print(f"| {profile} | {_busy(record, options.seconds):.2f} |")
    return 0


def _show(
    name: str, events: str, each: int, call: Callable[[], object], options: argparse.Namespace
) -> None:
    """The time of what fires `each` times in a call."""
    off, on = _calls(options.rounds, options.reads, events, each, call)
    differences = sorted(b - a for a, b in zip(off, on, strict=True))
    quarter = len(differences) // 4
    print(
        f"{name}: {min(on) - min(off):.0f} ns by the fastest rounds,"
        f" {statistics.median(differences):.0f} ns in the median of {options.rounds} rounds"
        f" (quartiles {differences[quarter]:.0f} to {differences[-1 - quarter]:.0f} ns)"
    )


def _calls(
    rounds: int, calls: int, events: str, each: int, call: Callable[[], object]
) -> tuple[list[float], list[float]]:
    """Nanoseconds of a call in each round, with the events off and on."""
    found: tuple[list[float], list[float]] = ([], [])
    with _instance() as instance:
        switch = instance / "events" / events / "enable"
        for number in range(2 * rounds):
            is_on = number % 2 ^ (number // 2) % 2  # off on, on off: no drift counts
            switch.write_text(str(is_on))
            before = _events(instance)
            began = time.monotonic_ns()
            for _ in range(calls):
                call()
            found[is_on].append((time.monotonic_ns() - began) / calls)
            fired = _events(instance) - before
            wanted = is_on * calls * each
            if not wanted <= fired <= wanted * 1.05 + calls * 0.01:
                sys.exit(f"{fired} events for {calls} calls: the machine has something else to do")
    return found


@contextmanager
def _probes(wanted: tuple[tuple[str, ...], ...]) -> Iterator[bool]:
    """Whether the kernel takes one line of each."""
    made: list[str] = []
    try:
        for lines in wanted:
            made += [line.split()[0].partition(":")[2] for line in lines if _append(line)][:1]
        yield len(made) == len(wanted)
    finally:
        for event in made:
            _append(f"-:{event}")


def _append(line: str) -> bool:
    """A line that stands there already is refused."""
    number = os.open(_TRACEFS / "dynamic_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(number, f"{line}\n".encode())
    except OSError:
        return False
    finally:
        os.close(number)
    return True


@contextmanager
def _instance() -> Iterator[Path]:
    instance = _TRACEFS / "instances" / f"wbscope-bench-{os.getpid()}"
    instance.mkdir()
    try:
        yield instance
    finally:
        (instance / "events/enable").write_text("0")
        instance.rmdir()


def _events(instance: Path) -> int:
    """All that fired, those too that were overwritten."""
    wanted = ("entries", "overrun")
    texts = [path.read_text() for path in instance.glob("per_cpu/cpu*/stats")]
    lines = [line.split(": ") for text in texts for line in text.splitlines()]
    return sum(int(value) for name, value in lines if name in wanted)


def _busy(recording: list[str | Path], seconds: int) -> float:
    """Percent of one CPU that all CPUs together were busy while the command slept."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as lines:
        script = f"(head -n 1 /proc/stat; sleep {seconds}; head -n 1 /proc/stat) > $0"
        subprocess.run([*recording, "sh", "-c", script, lines.name], check=True)
        first, last = ([int(field) for field in line.split()[1:9]] for line in lines)
    spent = [after - before for before, after in zip(first, last, strict=True)]
    user, nice, system, _idle, _waiting, irq, softirq, _stolen = spent
    return 100 * (user + nice + system + irq + softirq) / _TICKS_PER_S / seconds


if __name__ == "__main__":
    sys.exit(main())
