#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a dataset of many runs costs: to make, in one process and on Spark, and to ask.

usage: bench_fleet.py [--rounds N] [--few N] [--no-questions] [--scratch FOLDER] [--markdown FILE]

A round is one replica of each of the runs of tests/corpus, with another host, day and duration.
--rounds of them go to a standalone cluster of two workers, --few to all others; then the same rows
are replicated up to 5,000 runs, and DuckDB and Spark answer the report over them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.datasets import HOSTS, bases  # noqa: E402
from support.spark import children_of, standalone  # noqa: E402

MIB = 1 << 20
PARTS = 4
SIZES = (10, 100, 500, 5000)
QUESTION = "SELECT kind, cause, count(*) AS n, sum(dur) AS ns FROM stalls GROUP BY kind, cause"
DRIVER_MEMORY = "spark.driver.memory=2g"


@dataclass
class Ingest:
    """One way to make a dataset, and what it took."""

    name: str
    runs: int = 0
    events: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    times: list[float] = field(default_factory=list)  # when each run was in
    peaks: dict[str, int] = field(default_factory=dict)  # MiB of the largest process of a kind
    spent: list[tuple[float, float]] = field(default_factory=list)  # when, s of CPU until then

    @property
    def rate(self) -> float:
        """Traces a second from the first one to the last, without what starts and ends a job."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])

    def parts(self) -> list[float]:
        """Seconds of CPU for a trace in each quarter of the job, however busy the machine was."""
        count = len(self.times) // PARTS
        ends = [self.times[0], *(self.times[count * n - 1] for n in range(1, PARTS + 1))]
        spent = [self._spent(end) for end in ends]
        return [(after - before) / count for before, after in itertools.pairwise(spent)]

    def _spent(self, when: float) -> float:
        return max((cpu for time, cpu in self.spent if time <= when), default=0.0)


def kind_of(command: str) -> str:
    """What a process of a job is."""
    for mark, kind in (
        ("CoarseGrainedExecutorBackend", "executor"),
        ("SparkSubmit", "driver"),
        ("wbscope-ingest", "ingester"),
        ("pyspark/daemon", "Python"),
        ("pyspark.daemon", "Python"),
    ):
        if mark in command:
            return kind
    return ""


@contextmanager
def watched(made: Ingest) -> Iterator[None]:
    """The largest process of each kind, and what all took, looked at twice a second."""
    ended = threading.Event()

    def look() -> None:
        taken: dict[int, float] = {}
        while not ended.wait(0.5):
            for pid, command in children_of(os.getpid()).items():
                kind = kind_of(command)
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
                except OSError:
                    continue  # it has ended
                if kind:
                    mib = pages * resource.getpagesize() // MIB
                    made.peaks[kind] = max(made.peaks.get(kind, 0), mib)
                if kind in ("executor", "driver", "Python"):  # the last with its ingesters
                    taken[pid] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            made.spent.append((time.time(), sum(taken.values())))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def ingest(name: str, sources: Sequence[Path], dataset: Path, words: Sequence[str]) -> Ingest:
    """A job by the command, as a user starts it."""
    made = Ingest(name, len(sources))
    command = [ROOT / ".venv/bin/wbscope", "fleet", "ingest", *sources, "-o", dataset, "-q", *words]
    start = time.monotonic()
    with watched(made):
        subprocess.run(command, check=True)
    made.seconds = time.monotonic() - start
    made.cpu_seconds = made.spent[-1][1]
    settle(made, dataset)
    return made


def settle(made: Ingest, dataset: Path) -> None:
    """What the dataset itself tells of the job."""
    manifests = list((dataset / "_manifest").iterdir())
    assert len(manifests) == made.runs, f"{made.name}: {len(manifests)} of {made.runs} runs"
    made.times = sorted(path.stat().st_mtime for path in manifests)
    rows = duck(dataset).select("SELECT sum(events_count) FROM runs")[1]
    made.events = rows[0][0]
    print(
        f"{made.name}: {made.runs} runs, {made.seconds:.0f} s, {made.rate:.2f} traces/s,"
        f" {made.cpu_seconds:.0f} s of CPU, {made.peaks}, quarters {made.parts()}",
        flush=True,
    )


def alone(sources: Sequence[Path], dataset: Path) -> tuple[Ingest, list[float]]:
    """One process without Spark; and how long each run held the dataset's lock."""
    from wbscope.fleet import harvest
    from wbscope.fleet.dataset import make_dataset

    held = []
    publish = harvest.publish

    def timed(*words: Any) -> bool:
        start = time.monotonic()
        done = publish(*words)
        held.append(time.monotonic() - start)
        return done

    made = Ingest("one process, no Spark", len(sources))
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before, start = [resource.getrusage(who) for who in whose], time.monotonic()
    harvest.publish = timed
    try:
        harvest.ingest_sources(
            map(str, sources), make_dataset(dataset, None), lambda *_: None, strict=True
        )
    finally:
        harvest.publish = publish
    made.seconds = time.monotonic() - start
    after = [resource.getrusage(who) for who in whose]
    made.cpu_seconds = sum(
        b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
        for a, b in zip(before, after, strict=True)
    )
    settle(made, dataset)
    return made, sorted(held)


