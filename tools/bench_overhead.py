#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs: a 4-writer dd with no recording and with each profile, in turns.

usage: bench_overhead.py [--dir DIR] [--times 40] [--rounds 7] [--dirty-bytes 64M]
                         [--profiles writeback,reclaim,deep] [--memory 128M]

Each writer writes a file of 64 MiB over and over: pages that are new to the machine below a
virtual one cost more than all that is measured here, and never the same.
Each round runs every mode once, in an order that moves on from round to round. What is
shown is the median over the rounds of (throughput recorded / throughput off) of the same
round, so that a slow drift of the machine does not count, with the interval of that median
that holds for any distribution. The same for the time of all CPUs: that of the round less
what they were idle, so that the work of the flusher and of the recorder counts, and a wait
for the disk does not. Needs root and a machine with nothing else to do. Without --dir the
files are on a loop-mounted ext4 in --image's folder: one in /dev/shm takes the noise of a
disk away, and shows what recording costs where the CPUs are all there is.
With --memory the writers are in a memory cgroup that is smaller than their files, so that
reclaim is busy and has events to record.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scipy.stats import binom

_WRITERS = 4
_FILE_MIB = 64
_OFF = "off"
_PROFILES = "writeback,reclaim,deep"
_LEVEL = 0.95
_REST_SECONDS = 1
_WBSCOPE = Path(sys.executable).with_name("wbscope")
_NS_PER_S = 10**9


