#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time an earlier revision and this tree side by side in one run: what got faster, and by how much.

usage: bench_before.py REVISION [TRACE] [--rounds N] [--markdown FILE]

The revision is cloned and set up in build/before, which stays. Each of the two reads TRACE, the
largest bundled one unless it is given, and a run with a million events that its own
tools/bench_queries.py makes. Every round runs each command of one and then of the other, with an
empty cache but where it says again; the last column is the ratio of the medians of CPU time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench import ROOT, Job, bundled_trace, machine

EVENTS = 1_000_000
EXAMPLE = "rate-limited-writers"
AGAIN = "query event_counts, asked again"
# Run by the Python of each: its own library, its own columns.
MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import bench_queries
database = Path(sys.argv[2])
bench_queries.ingest(sys.argv[3], database)
bench_queries.repeat(database, int(sys.argv[4]))
"""
NAMES = """
import sys
sys.path.insert(0, sys.argv[1])
import bench_queries
print(*sorted(query.name for query in bench_queries.load_library().queries()))
"""
ASK = """
import sys
import wbscope
with wbscope.open(sys.argv[1]) as run:
    for name in sys.argv[2:]:
        try:
            run.query(name)
        except Exception as error:
            if type(error).__name__ != "EvidenceError":
                raise
"""


@dataclass
class Side:
    """One of the two, and the files that are its own."""

    tree: Path
    folder: Path

    @property
    def python(self) -> str:
        return str(self.tree / ".venv/bin/python")

    @property
    def wbscope(self) -> str:
        return str(self.tree / ".venv/bin/wbscope")

    @property
    def run(self) -> Path:
        return self.folder / "million.db"

    def tell(self, script: str, *words: str | Path) -> str:
        command = [self.python, "-c", script, str(self.tree / "tools"), *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def jobs(self, trace: Path, names: list[str]) -> list[Job]:
        """What is timed, in the same order for both."""
        read, run, output = str(trace), str(self.run), ["--force", "-o", str(self.folder / "out")]
        asked = {
            "--help": ["--help"],
            AGAIN: ["query", "event_counts", run],
            "ingest TRACE": ["ingest", read, *output],
            "ingest --all TRACE": ["ingest", "--all", read, *output],
            "report TRACE": ["report", read],
            "report of a million events": ["report", run],
            "timeline of a million events": ["timeline", run, *output],
        }
        session = [self.python, "-c", ASK, run, *names]
        return [
            *(Job(name, [self.wbscope, *words]) for name, words in asked.items()),
            Job(f"{len(names)} queries of a million events in one session", session),
        ]

    def time(self, job: Job) -> None:
        """Run it as if for the first time, or once more."""
        os.environ["WBSCOPE_CACHE_DIR"] = str(self.folder / "cache")
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        if job.name == AGAIN:
            Job(job.name, job.command).run()
        job.run()


def set_up(revision: str) -> Path:
    """A work tree of the revision with what `make setup` makes."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        raise SystemExit(f"bench: found no commit {revision}; see: git log --oneline")
    tree = ROOT / "build/before" / found.stdout.strip()
    if not tree.exists():
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(tree)]
        subprocess.run(clone, check=True)
    checkout = ["git", "checkout", "--quiet", "--detach", tree.name]
    subprocess.run(checkout, cwd=tree, check=True)
    subprocess.run(["make", "setup"], cwd=tree, check=True, stdout=sys.stderr)
    return tree


def table(before: list[Job], now: list[Job], revision: str, rounds: int) -> str:
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}; before: {revision}; medians of {rounds} rounds",
        "",
        "| command | s, before | now | CPU s, before | now | MiB, before | now | times less CPU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for old, new in zip(before, now, strict=True):
        cpu = [statistics.median(job.cpu_seconds) for job in (old, new)]
        cells = [
            *(f"{statistics.median(job.seconds):.2f}" for job in (old, new)),
            *(f"{seconds:.2f}" for seconds in cpu),
            *(f"{max(job.peak_mib):.0f}" for job in (old, new)),
            f"{cpu[0] / cpu[1]:.1f}",
        ]
        lines.append(f"| {new.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision")
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    trace: Path = arguments.trace or bundled_trace()
    if not trace.is_file():
        parser.error(f"{trace}: no such file")
    tree = set_up(arguments.revision)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        sides = [Side(tree, Path(scratch) / "before"), Side(ROOT, Path(scratch) / "now")]
        for side in sides:
            side.folder.mkdir()
            side.tell(MAKE, side.run, EXAMPLE, str(EVENTS))
        names = sorted(set.intersection(*(set(side.tell(NAMES).split()) for side in sides)))
        jobs = [side.jobs(trace.resolve(), names) for side in sides]
        for number in range(arguments.rounds):
            for pair in zip(*jobs, strict=True):
                for side, job in zip(sides, pair, strict=True):
                    print(f"round {number + 1}: {job.name}, {side.folder.name}", file=sys.stderr)
                    side.time(job)
        result = table(*jobs, arguments.revision, arguments.rounds)
    print(result)
    if arguments.markdown:
        arguments.markdown.write_text(result + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