def duck(dataset: Path) -> Any:
    from wbscope.fleet.dataset import open_dataset
    from wbscope.fleet.duck import DuckEngine

    return DuckEngine(open_dataset(dataset))


def tables_of_report() -> list[str]:
    """What the report and the question read."""
    from wbscope.fleet.questions import SECTIONS, report_query

    named = {table for name in SECTIONS for table in report_query(name).needs}
    return sorted(named - {"ingest_errors"})


def some_of(dataset: Path, count: int, target: Path) -> None:
    """A dataset of so many runs, rows of the tables of the report replicated where they end."""
    import pyarrow
    from pyarrow import parquet

    (target / "_manifest").mkdir(parents=True)
    for name in ("_intent", "_work"):
        (target / name).mkdir()
    shutil.copyfile(dataset / "_dataset.json", target / "_dataset.json")
    manifests = [json.loads(p.read_text()) for p in sorted((dataset / "_manifest").iterdir())]
    wanted = set(tables_of_report())
    tables: dict[str, Any] = {}
    for number in range(count):
        told = manifests[number % len(manifests)]
        turn = number // len(manifests)
        run = told["run"] if not turn else f"{turn:04x}{told['run'][4:]}"
        host = told["host"] if not turn else f"db{(number + turn * 7) % (HOSTS * 10):03d}"
        files = {}
        for name, facts in told["files"].items():
            if facts["table"] not in wanted:
                continue
            other = name.replace(told["run"], run).replace(f"host={told['host']}", f"host={host}")
            path = target / other
            path.parent.mkdir(parents=True, exist_ok=True)
            if not turn:
                os.link(dataset / name, path)
            else:
                if name not in tables:
                    tables[name] = parquet.ParquetFile(dataset / name).read()
                table = tables[name]
                runs = pyarrow.array([run] * len(table), type=pyarrow.string())
                at = table.schema.get_field_index("run")
                table = table.set_column(at, table.schema.field(at), runs)
                parquet.write_table(table, path, compression="zstd")
            files[other] = facts
        manifest = told | {"run": run, "host": host, "files": files}
        (target / "_manifest" / f"{run}.json").write_text(json.dumps(manifest))


def ask(engine: Any) -> tuple[float, float]:
    """Seconds for all sections of the report, and for one question."""
    from wbscope.fleet.questions import report_of

    start = time.monotonic()
    report_of(engine, "DATASET")
    middle = time.monotonic()
    engine.select(QUESTION)
    return middle - start, time.monotonic() - middle


class Compacted:
    """The same rows with one file for each table: what compaction gives."""

    def __init__(self, dataset: Path, target: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:")
        start = time.monotonic()
        engine = duck(dataset)
        for table in [*tables_of_report(), "ingest_errors"]:
            files = [str(dataset / file) for file in engine._files.get(table, ())]
            view = engine._view(self._connection, table, files)
            self._connection.execute(view)
            path = target / f"{table}.parquet"
            self._connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet)")
            self._connection.execute(f"DROP VIEW {table}")
            self._connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}')")
        self.seconds = time.monotonic() - start
        self.losses = engine.losses

    def select(self, sql: str, tables: Sequence[str] = ()) -> tuple[list[str], list[Any]]:
        found = self._connection.execute(sql)
        return [column[0] for column in found.description], found.fetchall()


