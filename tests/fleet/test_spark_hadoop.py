# SPDX-License-Identifier: Apache-2.0
"""Runs and datasets on Hadoop's file systems: a real HDFS, and file:// without links and locks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.datasets import Base, check_same, files, manifests, rows
from support.hdfs import Hdfs
from support.spark import Cluster, frozen, kill, needs_spark, thaw
from support.sparkjobs import OneSession, counts, holding, one_session, start, told
from support.waits import wait_until
from wbscope.fleet.redact import read_key

pytestmark = [needs_spark]
RUNS, BAD = 4, 1
ADDED = {"added": RUNS, "known": 0, "failed": BAD}
KNOWN = {"added": 0, "known": RUNS, "failed": BAD}
POLICY = '[metrics."throttle_summary.pause_p99_ns"]\nbudget = "<= 1ns"\n'
QUESTION = (
    "SELECT host, cause, sum(dur) AS ns FROM stalls GROUP BY host, cause ORDER BY host, cause"
)
ONE_CORE = ("--conf", "spark.cores.max=1")


@dataclass
class Made:
    """The same runs in a folder and on HDFS, and what is made of them on each."""

    hdfs: Hdfs
    traces: Path
    local: Path
    words: list[str]  # of the cluster

    @property
    def source(self) -> str:
        return f"{self.hdfs.uri}/traces"

    @property
    def dataset(self) -> str:
        return f"{self.hdfs.uri}/dataset"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs at two depths, one that cannot be read, and what is no run: hidden, of another kind."""
    folder = tmp_path_factory.mktemp("traces")
    base = Base(unpack(CORPUS / "6.1-healthy-copy", tmp_path_factory.mktemp("scratch")))
    for number in range(RUNS - 1):
        base.replica(number, folder)
    (folder / "deep/er").mkdir(parents=True)
    base.replica(RUNS - 1, folder / "deep/er")
    (folder / "6-noise.dat").write_bytes(b"noise" * 100)
    (folder / "notes.txt").write_text("nothing\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden/trace.dat").write_bytes(b"noise")
    (folder / "older").mkdir()
    (folder / "older/_dataset.json").write_text("{}")
    (folder / "older/trace2.dat").write_bytes(b"noise")
    return folder


