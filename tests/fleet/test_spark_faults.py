# SPDX-License-Identifier: Apache-2.0
"""A dataset that a cluster makes is the same one, whatever is killed, and whoever else writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.datasets import Base
from support.faults import memory_disk
from support.runs import example
from support.spark import QUICK_JVM, Cluster, kill, needs_spark, standalone
from support.sparkjobs import Held, holding, in_process, start, told
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import SetupError
from wbscope.fleet.cluster.spark import spark_session

pytestmark = [needs_spark]
RUNS, BAD = 8, 2


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with holding(tmp_path / "held") as job:
        yield job


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of some machines, and among them two that cannot be read."""
    folder = tmp_path_factory.mktemp("traces")
    scratch = tmp_path_factory.mktemp("scratch")
    base = Base(unpack(CORPUS / "6.1-healthy-copy", scratch))
    made = [base.replica(number, folder) for number in range(RUNS)]
    (folder / "6-noise.dat").write_bytes(b"noise" * 100)
    (folder / "7-short.dat").write_bytes((made[0] / "trace.dat").read_bytes()[:300])
    return folder


@pytest.fixture(scope="module")
def wanted(wbscope: Wbscope, traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of them."""
    path = tmp_path_factory.mktemp("wanted") / "dataset"
    done = wbscope.run("fleet", "ingest", traces, "-o", path, "--allow-errors")
    assert done.returncode == 0, done.stderr
    return path


def manifests(dataset: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in (dataset / "_manifest").iterdir()}


def files(dataset: Path) -> set[str]:
    found = {path.relative_to(dataset) for path in dataset.rglob("*.parquet")}
    return {str(path) for path in found if path.parts[0] != "_work"}


def check_same(wbscope: Wbscope, dataset: Path, wanted: Path, traces: Path) -> None:
    """Byte by byte in all but the time of errors: a manifest has the hash of each file."""
    assert len(manifests(wanted)) == RUNS
    assert manifests(dataset) == manifests(wanted)
    assert files(dataset) == files(wanted)
    question = "SELECT slug, source FROM ingest_errors ORDER BY source"
    rows = [wbscope.document("fleet", "sql", path, question)["rows"] for path in (dataset, wanted)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == BAD
    # Again, without Spark: nothing to do, and nothing left over of who was killed.
    again = start(wbscope, traces, "-o", dataset)
    assert told(again) == {"added": 0, "known": RUNS, "failed": BAD}
    assert not list((dataset / "_intent").iterdir())
    assert not list((dataset / "_work").iterdir())


def test_an_ingester_is_killed(
    wbscope: Wbscope, cluster: Cluster, held: Held, traces: Path, wanted: Path, tmp_path: Path
) -> None:
    dataset = tmp_path / "dataset"
    job = start(wbscope, traces, "-o", dataset, *cluster.words(), *held.words())
    kill(held.pid())
    assert told(job) == {"added": RUNS, "known": 0, "failed": BAD}
    check_same(wbscope, dataset, wanted, traces)


def test_a_worker_is_killed_while_two_write(
    wbscope: Wbscope, cluster: Cluster, held: Held, traces: Path, wanted: Path, tmp_path: Path
) -> None:
    """The other job, which copied the traces elsewhere, has to wait for nobody."""
    copy = tmp_path / "copy"
    shutil.copytree(traces, copy)
    for bad in copy.glob("*.dat"):
        bad.unlink()
    dataset = tmp_path / "dataset"
    one_core = ("--conf", "spark.cores.max=1")
    first = start(wbscope, traces, "-o", dataset, *cluster.words(), *held.words(), *one_core)
    worker = cluster.worker_of(held.pid())
    second = start(wbscope, copy, "-o", dataset, *cluster.words(), *one_core)
    wait_until(lambda: len(manifests(dataset)) > 1, "runs of the second job")
    cluster.lose(worker)
    held.go()
    one, other = told(first), told(second)
    assert (one["added"] + one["known"], one["failed"]) == (RUNS, BAD)
    assert (other["added"] + other["known"], other["failed"]) == (RUNS, 0)
    assert one["added"] + other["added"] >= RUNS  # a task that was done again may count again
    moved = [m for m in manifests(dataset).values() if Path(m["source"]).parent == copy]
    assert moved  # which job a run is of differs, and only that
    for path in (dataset / "_manifest").iterdir():
        ours, theirs = json.loads(path.read_text()), manifests(wanted)[path.name]
        assert _without_source(ours) == _without_source(theirs)
    assert files(dataset) == files(wanted)
    question = "SELECT run, count(*) AS n FROM runs GROUP BY run HAVING count(*) > 1"
    assert wbscope.document("fleet", "sql", dataset, question)["rows"] == []
    again = start(wbscope, traces, "-o", dataset)
    assert told(again) == {"added": 0, "known": RUNS, "failed": BAD}
    assert not os.listdir(dataset / "_intent")
    assert not os.listdir(dataset / "_work")


def test_ctrl_c_ends_the_job(
    wbscope: Wbscope, cluster: Cluster, held: Held, traces: Path, wanted: Path, tmp_path: Path
) -> None:
    """A terminal tells the whole group of processes, Spark's own with it."""
    dataset = tmp_path / "dataset"
    words = (traces, "-o", dataset, *cluster.words())
    job = start(wbscope, *words, *held.words(), is_apart=True)
    held.pid()
    os.killpg(job.pid, signal.SIGINT)
    out, said = job.communicate(timeout=GUARD_SECONDS)
    assert (job.returncode, out) == (130, ""), said
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1, said
    held.go()
    there = len(manifests(dataset))
    counts = told(start(wbscope, *words))
    assert counts["added"] + counts["known"] == RUNS
    assert counts["known"] >= there
    check_same(wbscope, dataset, wanted, traces)


def test_the_disk_of_the_dataset_is_full(
    wbscope: Wbscope, cluster: Cluster, traces: Path, wanted: Path
) -> None:
    """One error, nothing half there, and the same command goes on once there is room."""
    with memory_disk("size=700k") as disk:
        dataset = disk / "dataset"
        words = ("fleet", "ingest", traces, "-o", dataset, *cluster.words())
        full = wbscope.run(*words)
        assert full.returncode == 5, full.stderr
        assert full.stderr.count("error[") == 1, full.stderr
        assert "error[cannot-write]: " in full.stderr
        assert "Traceback" not in full.stderr
        there = manifests(dataset)
        assert len(there) < RUNS
        assert all(manifests(wanted)[name] == one for name, one in there.items())
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        again = start(wbscope, *words[2:])
        counts = told(again)
        assert (counts["added"], counts["known"]) == (RUNS - len(there), len(there))
        check_same(wbscope, dataset, wanted, traces)


def test_the_whole_cluster_has_gone(
    wbscope: Wbscope, held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would wait for a master for ever; what is told to be done then goes on."""
    monkeypatch.setattr("wbscope.fleet.cluster.spark.LOST_SECONDS", 2.0)
    run, dataset = example("four-equal-writers").folder, tmp_path / "dataset"
    env = {"WBSCOPE_CACHE_DIR": wbscope.env["WBSCOPE_CACHE_DIR"]}
    with standalone(tmp_path, workers=1, env=env) as own:

        def kill_all() -> None:
            held.pid()
            own.vanish()

        killer = threading.Thread(target=kill_all)
        killer.start()
        words = ("fleet", "ingest", run, "-o", dataset, *own.words(), *held.words())
        ended = in_process(words, wbscope.env)
        killer.join()
    assert ended.returncode == 5, ended.stderr
    assert ended.stderr.startswith(f"error[master-lost]: {own.url}: "), ended.stderr
    assert ended.stderr.count("error[") == 1
    assert "Traceback" not in ended.stderr
    held.go()
    assert told(start(wbscope, run, "-o", dataset)) == {"added": 1, "known": 0, "failed": 0}
    assert not os.listdir(dataset / "_work")


def test_an_error_of_java_is_told_while_it_can_be_read() -> None:
    """Its text is asked of the JVM, which ends with the session."""

    def parse() -> None:
        with spark_session("local[1]", {"spark.driver.extraJavaOptions": QUICK_JVM}) as session:
            gateway: Any = session.sparkContext._gateway
            gateway.jvm.java.lang.Integer.parseInt("none")

    with pytest.raises(SetupError) as refused:
        parse()
    assert refused.value.slug == "spark-failed"
    assert 'For input string: "none"' in str(refused.value.message)


def test_ctrl_c_is_told_where_another_error_comes_of_it() -> None:
    """PySpark tidies up in the JVM while an interrupt goes by, and the JVM may have gone."""

    def work() -> None:
        with spark_session("local[1]", {"spark.driver.extraJavaOptions": QUICK_JVM}) as session:
            gateway: Any = session.sparkContext._gateway
            try:
                raise KeyboardInterrupt
            finally:
                os.kill(gateway.proc.pid, signal.SIGKILL)
                gateway.proc.wait()
                session.range(1).collect()

    with pytest.raises(KeyboardInterrupt):
        work()
    with spark_session("local[1]", {"spark.driver.extraJavaOptions": QUICK_JVM}) as session:
        assert session.range(1).count() == 1


def _without_source(manifest: dict[str, Any]) -> dict[str, Any]:
    """Where a run was read from stands in its manifest and in `runs`."""
    kept = {k: v for k, v in manifest.items() if k not in ("source", "files")}
    return kept | {"files": {k: v for k, v in manifest["files"].items() if v["table"] != "runs"}}