def asked(dataset: Path, scratch: Path) -> Iterator[tuple[int, str, float, float]]:
    """Runs, engine, seconds for the report and for one question; engines are open already."""
    from wbscope.fleet.cluster.spark import parse_options, spark_session
    from wbscope.fleet.cluster.spark_sql import SparkEngine
    from wbscope.fleet.dataset import open_dataset

    with spark_session("local[2]", parse_options([DRIVER_MEMORY])) as session:
        for size in SIZES:
            place = scratch / f"asked-{size}"
            start = time.monotonic()
            some_of(dataset, size, place)
            print(f"made {size} runs in {time.monotonic() - start:.0f} s", flush=True)
            for name in ("DuckDB", "Spark local[2]"):
                start = time.monotonic()
                engine = (
                    duck(place) if name == "DuckDB" else SparkEngine(session, open_dataset(place))
                )
                opened = time.monotonic() - start
                report, one = ask(engine)
                yield size, name, opened + report, one
        compact = scratch / "compact"
        compact.mkdir()
        whole = Compacted(scratch / f"asked-{SIZES[-1]}", compact)
        yield SIZES[-1], f"DuckDB, one file a table (made in {whole.seconds:.0f} s)", *ask(whole)


def machine() -> str:
    """What it ran on, and how busy that was."""
    text = Path("/proc/cpuinfo").read_text()
    model = next(
        (x.partition(":")[2].strip() for x in text.splitlines() if x.startswith("model name")), ""
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB // 1024
    load = os.getloadavg()[2]
    return (
        f"{os.cpu_count()} CPUs ({model or platform.machine()}), {memory} GiB, {date.today()};"
        f" load average over 15 minutes {load:.1f}"
    )


def page(ingests: Sequence[Ingest], held: Sequence[float], answers: Sequence[Any]) -> str:
    """The tables in Markdown."""
    lines = ["| ingest | runs | wall | traces/s | events/s | s of CPU a trace |"]
    lines += ["|---|---|---|---|---|---|"]
    for one in ingests:
        events = one.rate * one.events / one.runs
        cpu = f"{one.cpu_seconds / one.runs:.2f}"
        lines.append(
            f"| {one.name} | {one.runs} | {one.seconds:.0f} s | {one.rate:.2f} | {events:,.0f} |"
            f" {cpu} |"
        )
    last = ingests[-1]
    quarters = ", ".join(f"{value:.2f}" for value in last.parts())
    lines += [
        "",
        f"{last.name}, {last.runs} runs: {quarters} s a trace in each quarter of the job.",
    ]
    peaks = ", ".join(f"{kind} {mib} MiB" for kind, mib in sorted(last.peaks.items()))
    lines += [f"Largest process of a kind: {peaks}."]
    if held:
        middle, most = (f"{seconds * 1e3:.0f} ms" for seconds in (held[len(held) // 2], held[-1]))
        lines += [f"The dataset's lock was held {middle} a run (median; {most} at most)."]
    if answers:
        lines += ["", "| runs | engine | report | one question |", "|---|---|---|---|"]
    lines += [f"| {size:,} | {name} | {a:.1f} s | {b:.1f} s |" for size, name, a, b in answers]
    return "\n".join([*lines, "", machine(), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="What a dataset of many runs costs.")
    parser.add_argument("--rounds", type=int, default=16, help="rounds for the cluster [16]")
    parser.add_argument("--few", type=int, default=2, help="rounds for all others, 0: none [2]")
    parser.add_argument("--no-questions", action="store_true", help="only make datasets")
    parser.add_argument("--scratch", type=Path, help="folder with room for 3 GB [a new one]")
    parser.add_argument("--markdown", type=Path, help="write the tables here, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-fleet-", dir=options.scratch) as folder:
        scratch = Path(folder)
        os.environ["WBSCOPE_CACHE_DIR"] = str(scratch / "cache")
        for name in ("bases", "runs", "cluster"):
            (scratch / name).mkdir()
        made = bases(scratch / "bases")
        count = len(made) * options.rounds
        sources = [made[n % len(made)].replica(n, scratch / "runs") for n in range(count)]
        few = sources[: len(made) * options.few]
        driver = ["--conf", DRIVER_MEMORY]
        ingests, held = [], []
        if few:
            first, held = alone(few, scratch / "alone")
            ingests.append(first)
            for master in ("local[1]", "local[2]"):
                words = ["--master", master, *driver]
                ingests.append(ingest(master, few, scratch / master, words))
        with standalone(scratch / "cluster", workers=2, memory="1g") as cluster:
            words = ["--master", cluster.url, "--conf", "spark.executor.memory=1g", *driver]
            name = "standalone, 2 workers"
            ingests.append(ingest(name, sources, scratch / "many", words))
        answers = []
        for row in () if options.no_questions else asked(scratch / "many", scratch):
            print(row, flush=True)
            answers.append(row)
        text = page(ingests, held, answers)
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text)


if __name__ == "__main__":
    main()
