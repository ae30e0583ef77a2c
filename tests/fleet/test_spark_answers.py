# SPDX-License-Identifier: Apache-2.0
"""Spark gives the answers of DuckDB: every table, every question of the report, the gate."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.runs import example
from support.spark import QUICK_JVM, Cluster, needs_spark
from wbscope.base.errors import QueryError
from wbscope.compare.policy import read_policy
from wbscope.fleet.dataset import open_dataset
from wbscope.fleet.duck import DuckEngine
from wbscope.fleet.layout import table_names
from wbscope.fleet.questions import FleetEngine, both_sides, report_of
from wbscope.library.library import load_library

pytestmark = [needs_spark]
HOST = "db 7/[x]*{y}?%20=\\"
POLICY = '[metrics."throttle_summary.pause_p99_ns"]\nbudget = "<= 1ns"\n'


@pytest.fixture(scope="module")
def mixed(wbscope: Wbscope, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The three runs and one of a strange host, one that could not be read, one file is older."""
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("mixed")
    path = folder / "a [1] {b} dataset"
    shutil.copytree(dataset, path)
    (folder / "noise.dat").write_bytes(b"noise" * 100)
    shutil.copytree(example("four-equal-writers").folder, folder / "strange")
    (folder / "strange/meta.json").write_text(json.dumps({"machine": {"hostname": HOST}}))
    words = ("fleet", "ingest", folder / "noise.dat", folder / "strange", "-o", path)
    done = wbscope.run(*words, "--allow-errors")
    assert done.returncode == 0, done.stderr
    older = min((path / "stalls").rglob("*.parquet"))
    table = pyarrow.parquet.ParquetFile(older).read().drop_columns(["holder_bdi"])
    pyarrow.parquet.write_table(table, older)
    return path


