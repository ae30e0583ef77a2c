#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time wbscope against trace-cmd report on one trace, side by side in one run.

usage: bench.py [TRACE] [--runs N] [--markdown FILE]

TRACE is a trace.dat; without one, the largest bundled example is used, which
is too small to say much about speed. Record a large one with
    trace-cmd record -b 65536 -e all dd if=/dev/zero of=FILE bs=4k count=320000
Each round runs every command once, in the same order, so that a machine that
gets slower meanwhile does so for all of them. Quote the ratios, not the times.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KIB = 1024
MIB = KIB * KIB
GOAL_RATIO = 60.0
GOAL_RATIO_ALL = 15.0
GOAL_RATIO_CONVERT = 15.0
TEXT_LINES = 2_000_000  # of trace-cmd report, for the text reader
GOAL_PEAK_MIB = 256.0
GATE_SIDES = ("again", "lower-limit", "slower-disk")  # each against "before": 24 runs
GOAL_GATE_SECONDS = 2.0


@dataclass
class Job:
    """One command and what its runs took."""

    name: str
    command: list[str]
    output: Path | None = None  # the database that it writes
    compared: bool = True  # reads what trace-cmd report reads
    whole: bool = False  # and all of it
    verdicts: tuple[int, ...] = (0,)  # exit codes that are no error
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run once; output is thrown away, the kernel's own accounting is kept."""
        start = time.perf_counter()
        pid = os.posix_spawnp(
            self.command[0],
            self.command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        _, status, usage = os.wait4(pid, 0)
        self.seconds.append(time.perf_counter() - start)
        if (code := os.waitstatus_to_exitcode(status)) not in self.verdicts:
            raise SystemExit(f"bench: exit {code}: {' '.join(self.command)}")
        self.cpu_seconds.append(usage.ru_utime + usage.ru_stime)
        self.peak_mib.append(usage.ru_maxrss / KIB)


def bundled_trace() -> Path:
    return max(ROOT.glob("examples/*/trace.dat"), key=lambda path: path.stat().st_size)


def events_in(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(database)) as run:
        row = run.execute("SELECT value FROM meta WHERE key = 'events_count'").fetchone()
    return int(row[0])


def half_time(program: str, trace: Path, database: Path) -> str:
    """The middle of the trace on its clock, as --time-range takes it."""
    command = [program, "sqlite", str(trace), "-o", str(database), "--force"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with contextlib.closing(sqlite3.connect(database)) as run:
        bounds = "SELECT sum(value) / 2 FROM meta WHERE key IN ('first_ts', 'last_ts')"
        (middle,) = run.execute(bounds).fetchone()
    return f"@{middle}ns"


def write_text(trace: Path, target: Path) -> None:
    """The first lines of trace-cmd report."""
    with (
        subprocess.Popen(["trace-cmd", "report", str(trace)], stdout=subprocess.PIPE) as report,
        target.open("wb") as out,
    ):
        assert report.stdout is not None
        out.writelines(itertools.islice(report.stdout, TEXT_LINES))
        report.kill()


def machine() -> str:
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MIB / KIB
    return f"{os.cpu_count()} CPUs ({cpu}), {memory:.0f} GiB memory, Linux {platform.release()}"


def table(jobs: list[Job], trace: Path, events: int) -> str:
    base = statistics.median(jobs[0].seconds)
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}",
        f"trace: {events:,} events, {trace.stat().st_size / MIB:.1f} MiB; "
        f"medians of {len(jobs[0].seconds)} rounds",
        "",
        "| command | time s | min to max | CPU s | peak MiB | million events/s "
        "| times faster than trace-cmd report |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for job in jobs:
        median = statistics.median(job.seconds)
        read = events_in(job.output) if job.output else events
        rate = f"{read / median / 1e6:.2f}" if job.output or job.whole else "-"
        ratio = f"{base / median:.1f}" if job.compared else "-"
        lines.append(
            f"| {job.name} | {median:.2f} | {min(job.seconds):.2f} to {max(job.seconds):.2f} "
            f"| {statistics.median(job.cpu_seconds):.2f} | {max(job.peak_mib):.0f} "
            f"| {rate} | {ratio} |"
        )
    return "\n".join(lines)


def gate_line(wbscope: str, rounds: int) -> str:
    """How long it takes to judge the 24 runs of examples/gate: three gates, one after the other."""
    folder = ROOT / "examples/gate"
    words = ["--policy", str(folder / "gate.toml"), "--baseline", str(folder / "before.json")]
    jobs = [
        Job(side, [wbscope, "gate", str(folder / f"{side}.json"), *words], verdicts=(0, 1, 4))
        for side in GATE_SIDES
    ]
    for number in range(rounds):
        print(f"round {number + 1}: wbscope gate", file=sys.stderr)
        for job in jobs:
            job.run()
    seconds = sum(statistics.median(job.seconds) for job in jobs)
    cpu = sum(statistics.median(job.cpu_seconds) for job in jobs)
    most = max(statistics.median(job.seconds) for job in jobs)
    return (
        f"24 runs of examples/gate judged: {seconds:.2f} s in three gates, CPU {cpu:.2f} s, "
        f"the longest {most:.2f} s (goal under {GOAL_GATE_SECONDS:.0f} s)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    trace: Path = arguments.trace or bundled_trace()
    if not trace.is_file():
        parser.error(f"{trace}: no such file")
    if shutil.which("trace-cmd") is None:
        parser.error("trace-cmd is not installed; make setup, then apt-get install trace-cmd")
    wbscope = str(Path(sys.executable).parent / "wbscope")
    program = str(Path(sys.executable).parent / "wbscope-ingest")

    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        database = Path(folder) / "run.db"
        text = Path(folder) / "report.txt"
        write_text(trace, text)
        outputs = {
            name: Path(folder) / f"{name}.db"
            for name in ("count", "all", "half", "first", "part", "text")
        }
        converted = Path(folder) / "trace.pftrace"
        middle = half_time(program, trace, outputs["count"])
        ingest = [wbscope, "ingest", "--force", "--quiet"]

        def ingest_job(name: str, source: Path, output: Path, *options: str) -> Job:
            command = [*ingest, str(source), "-o", str(output), *options]
            return Job(f"wbscope ingest {name}", command, output, source == trace)

        jobs = [
            Job("trace-cmd report", ["trace-cmd", "report", str(trace)], whole=True),
            ingest_job("(writeback profile)", trace, database),
            Job(
                "wbscope-ingest, count only",
                [program, "sqlite", str(trace), "-o", str(outputs["count"]), "--force"],
                outputs["count"],
            ),
            ingest_job("--all", trace, outputs["all"], "--all"),
            Job(
                "wbscope convert",
                [wbscope, "convert", "--force", "--quiet", str(trace), "-o", str(converted)],
                whole=True,
            ),
            ingest_job(
                "--all, first half of the time",
                trace,
                outputs["half"],
                "--all",
                "--time-range",
                f"..{middle}",
            ),
            ingest_job("--all --limit 1", trace, outputs["first"], "--all", "--limit", "1"),
            ingest_job(
                "--all --time-range 5s..5.1s",
                trace,
                outputs["part"],
                "--all",
                "--time-range",
                "5s..5.1s",
            ),
            ingest_job(
                f"--all, first {TEXT_LINES:,} lines of text", text, outputs["text"], "--all"
            ),
            Job("wbscope report, all answers", [wbscope, "report", str(database)]),
        ]
        for number in range(arguments.runs):
            for job in jobs:
                print(f"round {number + 1}: {job.name}", file=sys.stderr)
                job.run()
        result = table(jobs, trace, events_in(database))

    base = statistics.median(jobs[0].seconds)
    ratio = {job.name: base / statistics.median(job.seconds) for job in jobs}
    peak = max(peak for job in jobs[1:] for peak in job.peak_mib)
    verdict = (
        f"writeback profile: {ratio['wbscope ingest (writeback profile)']:.1f}x "
        f"(goal {GOAL_RATIO:.0f}x), --all: {ratio['wbscope ingest --all']:.1f}x "
        f"(goal {GOAL_RATIO_ALL:.0f}x), convert: {ratio['wbscope convert']:.1f}x "
        f"(goal {GOAL_RATIO_CONVERT:.0f}x), peak of all {peak:.0f} MiB "
        f"(goal under {GOAL_PEAK_MIB:.0f} MiB)"
    )
    if arguments.trace is None:
        verdict += "; on the small bundled trace start-up time decides: give a large TRACE=..."
    verdict += f"\n\n{gate_line(wbscope, arguments.runs)}"
    print(result + "\n\n" + verdict)
    if arguments.markdown:
        arguments.markdown.write_text(result + "\n\n" + verdict + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
