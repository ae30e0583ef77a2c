#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time every canned query, the verdict and the timeline of a run with a million events.

usage: bench_queries.py [--events N] [--runs N] [--example NAME] [--markdown FILE]

The run is made here: a bundled example's database, its events repeated one copy
after the other with times and numbers moved on. Each round asks every query alone,
in a session of its own, and then all in one session, announced, as `report --full` does:
both on a run that nobody has asked anything and on one that was asked before. That is
the run as the cache has it, of a trace that a command was given, and as `wbscope ingest`
leaves it, with the steps of the views and the findings.
Times are those of opening, asking and fetching, without Python's start. "In scans" is
the first time alone over that of reading one column of the table once with plain SQL:
quote it, not the seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import wbscope
from bench import MIB, ROOT, machine
from wbscope.base.errors import EvidenceError
from wbscope.library.library import load_library
from wbscope.library.sqlite import SqliteEngine
from wbscope.run.ingested import add_views
from wbscope.run.ingested import ingest as ingest_run
from wbscope.source.source import find_source

GOAL_ALL_SECONDS = 3.0
GOAL_ONE_SECONDS = 1.0
GOAL_VIEW_SECONDS = 2.0
GOAL_VERDICT_SECONDS = 2.0
TABLE = "ev_balance_dirty_pages"
# One copy begins so long after the end of the one before.
GAP_NS = 1_000_000
VERDICT = "verdict"