@pytest.fixture(scope="module")
def engines(cluster: Cluster, mixed: Path) -> Iterator[tuple[FleetEngine, FleetEngine]]:
    from wbscope.fleet.cluster.spark import parse_options, spark_session
    from wbscope.fleet.cluster.spark_sql import SparkEngine

    dataset = open_dataset(mixed)
    with spark_session(cluster.url, parse_options(list(cluster.settings))) as session:
        yield DuckEngine(dataset), SparkEngine(session, dataset)


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Whatever order the engine chose: NULL first, the types beside the values."""
    typed = [tuple((v is not None, type(v).__name__, v) for v in row) for row in rows]
    return sorted(typed, key=repr)


def test_every_table_has_the_same_rows(engines: tuple[FleetEngine, FleetEngine]) -> None:
    duck, spark = engines
    counts = {}
    for table in table_names(load_library()):
        statement = f'SELECT * FROM "{table}"'
        columns, rows = duck.select(statement)
        told, found = spark.select(statement)
        assert told == columns, table
        assert in_order(found) == in_order(rows), table
        counts[table] = len(rows)
    assert counts["runs"] == 4
    assert counts["ingest_errors"] == 1
    assert sum(1 for count in counts.values() if count) > 30


def test_the_report_is_the_same(engines: tuple[FleetEngine, FleetEngine]) -> None:
    one, other = (report_of(engine, "DATASET") for engine in engines)
    assert one.warnings == other.warnings
    for name, result in one.sections.items():
        assert other.sections[name] == result, name  # rows in their order, too
    assert [row[0] for row in one.sections["worst_hosts"].rows] == ["unknown", HOST]
    assert len(one.sections["pause_p99"].rows) > 1


def test_the_sides_of_a_gate_are_the_same(
    engines: tuple[FleetEngine, FleetEngine], tmp_path: Path
) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text(POLICY)
    wanted = read_policy(policy).wants
    # Of one of these it is not known when it was recorded: engines differ in where NULL belongs.
    words = "name IN ('cgroup', 'reclaim-writes')", "name = 'four-equal-writers'"
    one, other = (both_sides(engine, *words, "run", wanted) for engine in engines)
    assert one == other
    assert len(one[0].runs) == 2


@pytest.mark.parametrize(
    ("statement", "slug"),
    [
        ("SELECT * FROM parquet.`/etc`", "bad-sql"),
        ("CREATE TABLE mine AS SELECT 1", "not-a-select"),
        ("SELECT 1; SELECT 2", "bad-sql"),
        ("SET spark.sql.runSQLOnFiles = true", "not-a-select"),
        ("SELECT TRANSFORM (run) USING 'cat' AS (a) FROM runs", "not-a-select"),
        ("SELECT (SELECT max(a) FROM (SELECT TRANSFORM (run) USING 'cat' AS (a) FROM runs))",
         "not-a-select"),
        ("SELECT `reflect`('java.lang.System', 'getProperty', 'user.home')", "not-a-select"),
        ("SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 1)", "not-a-select"),
        ("SELECT nothing FROM runs", "bad-sql"),
        ("SELECT '\udcff' AS a", "not-text"),
    ],
)  # fmt: skip
def test_only_the_dataset_is_read(
    engines: tuple[FleetEngine, FleetEngine], statement: str, slug: str
) -> None:
    with pytest.raises(QueryError) as refused:
        engines[1].select(statement)
    assert refused.value.slug == slug


def test_the_environment_stays_its_own(engines: tuple[FleetEngine, FleetEngine]) -> None:
    _, rows = engines[1].select("SELECT '${env:PATH}' AS a, '${system:user.home}' AS b")
    assert rows == [("${env:PATH}", "${system:user.home}")]


def test_a_question_is_stopped(
    engines: tuple[FleetEngine, FleetEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines[1], "_limit_ns", 1_000_000_000)
    with pytest.raises(QueryError) as refused:
        engines[1].select("SELECT count(*) FROM range(1000000000) a, range(1000000000) b")
    assert refused.value.slug == "time-limit"


def test_the_verb_says_the_same(wbscope: Wbscope, mixed: Path, tmp_path: Path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text(POLICY)
    words = ("fleet", "gate", mixed, "--policy", policy, "--unit", "run", "--cohort",
             "name = 'cgroup'", "--against", "name <> 'cgroup'", "--json")  # fmt: skip
    spark = ("--master", "local[1]", "--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}")
    here, there = wbscope.run(*words), wbscope.run(*words, *spark)
    assert there.returncode == here.returncode, there.stderr
    assert there.stdout == here.stdout


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (("--master", "nowhere"), 2, "bad-master"),
        (("--master", "local[1]", "--conf", "memory=1g"), 2, "bad-setting"),
        (("--conf", "spark.executor.memory=1g"), 2, "conf-without-master"),
    ],
)
def test_what_is_wrong_is_told_before_any_work(
    wbscope: Wbscope, mixed: Path, words: tuple[str, ...], code: int, slug: str
) -> None:
    refused = wbscope.run("fleet", "report", mixed, *words)
    assert (refused.returncode, f"error[{slug}]" in refused.stderr) == (code, True), refused.stderr


def test_nobody_is_at_the_master(wbscope: Wbscope, mixed: Path) -> None:
    refused = wbscope.run("fleet", "report", mixed, "--master", "spark://127.0.0.1:1")
    assert refused.returncode == 5
    assert refused.stderr.startswith("error[spark-not-started]: spark://127.0.0.1:1: ")


def test_without_java(wbscope: Wbscope, mixed: Path, tmp_path: Path) -> None:
    alone = Wbscope(tmp_path / "cache", process=True)
    alone.env["JAVA_HOME"] = str(tmp_path)
    refused = alone.run("fleet", "report", mixed, "--master", "local[1]")
    assert refused.returncode == 5
    assert refused.stderr.startswith(f"error[no-java]: {tmp_path}/bin/java: ")
    assert "fix: apt-get install openjdk-17-jre-headless" in refused.stderr


def test_duckdb_needs_no_spark(wbscope: Wbscope, mixed: Path, tmp_path: Path) -> None:
    for library in ("pyspark", "py4j"):
        (tmp_path / f"{library}.py").write_text("raise RuntimeError('imported')\n")
    alone = Wbscope(Path(os.fspath(tmp_path)) / "cache", process=True)
    alone.env["PYTHONPATH"] = str(tmp_path)
    done = alone.run("fleet", "report", mixed)
    assert done.returncode == 0, done.stderr
