# SPDX-License-Identifier: Apache-2.0
"""Runs and datasets on Hadoop's file systems: a real HDFS, and file:// without links and locks."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.hdfs import Hdfs
from support.replicas import Base
from support.spark import Cluster, kill, needs_spark, wait_for
from support.tools import wbscope_path
from wbscope.ingest.program import find_ingester

pytestmark = [needs_spark, pytest.mark.slow]
RUNS, BAD = 4, 1
POLICY = '[metrics."throttle_summary.pause_p99_ns"]\nbudget = "<= 1ns"\n'
QUESTION = (
    "SELECT host, cause, sum(dur) AS ns FROM stalls GROUP BY host, cause ORDER BY host, cause"
)
# Of a run, what says where it was read from; of an error, when.
_ITS_SOURCE = ("runs/", "ingest_errors/")
# The first ingester says who it is, and is held until it is killed: by exec, so that
# no child keeps its pipes open.
_HELD = """#!/bin/sh
if mkdir {folder}/first 2> /dev/null; then
  echo $$ > {folder}/number && mv {folder}/number {folder}/pid
  exec sleep 300
fi
exec {ingester} "$@"
"""


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
    counts = ingest(wbscope, traces, path)
    assert counts == {"added": RUNS, "known": 0, "failed": BAD}
    return path


@pytest.fixture(scope="module")
def made(wbscope: Wbscope, cluster: Cluster, store: Hdfs, traces: Path, local: Path) -> Made:
    """What the executors make of them on HDFS."""
    made = Made(store, traces, local, cluster.words())
    store.put(traces, "/traces")
    counts = ingest(wbscope, made.source, made.dataset, *made.words)
    assert counts == {"added": RUNS, "known": 0, "failed": BAD}
    return made


def ingest(wbscope: Wbscope, source: Any, dataset: Any, *words: str) -> dict[str, int]:
    done = wbscope.run("fleet", "ingest", source, "-o", dataset, "--json", *words)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    return {what: document[f"{what}_count"] for what in ("added", "known", "failed")}


def files(dataset: Path) -> dict[str, str]:
    """All files of tables by their content; of those that tell a source or a time, the names."""
    found = {}
    for path in dataset.rglob("*"):
        name = str(path.relative_to(dataset))
        if path.is_file() and not name.startswith("_"):
            told = name.startswith(_ITS_SOURCE)
            found[name] = "" if told else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def manifests(dataset: Path) -> dict[str, Any]:
    """All that they say, but for the source and the file that has it."""
    found = {}
    for path in (dataset / "_manifest").iterdir():
        document = json.loads(path.read_text())
        assert document.pop("source")
        kept = {k: v for k, v in document["files"].items() if v["table"] != "runs"}
        found[path.name] = document | {"files": kept}
    return found


def check_same(wbscope: Wbscope, copy: Path, local: Path, source: str, traces: Path) -> None:
    """File by file; rows that tell a source tell the URI."""
    assert files(copy) == files(local)
    assert manifests(copy) == manifests(local)
    assert len(manifests(copy)) == RUNS
    for path in (copy / "_manifest").iterdir():
        for name, told in json.loads(path.read_text())["files"].items():
            assert hashlib.sha256((copy / name).read_bytes()).hexdigest() == told["sha256"], name
    for question in (
        "SELECT * FROM runs ORDER BY run",
        "SELECT source, slug, message, exit_code, content FROM ingest_errors",
    ):
        ours, theirs = (
            wbscope.document("fleet", "sql", dataset, question)["rows"] for dataset in (copy, local)
        )
        assert ours
        assert json.dumps(ours).replace(source, str(traces)) == json.dumps(theirs)
    for folder in ("_intent", "_work"):
        assert not list((copy / folder).iterdir())


def test_a_dataset_on_hdfs_is_the_same(wbscope: Wbscope, made: Made, tmp_path: Path) -> None:
    copy = made.hdfs.get("/dataset", tmp_path / "copy")
    check_same(wbscope, copy, made.local, made.source, made.traces)
    before = files(copy) | {"": json.dumps(manifests(copy))}
    counts = ingest(wbscope, made.source, made.dataset, *made.words)
    assert counts == {"added": 0, "known": RUNS, "failed": BAD}
    again = made.hdfs.get("/dataset", tmp_path / "again")
    assert files(again) | {"": json.dumps(manifests(again))} == before


def test_answers_are_those_of_duckdb_on_the_copy(
    wbscope: Wbscope, made: Made, tmp_path: Path
) -> None:
    copy = made.hdfs.get("/dataset", tmp_path / "copy")
    policy = tmp_path / "gate.toml"
    policy.write_text(POLICY)
    sides = ("--cohort", "host = 'db00'", "--against", "host <> 'db00'", "--unit", "run")
    asked: list[tuple[int, list[str]]] = []
    for words in (
        ["sql", "{}", QUESTION],
        ["sql", "{}"],
        ["report", "{}"],
        ["gate", "{}", "--policy", str(policy), *sides],
    ):
        verb, _, *rest = words
        spark = wbscope.run("fleet", verb, made.dataset, *rest, "--json", *made.words)
        duck = wbscope.run("fleet", verb, copy, *rest, "--json")
        assert spark.returncode == duck.returncode, spark.stderr
        ours, theirs = spark.stdout.replace(made.dataset, str(copy)), duck.stdout
        assert json.loads(ours) == json.loads(theirs), words
        asked.append((duck.returncode, theirs.split()))
    assert len(json.loads(wbscope.run("fleet", "sql", copy, QUESTION, "--json").stdout)["rows"]) > 2
    assert [code for code, _ in asked[:3]] == [0, 0, 0]


def test_an_ingester_is_killed(wbscope: Wbscope, made: Made, tmp_path: Path) -> None:
    """And what a writer left that died in the middle is taken over: every run is there once."""
    held = tmp_path / "held"
    held.mkdir()
    program = held / "ingester"
    program.write_text(_HELD.format(folder=held, ingester=find_ingester()))
    program.chmod(0o755)
    words = [*made.words, "--conf", f"spark.executorEnv.WBSCOPE_INGEST={program}"]
    dataset = f"{made.hdfs.uri}/killed"
    command = [wbscope_path(), "fleet", "ingest", made.source, "-o", dataset, *words]
    job = subprocess.Popen(command, env=wbscope.env, stderr=subprocess.PIPE, text=True)
    try:
        wait_for((held / "pid").exists, "the first ingester")
        kill(int((held / "pid").read_text()))
        _, said = job.communicate(timeout=300)
    finally:
        job.kill()
    assert job.returncode == 0, said
    assert f"{RUNS} runs added, {BAD} could not" in said
    copy = made.hdfs.get("/killed", tmp_path / "copy")
    check_same(wbscope, copy, made.local, made.source, made.traces)
    # As of one that was killed before its manifest: a claim, some of its files.
    manifest = min((copy / "_manifest").iterdir())
    claim = tmp_path / "claim.json"
    of_run = json.loads(manifest.read_text())["files"]
    claim.write_text(json.dumps({"files": of_run}, indent=1) + "\n")
    made.hdfs.put(claim, f"/killed/_intent/{manifest.name}")
    made.hdfs.delete(f"/killed/_manifest/{manifest.name}")
    made.hdfs.delete(f"/killed/{min(of_run)}")
    counts = ingest(wbscope, made.source, dataset, *made.words)
    assert counts == {"added": 1, "known": RUNS - 1, "failed": BAD}
    copy = made.hdfs.get("/killed", tmp_path / "after")
    check_same(wbscope, copy, made.local, made.source, made.traces)


def test_what_is_no_dataset_is_refused(wbscope: Wbscope, made: Made, tmp_path: Path) -> None:
    before = files(made.hdfs.get("/traces", tmp_path / "before"))
    uri = made.hdfs.uri
    for words, code, told in (
        (("ingest", made.source, "-o", made.source), 2, f"error[not-a-dataset]: {made.source}: is"),
        (("ingest", f"{uri}/none", "-o", f"{uri}/new"), 3, f"error[no-such-file]: {uri}/none: "),
        (("report", f"{uri}/none"), 3, f"error[not-a-dataset]: {uri}/none: does not exist"),
    ):
        done = wbscope.run("fleet", *words, *made.words)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(told), done.stderr
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
    wbscope: Wbscope, cluster: Cluster, traces: Path, local: Path, tmp_path: Path
) -> None:
    """From file:// into a folder, and from a folder into file://, under a name full of signs."""
    words = cluster.words()
    folder = tmp_path / "folder"
    counts = ingest(wbscope, traces.as_uri(), folder, *words)
    assert counts == {"added": RUNS, "known": 0, "failed": BAD}
    check_same(wbscope, folder, local, traces.as_uri(), traces)
    strange = tmp_path / "a [1] {b}, c"
    uri = f"file://{strange}"
    counts = ingest(wbscope, traces, uri, *words)
    assert counts == {"added": RUNS, "known": 0, "failed": BAD}
    check_same(wbscope, strange, local, str(traces), traces)
    assert not list(strange.rglob("*.crc"))
    spark = wbscope.document("fleet", "sql", uri, QUESTION, *words)["rows"]
    assert spark == wbscope.document("fleet", "sql", local, QUESTION)["rows"]