def ingest(example: str, database: Path) -> None:
    program = str(Path(sys.executable).parent / "wbscope")
    command = [program, "ingest", "-q", str(ROOT / "examples" / example), "-o", str(database)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def ingest_without_views(example: str, database: Path) -> None:
    """As the cache has it."""
    run = find_source(str(ROOT / "examples" / example))
    ingest_run(run, database, load_library(), views=False)


def save_views(database: Path, cache: Path) -> float:
    """What `wbscope ingest` adds to a database and notes in the cache; the seconds it takes."""
    os.environ["WBSCOPE_CACHE_DIR"] = str(cache)
    start = time.perf_counter()
    engines: list[SqliteEngine] = []
    add_views(database, database, load_library(), engines)
    for engine in engines:
        engine.rename(database)
        engine.close()
    return time.perf_counter() - start


def repeat(database: Path, events: int) -> int:
    """Repeat all records until there are `events` throttle events; the number of copies."""
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        meta = dict(db.execute("SELECT key, value FROM meta"))
        (count,) = db.execute(f"SELECT count(*) FROM {TABLE}").fetchone()
        copies = -(-events // count)
        tables = dict(
            db.execute("SELECT event, table_name FROM event_format WHERE table_name IS NOT NULL")
        )
        step = {"ts": meta["last_ts"] - meta["first_ts"] + GAP_NS}
        step["seq"] = step["prev_seq"] = 1 + max(
            db.execute(f"SELECT coalesce(max(seq), 0) FROM {table}").fetchone()[0]
            for table in tables.values()
        )
        for table in (*tables.values(), "time_index"):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            moved = (
                f'e."{name}" + c.i * {step[name]}' if name in step else f'e."{name}"'
                for name in columns
            )
            db.execute(
                f"INSERT INTO {table} WITH RECURSIVE c(i) AS"
                f" (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < {copies - 1})"
                f" SELECT {', '.join(moved)} FROM c CROSS JOIN {table} AS e"
                f" WHERE e.seq < {step['seq']} AND {copies} > 1"
            )
        link_copies(db, tables, step["seq"])
        db.execute(
            "UPDATE event_counts SET count = count * ?1, loaded_count = loaded_count * ?1",
            (copies,),
        )
        db.execute(
            "UPDATE event_task SET loaded_count = loaded_count * ?1, last_seq = last_seq + ?2",
            (copies, step["seq"] * (copies - 1)),
        )
        db.execute(
            "UPDATE meta SET value = value + ? WHERE key = 'last_ts'", (step["ts"] * (copies - 1),)
        )
        db.execute("UPDATE task SET last_ts = last_ts + ?", (step["ts"] * (copies - 1),))
    return copies


def link_copies(db: sqlite3.Connection, tables: dict[str, str], first_copy: int) -> None:
    """The first records of a copy come after those of the copy before."""
    groups: dict[str, set[str]] = defaultdict(set)
    files = load_library().files.values()
    for file in files:
        groups[file.group].update(file.source_events if file.group else ())
    for file in files:
        same = "AND p.tid = e.tid" if file.previous == "tid" else ""
        for event in file.source_events:
            if file.previous and event in tables:
                before = " UNION ALL ".join(
                    f"SELECT max(p.seq) AS seq FROM {tables[name]} AS p WHERE p.seq < e.seq {same}"
                    for name in {event, *groups[file.group]}
                    if name in tables
                )
                db.execute(
                    f"UPDATE {tables[event]} AS e SET prev_seq = (SELECT max(b.seq) FROM ({before})"
                    " AS b) WHERE e.prev_seq IS NULL AND e.seq >= ?",
                    (first_copy,),
                )


def check(small: Path, large: Path, copies: int) -> None:
    """A run that is not what it should be must not be timed."""
    sums = []
    for database in (small, large):
        with wbscope.open(database) as run:
            rows = run.query("throttle_by_task").rows
            columns = run.query("throttle_by_task").columns
        wanted = [columns.index(name) for name in ("calls_count", "pauses_count", "pause_total_ns")]
        sums.append([sum(row[i] for row in rows) for i in wanted])
    if sums[1] != [copies * value for value in sums[0]]:
        raise SystemExit(f"bench: found {sums[1]} in {copies} copies of {sums[0]}")


def scan_seconds(database: Path) -> float:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        start = time.perf_counter()
        db.execute(f"SELECT sum(pause) FROM {TABLE}").fetchone()
        return time.perf_counter() - start


def timeline(database: Path, folder: Path) -> tuple[float, float]:
    """Seconds for the timeline of a run, and its size in MiB."""
    program = str(Path(sys.executable).parent / "wbscope")
    output = folder / "large.pftrace"
    start = time.perf_counter()
    command = [program, "timeline", "-q", str(database), "-o", str(output), "--force"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start, output.stat().st_size / MIB


class Clock:
    """Asks queries of one run, with a cache of its own, and notes how long it took."""

    def __init__(self, run: Path, cache: Path, known: Path | None = None) -> None:
        """`known` is a cache that its ingest has left."""
        self._run = run
        self._cache = cache
        self._known = known
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.rows: dict[str, str] = {}

    def round(self, names: list[str]) -> None:
        """Every query alone and all in one session, asked for the first time and again."""
        os.environ["WBSCOPE_CACHE_DIR"] = str(self._cache)
        for name in names:
            self._forget()
            self._ask("alone", [name])
        self._forget()
        self._ask("session", names)
        for name in names:
            self._ask("alone again", [name])
        self._ask("session again", names)
        self._forget()
        self._judge("alone")
        self._judge("alone again")

    def seconds(self, how: str, name: str) -> float:
        return statistics.median(self._seconds[how, name])

    def total(self, how: str, names: list[str]) -> float:
        rounds = zip(*(self._seconds[how, name] for name in names), strict=True)
        return statistics.median(map(sum, rounds))

    def slowest(self, how: str, names: list[str]) -> str:
        name = max(names, key=lambda name: self.seconds(how, name))
        return f"{name} {self.seconds(how, name):.2f} s"

    def _ask(self, how: str, names: list[str]) -> None:
        start = time.perf_counter()
        with wbscope.open(self._run) as run:
            for name in run.expect(names) if len(names) > 1 else names:
                try:
                    self.rows[name] = f"{len(run.query(name).rows):,}"
                except EvidenceError:
                    self.rows[name] = "not recorded"
                now = time.perf_counter()
                self._seconds[how, name].append(now - start)
                start = now
        # With what closing keeps for the next session.
        self._seconds[how, name][-1] += time.perf_counter() - start

    def _judge(self, how: str) -> None:
        start = time.perf_counter()
        with wbscope.open(self._run) as run:
            run.findings()
        self._seconds[how, VERDICT].append(time.perf_counter() - start)

    def _forget(self) -> None:
        """All that was kept of the run; the library as it is read stays, as it does for a user."""
        shutil.rmtree(self._cache, ignore_errors=True)
        if self._known is not None:
            shutil.copytree(self._known, self._cache)
        load_library()


def slowest_view(example: str, folder: Path) -> str:
    """Which saved view of this run takes plain SQLite longest, and how long."""
    database = folder / f"{example}.db"
    ingest(example, database)
    library = load_library()
    taken = {}
    for view in (file.name for file in library.files.values() if file.is_public()):
        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            start = time.monotonic()
            for _ in db.execute(f"SELECT * FROM {view}"):
                pass
            taken[view] = time.monotonic() - start
    slowest = max(taken, key=lambda view: taken[view])
    return f"{example} {slowest} {taken[slowest]:.2f} s"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--example", default="rate-limited-writers")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    scans = []
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        small, large = Path(folder) / "small.db", Path(folder) / "large.db"
        saved, known = Path(folder) / "saved.db", Path(folder) / "known"
        for database in (small, large):
            ingest_without_views(arguments.example, database)
        copies = repeat(large, arguments.events)
        shutil.copyfile(large, saved)
        saving = save_views(saved, known)
        clock = Clock(large, Path(folder) / "cache")
        after = Clock(saved, Path(folder) / "cache", known)
        check(small, large, copies)
        names = [query.name for query in load_library().queries()]
        for number in range(arguments.runs):
            print(f"round {number + 1} of the queries", file=sys.stderr)
            scans.append(scan_seconds(large))
            clock.round(names)
            after.round(names)
        print("timeline", file=sys.stderr)
        drawn = [timeline(large, Path(folder)) for _ in range(arguments.runs)]
        print("saved views", file=sys.stderr)
        traces = sorted((ROOT / "examples").glob("*/trace.dat"))
        plain = [slowest_view(trace.parent.name, Path(folder)) for trace in traces]
        size, size_saved = (path.stat().st_size / MIB for path in (large, saved))
        with contextlib.closing(sqlite3.connect(large)) as db:
            counts = dict(db.execute("SELECT event, loaded_count FROM event_counts"))
    scan = statistics.median(scans)
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {machine()}",
        f"run: {copies} copies of examples/{arguments.example}, {size:.0f} MiB, "
        f"{counts['writeback:balance_dirty_pages']:,} balance_dirty_pages and "
        f"{counts['writeback:global_dirty_state']:,} global_dirty_state events; "
        f"medians of {arguments.runs} rounds; one scan {scan:.2f} s",
        "",
        f"with what ingest saves: {saving:.1f} s more, {size_saved:.0f} MiB",
        "",
        "| query | rows | alone s | in one session s | alone again s | alone, in scans "
        "| after ingest: alone s | in one session s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        first, shared, again = (
            clock.seconds(how, name) for how in ("alone", "session", "alone again")
        )
        lines.append(
            f"| {name} | {clock.rows[name]} | {first:.2f} | {shared:.2f} | {again:.2f} "
            f"| {first / scan:.0f} "
            f"| {after.seconds('alone', name):.2f} | {after.seconds('session', name):.2f} |"
        )
    lines.append("")
    for timed, of in ((clock, "of a trace"), (after, "after ingest")):
        for how, told in (("", "asked for the first time"), (" again", "asked again")):
            lines.append(
                f"{of}, {told}: all in one session {timed.total('session' + how, names):.2f} s "
                f"(goal {GOAL_ALL_SECONDS:.0f} s), slowest alone: "
                f"{timed.slowest('alone' + how, names)} (goal {GOAL_ONE_SECONDS:.0f} s), "
                f"verdict {timed.seconds('alone' + how, VERDICT):.2f} s "
                f"(goal {GOAL_VERDICT_SECONDS:.0f} s)"
            )
    seconds = statistics.median(each for each, _ in drawn)
    lines.append(f"timeline of that run: {seconds:.1f} s, {drawn[0][1]:.0f} MiB")
    lines.append(
        f"slowest saved view in plain SQLite (goal {GOAL_VIEW_SECONDS:.0f} s): {', '.join(plain)}"
    )
    text = "\n".join(lines)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