@pytest.fixture(scope="module")
def local(wbscope: Wbscope, traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of them in a folder."""
    path = tmp_path_factory.mktemp("local") / "dataset"
    assert ingest(wbscope, traces, "-o", path) == ADDED
    return path


@pytest.fixture(scope="module")
def made(
    wbscope: Wbscope,
    cluster: Cluster,
    store: Hdfs,
    traces: Path,
    local: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Made:
    """What two jobs make of them on HDFS, each of which has begun the same run."""
    made = Made(store, traces, local, cluster.words())
    store.put(traces, "/traces")
    folder = tmp_path_factory.mktemp("two")
    with ExitStack() as stack:
        held = [stack.enter_context(holding(folder / name)) for name in ("one", "two")]
        words = (made.source, "-o", made.dataset, *made.words, *ONE_CORE)
        jobs = [start(wbscope, *words, *one.words()) for one in held]
        for one in held:
            one.pid()
        for one in held:
            one.go()
        both = [told(job) for job in jobs]
    assert [one["failed"] for one in both] == [BAD, BAD]
    assert sum(one["added"] for one in both) == RUNS
    assert sum(one["known"] for one in both) == RUNS
    return made


@pytest.fixture(scope="module")
def spark(wbscope: Wbscope, cluster: Cluster) -> Iterator[OneSession]:
    """One session, on one core, that commands share; jobs of their own have the other."""
    with one_session(wbscope, cluster, "spark.cores.max=1") as session:
        yield session


def ingest(wbscope: Wbscope, *words: str | Path) -> dict[str, int]:
    done = wbscope.run("fleet", "ingest", *words, "--json")
    return counts(done.stdout, done.returncode, done.stderr)


def test_two_jobs_make_one_dataset(made: Made, tmp_path: Path, wbscope: Wbscope) -> None:
    """Each run is there once, as one process makes it in a folder."""
    copy = made.hdfs.get("/dataset", tmp_path / "copy")
    assert len(manifests(copy)) == RUNS
    check_same(wbscope, copy, made.local, made.source, made.traces)


def test_a_machine_dies_in_the_middle(
    wbscope: Wbscope, cluster: Cluster, made: Made, tmp_path: Path
) -> None:
    """First an ingester is killed, then all that a worker has started, while a run has a claim."""
    with holding(tmp_path / "held") as held:
        words = (made.source, "-o", f"{made.hdfs.uri}/killed", *made.words)
        job = start(wbscope, *words, *held.words(), *ONE_CORE)
        pid = held.pid()
        worker = cluster.worker_of(pid)
        kill(pid)
        begun = stop_in_the_middle(made.hdfs, worker.pid)
        cluster.lose(worker)
        assert told(job) == ADDED
    assert made.hdfs.names("/killed/_manifest") > begun
    copy = made.hdfs.get("/killed", tmp_path / "copy")
    check_same(wbscope, copy, made.local, made.source, made.traces)


def stop_in_the_middle(hdfs: Hdfs, worker: int) -> set[str]:
    """Kill what is below a worker when it has claimed a run and not added it; that run."""
    seen: set[str] = set()
    while True:
        wait_until(lambda: bool(hdfs.names("/killed/_intent") - seen), "a claim")
        stopped = frozen(worker)
        claims, there = (hdfs.names(f"/killed/{name}") for name in ("_intent", "_manifest"))
        if begun := claims - there:
            for pid in stopped - {worker}:
                kill(pid)
            return begun
        seen.update(claims)
        thaw(stopped)  # it was quicker


def test_what_is_there_is_known(made: Made, spark: OneSession, tmp_path: Path) -> None:
    before = made.hdfs.get("/dataset", tmp_path / "before")
    assert spark.ingest(made.source, "-o", made.dataset) == KNOWN
    again = made.hdfs.get("/dataset", tmp_path / "again")
    assert files(again) == files(before)
    assert manifests(again) == manifests(before)


def test_what_a_killed_writer_left_is_taken_over(
    wbscope: Wbscope, made: Made, spark: OneSession, tmp_path: Path
) -> None:
    """As of one that was killed before its manifest: a claim, some of its files."""
    made.hdfs.put(made.hdfs.get("/dataset", tmp_path / "copy"), "/left")
    manifest = min((tmp_path / "copy/_manifest").iterdir())
    claim = tmp_path / "claim.json"
    of_run = json.loads(manifest.read_text())["files"]
    claim.write_text(json.dumps({"files": of_run}, indent=1) + "\n")
    made.hdfs.put(claim, f"/left/_intent/{manifest.name}")
    made.hdfs.delete(f"/left/_manifest/{manifest.name}")
    made.hdfs.delete(f"/left/{min(of_run)}")
    counted = spark.ingest(made.source, "-o", f"{made.hdfs.uri}/left")
    assert counted == {"added": 1, "known": RUNS - 1, "failed": BAD}
    copy = made.hdfs.get("/left", tmp_path / "after")
    check_same(wbscope, copy, made.local, made.source, made.traces)


def test_answers_are_those_of_duckdb_on_the_copy(
    wbscope: Wbscope, made: Made, spark: OneSession, tmp_path: Path
) -> None:
    copy = made.hdfs.get("/dataset", tmp_path / "copy")
    policy = tmp_path / "gate.toml"
    policy.write_text(POLICY)
    sides = ("--cohort", "host = 'db00'", "--against", "host <> 'db00'", "--unit", "run")
    asked: list[int] = []
    for verb, *rest in (
        ("sql", QUESTION),
        ("sql",),
        ("report",),
        ("gate", "--policy", str(policy), *sides),
    ):
        ours = spark.run("fleet", verb, made.dataset, *rest, "--json")
        theirs = wbscope.run("fleet", verb, copy, *rest, "--json")
        assert ours.returncode == theirs.returncode, ours.stderr
        document = ours.stdout.replace(made.dataset, str(copy))
        assert json.loads(document) == json.loads(theirs.stdout), verb
        asked.append(theirs.returncode)
    assert len(wbscope.document("fleet", "sql", copy, QUESTION)["rows"]) > 2
    assert asked[:3] == [0, 0, 0]


def test_redacted_runs_are_those_of_a_folder(
    wbscope: Wbscope, made: Made, spark: OneSession, tmp_path: Path
) -> None:
    """Under one key every name is the same hash; of a URI each part has its own, too."""
    key = tmp_path / "names.key"
    key.write_bytes(bytes(range(32)))
    redact = ("--redact", str(key))
    local = tmp_path / "local"
    assert ingest(wbscope, made.traces, "-o", local, *redact) == ADDED
    assert spark.ingest(made.source, "-o", f"{made.hdfs.uri}/hashed", *redact) == ADDED
    copy = made.hdfs.get("/hashed", tmp_path / "copy")
    hashed = read_key(key).path
    check_same(wbscope, copy, local, hashed(made.source), hashed(str(made.traces)))
    assert files(copy) != files(made.local)
    shown = [json.dumps(one) for one in rows(wbscope, copy)]
    shown += [path.read_text() for path in (copy / "_manifest").iterdir()]
    for name in (made.hdfs.uri, "traces", "00000-6.1-healthy-copy", "6-noise.dat", "deep/er"):
        assert not [one for one in shown if name in one], name
    # Names as they are do not come beside these.
    refused = spark.run("fleet", "ingest", made.source, "-o", f"{made.hdfs.uri}/hashed")
    assert (refused.returncode, "error[other-redaction]" in refused.stderr) == (2, True)
    assert f"{made.hdfs.uri}/hashed: " in refused.stderr


def test_what_is_no_dataset_is_refused(made: Made, spark: OneSession, tmp_path: Path) -> None:
    before = files(made.hdfs.get("/traces", tmp_path / "before"))
    uri = made.hdfs.uri
    for words, code, said in (
        (("ingest", made.source, "-o", made.source), 2, f"error[not-a-dataset]: {made.source}: is"),
        (("ingest", f"{uri}/none", "-o", f"{uri}/new"), 3, f"error[no-such-file]: {uri}/none: "),
        (("report", f"{uri}/none"), 3, f"error[not-a-dataset]: {uri}/none: does not exist"),
    ):
        done = spark.run("fleet", *words)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(said), done.stderr
        assert "Traceback" not in done.stderr
    assert files(made.hdfs.get("/traces", tmp_path / "after")) == before
    assert not made.hdfs.exists("/new")


def test_a_uri_wants_a_master(wbscope: Wbscope, traces: Path, tmp_path: Path) -> None:
    """Before any work, and without Java."""
    uri = (tmp_path / "dataset").as_uri()
    for words in (
        ("ingest", traces, "-o", uri),
        ("ingest", traces.as_uri(), "-o", tmp_path / "dataset"),
        ("sql", uri),
        ("report", uri),
    ):
        done = wbscope.run("fleet", *words)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error[uri-without-master]: file:///"), done.stderr
        assert "--master 'local[*]'" in done.stderr
    assert not (tmp_path / "dataset").exists()


def test_files_by_uri(
    wbscope: Wbscope, spark: OneSession, traces: Path, local: Path, tmp_path: Path
) -> None:
    """From file:// into a folder, and from a folder into file://, under a name full of signs."""
    folder = tmp_path / "folder"
    assert spark.ingest(traces.as_uri(), "-o", folder) == ADDED
    check_same(wbscope, folder, local, traces.as_uri(), traces)
    strange = tmp_path / "a [1] {b}, c"
    uri = f"file://{strange}"
    assert spark.ingest(traces, "-o", uri) == ADDED
    check_same(wbscope, strange, local, str(traces), traces)
    assert not list(strange.rglob("*.crc"))
    found = spark.document("fleet", "sql", uri, QUESTION)["rows"]
    assert found == wbscope.document("fleet", "sql", local, QUESTION)["rows"]