@dataclass
class Mode:
    """What the rounds of one mode gave."""

    rates: list[float] = field(default_factory=list)  # MiB/s
    busy_s: list[float] = field(default_factory=list)  # of all CPUs together
    events_per_s: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)  # of all CPUs, that the recorder took
    lost: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=Path, help="where dd writes: the disk under test")
    parser.add_argument("--image", type=Path, default=Path("/var/tmp"), help="folder of the image")
    parser.add_argument("--runs", type=Path, default=Path("/dev/shm"), help="folder of the traces")
    parser.add_argument("--times", type=int, default=40, help="that each writes its file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dirty-bytes", default="64M", help="so that writers are throttled")
    parser.add_argument("--profiles", default=_PROFILES, help="with commas between them")
    parser.add_argument("--memory", help="limit of the writers' memory cgroup: 128M")
    options = parser.parse_args()
    names = (_OFF, *options.profiles.split(","))
    modes = {name: Mode() for name in names}
    with (
        _files(options) as folder,
        tempfile.TemporaryDirectory(dir=options.runs) as runs,
        _limits(options.dirty_bytes),
        _cgroup(options.memory) as tasks,
    ):
        # Warms up, is not counted: pages of the image are charged to nobody, those of files
        # go, to be charged to the cgroup.
        outside = _command(folder, Path(runs), 1, Path("/dev/null"))
        _run(_OFF, outside, Path(runs), 1, Mode())
        for file in folder.glob("zero-*"):
            drop = ["dd", f"of={file}", "count=0", "conv=notrunc,fdatasync", "oflag=nocache"]
            subprocess.run(drop, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        command = _command(folder, Path(runs), options.times, tasks)
        _run(_OFF, command, Path(runs), options.times, Mode())
        for number in range(options.rounds):
            order = names[number % len(names) :] + names[: number % len(names)]
            for name in order:
                _run(name, command, Path(runs), options.times, modes[name])
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    _show(modes, options)
    return 0


def _command(folder: Path, runs: Path, times: int, tasks: Path) -> list[str]:
    """The writers: they join the cgroup of the file `tasks` and write down how long they took.

    With it, how long the CPUs were idle until then, as /proc/stat has it.
    """
    writers = " ".join(str(number) for number in range(_WRITERS))
    write = f"dd if=/dev/zero of=$0/zero-$i bs=1M count={_FILE_MIB} conv=notrunc"
    script = f"for i in {writers}; do (for n in $(seq {times}); do {write}; done) & done; wait"
    # The same rest before each, and the same watch.
    now = "date +%s%N; head -n 1 /proc/stat"
    timed = f"sleep {_REST_SECONDS}; {now}; {{ {script}; }} 2>/dev/null; {now}"
    return ["sh", "-c", f"echo $$ > $2; {{ {timed}; }} > $1", str(folder), str(runs / "took"),
            str(tasks)]  # fmt: skip


def _run(name: str, command: list[str], runs: Path, times: int, mode: Mode) -> None:
    subprocess.run(["sync"], check=True)
    if name == _OFF:
        subprocess.run(command, check=True)
    else:
        run = runs / "run"
        done = subprocess.run(
            [_WBSCOPE, "record", "--profile", name, "--no-report", "-q", "-o", run, "--", *command],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        meta = json.loads((run / "meta.json").read_text())
        mode.lost += sum(meta["lost"].values())
        # With the rest before the writers, in which it has less to do.
        recorded_ns = meta["ended_ts_ns"] - meta["command_started_ts_ns"]
        mode.shares.append(meta["recorder_cpu_ns"] / recorded_ns / (os.cpu_count() or 1))
        events = _events(run)
        shutil.rmtree(run)
    began, idle_before, ended, idle_after = (runs / "took").read_text().splitlines()
    duration_ns = int(ended) - int(began)
    idle_s = _idle_s(idle_after) - _idle_s(idle_before)
    mode.busy_s.append((os.cpu_count() or 1) * duration_ns / _NS_PER_S - idle_s)
    if name != _OFF:
        mode.events_per_s.append(events * _NS_PER_S / duration_ns)
    mode.rates.append(_WRITERS * _FILE_MIB * times * _NS_PER_S / duration_ns)


def _idle_s(line: str) -> float:
    """Idle, and idle with a request in flight, of all CPUs."""
    _, _, _, _, idle, iowait, *_ = line.split()
    return (int(idle) + int(iowait)) / os.sysconf("SC_CLK_TCK")


def _events(run: Path) -> int:
    done = subprocess.run(
        [_WBSCOPE, "query", "event_counts", run, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(row["count"] for row in json.loads(done.stdout)["rows"])


def _show(modes: dict[str, Mode], options: argparse.Namespace) -> None:
    print(
        f"{_WRITERS} writers of {options.times} x {_FILE_MIB} MiB,"
        f" vm.dirty_bytes {options.dirty_bytes}, memory {options.memory or 'of the machine'},"
        f" {options.rounds} rounds;"
        f" ratio: median [its {100 * _LEVEL:.0f} % interval] (lowest to highest) of the rounds"
    )
    heads = ["profile", "MiB/s", "ratio to off", "CPU s", "ratio to off"]
    heads += ["recorder, % of all CPUs", "events/s", "lost events"]
    print("\n" + "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads))))
    off = modes[_OFF]
    for name, mode in modes.items():
        is_off = name == _OFF
        cells = [
            name,
            f"{statistics.median(mode.rates):.0f}",
            "1" if is_off else _ratio(mode.rates, off.rates),
            f"{statistics.median(mode.busy_s):.2f}",
            "1" if is_off else _ratio(mode.busy_s, off.busy_s),
            "-" if is_off else f"{100 * statistics.median(mode.shares):.2f}",
            f"{statistics.median(mode.events_per_s):.0f}" if mode.events_per_s else "-",
            "-" if is_off else str(mode.lost),
        ]
        print(f"| {' | '.join(cells)} |")


def _ratio(values: list[float], of_off: list[float]) -> str:
    ratios = sorted(value / base for value, base in zip(values, of_off, strict=True))
    low, high = _of_the_median(ratios)
    middle = f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]"
    return f"{middle} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def _of_the_median(ordered: list[float]) -> tuple[float, float]:
    """The values between which the true median lies, by the binomial distribution."""
    left_out = int(binom.ppf((1 - _LEVEL) / 2, len(ordered), 0.5)) - 1  # at each end
    if left_out < 0:  # so few values do not tell
        return 0.0, math.inf
    return ordered[left_out], ordered[-1 - left_out]


@contextmanager
def _files(options: argparse.Namespace) -> Iterator[Path]:
    """--dir, or a file system of our own that is gone afterwards."""
    if options.dir is not None:
        with tempfile.TemporaryDirectory(dir=options.dir) as made:
            yield Path(made)
        return
    with tempfile.TemporaryDirectory(dir=options.image) as made:
        image, mount = Path(made) / "image", Path(made) / "mnt"
        mount.mkdir()
        size = _WRITERS * _FILE_MIB * 2 + 64
        subprocess.run(["truncate", "-s", f"{size}M", image], check=True)
        subprocess.run(["mkfs.ext4", "-qF", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        try:
            yield mount
        finally:
            subprocess.run(["umount", mount], check=True)


@contextmanager
def _cgroup(memory: str | None) -> Iterator[Path]:
    """The file by which a task joins a cgroup with this limit; without a limit, no cgroup."""
    if memory is None:
        yield Path("/dev/null")
        return
    top, limit, control = Path("/sys/fs/cgroup"), "memory.max", None
    if (top / "cgroup.controllers").exists():
        if "memory" not in (top / "cgroup.subtree_control").read_text().split():
            control = top / "cgroup.subtree_control"
            control.write_text("+memory")
    else:
        top, limit = top / "memory", "memory.limit_in_bytes"
    made = top / f"bench-overhead-{os.getpid()}"
    made.mkdir()
    try:
        (made / limit).write_text(memory)
        yield made / "cgroup.procs"
    finally:
        made.rmdir()
        if control is not None:
            control.write_text("-memory")


@contextmanager
def _limits(dirty_bytes: str) -> Iterator[None]:
    from wbscope.record.settings import change, parse_settings, restore, saved_values

    wanted = parse_settings([f"vm.dirty_bytes={dirty_bytes}"])
    wanted["vm.dirty_background_bytes"] = str(int(wanted["vm.dirty_bytes"]) // 2)
    saved = saved_values(wanted)
    change(wanted)
    try:
        yield
    finally:
        restore(saved)


if __name__ == "__main__":
    sys.exit(main())
