# SPDX-License-Identifier: Apache-2.0
"""The files of a dataset: others read them; they say what queries say, and what was lost."""

from __future__ import annotations

import hashlib
import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest
import wbscope as package
from golden.lost_events import case as lost_events
from golden.throttle_loop import case as whole
from golden.truncated_v6 import case as truncated
from support.cli import Wbscope
from support.kernel_events import formats
from support.tracedat import Trace
from wbscope.base.errors import EvidenceError
from wbscope.base.result import unit_of
from wbscope.library.library import load_library

# The files of a dataset: others read them without wbscope, and they say what queries say.

RUNS = ["writers", "reclaim", "cgroup"]


def manifests(dataset: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted((dataset / "_manifest").glob("*"))]
    return {manifest["run"]: manifest for manifest in found}


def manifest_of(dataset: Path, source: Path) -> dict[str, Any]:
    (one,) = (m for m in manifests(dataset).values() if m["source"] == str(source))
    return one


def rows_of(dataset: Path, table: str, run: str) -> list[dict[str, Any]]:
    (path,) = dataset.glob(f"{table}/*/*/*/{run}.parquet")
    rows: list[dict[str, Any]] = pyarrow.parquet.ParquetFile(path).read().to_pylist()
    return rows


@pytest.mark.parametrize("name", RUNS)
def test_every_table_has_the_rows_of_its_query(
    dataset: Path, sources: dict[str, Path], name: str
) -> None:
    manifest = manifest_of(dataset, sources[name])
    with package.open(sources[name]) as run:
        for query in load_library().queries():
            if query.name in manifest["lacking"]:
                with pytest.raises(EvidenceError):
                    run.query(query.name)
                continue
            wanted = run.query(query.name).records()
            if not wanted:
                assert query.name in manifest["empty"]
                continue
            # SQLite lets a column of texts hold numbers, too; Parquet has the declared type.
            texts = {column.name for column in query.columns if column.type == "TEXT"}
            wanted = [
                {k: str(v) if k in texts and v is not None else v for k, v in row.items()}
                for row in wanted
            ]
            found = rows_of(dataset, query.name, manifest["run"])
            assert {row.pop("run") for row in found} == {manifest["run"]}
            if query.name == "findings":  # a command names the run by its path
                shown = shlex.quote(str(sources[name]))
                wanted = [r | {"evidence": r["evidence"].replace(shown, "RUN")} for r in wanted]
            assert found == wanted, query.name


def test_a_table_is_what_the_command_prints(
    wbscope: Wbscope, dataset: Path, sources: dict[str, Path]
) -> None:
    run = manifest_of(dataset, sources["writers"])["run"]
    for query in ("stalls", "throttle_by_task"):
        found = rows_of(dataset, query, run)
        told = [{k: v for k, v in row.items() if k != "run"} for row in found]
        assert told == wbscope.query(query, sources["writers"])


def test_types_units_and_meanings_stand_in_each_file(dataset: Path) -> None:
    kinds = {"INTEGER": "int64", "REAL": "double", "TEXT": "string"}
    for query in load_library().queries():
        for path in dataset.glob(f"{query.name}/*/*/*/*.parquet"):
            schema = pyarrow.parquet.read_schema(path)
            assert schema.names == ["run", *(column.name for column in query.columns)]
            for field, column in zip(list(schema)[1:], query.columns, strict=True):
                assert str(field.type) == kinds[column.type], (query.name, column.name)
                about = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
                about.pop("PARQUET:field_id", None)
                unit = unit_of(column.name)
                wanted = {"description": column.description, **({"unit": unit} if unit else {})}
                assert about == wanted
            assert schema.metadata[b"table"].decode() == query.name
            assert schema.metadata[b"fleet_schema"] == b"1"


def test_a_manifest_names_all_files_and_their_content(dataset: Path) -> None:
    named = {}
    for run, manifest in manifests(dataset).items():
        for name, told in manifest["files"].items():
            content = (dataset / name).read_bytes()
            assert len(content) == told["bytes"]
            assert hashlib.sha256(content).hexdigest() == told["sha256"]
            assert pyarrow.parquet.read_metadata(dataset / name).num_rows == told["rows"] > 0
            named[name] = run
    on_disk = {str(path.relative_to(dataset)) for path in dataset.rglob("*.parquet")}
    assert on_disk == set(named)
    assert {path.name for path in dataset.iterdir() if path.name.startswith("_")} == {
        "_dataset.json", "_intent", "_lock", "_manifest", "_work",
    }  # fmt: skip
    assert not list((dataset / "_intent").iterdir())
    assert not list((dataset / "_work").iterdir())


def test_what_others_read(dataset: Path) -> None:
    told = manifests(dataset).values()
    counts = {
        manifest["run"]: next(f["rows"] for f in manifest["files"].values() if f["table"] == table)
        for table in ("stalls",)
        for manifest in told
    }
    partitions = {(m["run"], m["date"], m["host"], m["kernel"]) for m in told}
    pattern = f"{dataset}/stalls/*/*/*/*.parquet"
    found = duckdb.sql(
        "SELECT run, date, host, kernel, count(*) FROM read_parquet(?, hive_partitioning = true,"
        " hive_types = {date: VARCHAR, host: VARCHAR, kernel: VARCHAR}) GROUP BY ALL",
        params=[pattern],
    ).fetchall()
    assert {row[0]: row[4] for row in found} == counts
    assert {row[:4] for row in found} == partitions
    frame = pandas.read_parquet(dataset / "stalls")
    assert frame.groupby("run").size().to_dict() == counts
    lazy = polars.scan_parquet(pattern, hive_partitioning=True)
    grouped = lazy.group_by("run").len().collect()
    assert dict(grouped.iter_rows()) == counts
    arrow = pyarrow.dataset.dataset(dataset / "stalls", partitioning="hive").to_table()
    assert len(arrow) == sum(counts.values())
    assert {"date", "host", "kernel"} <= set(arrow.column_names)


def test_a_run_says_where_its_facts_are_from(dataset: Path, sources: dict[str, Path]) -> None:
    run = manifest_of(dataset, sources["cgroup"])
    (row,) = rows_of(dataset, "runs", run["run"])
    assert row["kernel_release"] == run["kernel"] == "6.1.0-50-cloud-amd64"
    # Files of the corpus are packed with no time of their own.
    assert (run["date"], row["date_basis"], row["recorded_unix_s"]) == ("unknown", "none", None)
    assert run["host"] == "unknown"
    assert row["host_basis"] in ("meta.json", "uname", "none")
    assert run["checks"].get("agrees") == row["checks_agree_count"] > 0


def test_devices_have_their_names_and_models(
    wbscope: Wbscope, sources: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "trace.dat").write_bytes((sources["writers"] / "trace.dat").read_bytes())
    (run / "bdis").write_text(
        "8:0 sda1 /boot ext4\n8:0 sda2 /data ext4\n254:0 vda /a\\040b ext4\nbtrfs-1 vdb /c btrfs\n"
    )
    models = "device/vendor ATA\ndevice/model FAST SSD\n"
    (run / "devices").write_text(f"== sda\nsize 8\n{models}== vda\nsize 8\n")
    made = wbscope.run("fleet", "ingest", run, "-o", tmp_path / "dataset")
    assert made.returncode == 0, made.stderr
    (manifest,) = manifests(tmp_path / "dataset").values()
    rows = rows_of(tmp_path / "dataset", "run_devices", manifest["run"])
    assert {row["bdi"]: (row["device"], row["mounts"], row["model"]) for row in rows} == {
        "8:0": ("sda", "/boot /data", "ATA FAST SSD"),
        "254:0": ("vda", "/a b", None),
        "btrfs-1": ("vdb", "/c", None),
    }


# Numbers of a dataset with runs that lost events, or are damaged, say so first.

QUESTION = "SELECT tid, pause_total_ns FROM throttle_by_task"
LOSSY = "2 of 4 runs lost events: their numbers are lower bounds; which: "
DAMAGED = "1 of 4 runs could be read in part only; which: "
WHICH = 'wbscope fleet sql DATASET "SELECT * FROM run_warnings"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, one of which 23 events and more are lost, one that lost nobody knows how many,
    and one that ends in the middle of a page."""
    path = tmp_path_factory.mktemp("runs")
    for name, case in (("whole", whole), ("lost", lost_events), ("cut", truncated)):
        (path / name).mkdir()
        case.make(path / name)
    trace = Trace(formats("sys_exit_write"), cpus=1, cmdlines={11: "dd"})
    trace.event(0, 10_000_000_000, 11, "sys_exit_write", {"ret": 1})
    trace.lost(0)
    trace.event(0, 10_001_000_000, 11, "sys_exit_write", {"ret": 2})
    (path / "unknown").mkdir()
    trace.write(path / "unknown/trace.dat")
    return path


@pytest.fixture(scope="module")
def lossy_dataset(wbscope: Wbscope, folder: Path) -> Path:
    names = [folder / name for name in ("whole", "lost", "cut", "unknown")]
    done = wbscope.run("fleet", "ingest", *names, "-o", folder / "dataset")
    assert done.returncode == 0, done.stderr
    return folder / "dataset"


@pytest.mark.parametrize("words", [("fleet", "ingest", "-o"), ("export", "--parquet")])
def test_a_run_that_is_added_says_what_it_lost(
    wbscope: Wbscope, folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    *verb, option = words
    names = [folder / name for name in ("whole", "lost", "cut")]
    told = wbscope.run(*verb, *names, option, tmp_path / "a").stderr.splitlines()
    where = [-1]
    where += [next(n for n, line in enumerate(told) if line == f"added: {name}") for name in names]
    before = {
        name.name: told[begin + 1 : end]
        for name, (begin, end) in zip(names, pairwise(where), strict=True)
    }
    assert before["lost"][0].startswith(
        f"warning[lost-events]: {names[1]}: the ring buffer overran 2"
    )
    assert before["cut"][0].startswith(f"warning[damaged-trace]: {names[2]}: ")
    assert [len(lines) for lines in before.values()] == [0, 1, 1]
    document = json.loads(wbscope.run(*verb, *names, option, tmp_path / "b", "--json").stdout)
    assert [(one["run"], one["slug"]) for one in document["warnings"]] == [
        (str(names[1]), "lost-events"),
        (str(names[2]), "damaged-trace"),
    ]
    assert [row["error"] for row in document["rows"]] == [None] * 3


def test_every_answer_says_how_many_runs_are_not_whole(
    wbscope: Wbscope, lossy_dataset: Path
) -> None:
    told = [
        {"slug": "lost-events", "message": LOSSY + WHICH},
        {"slug": "damaged-trace", "message": DAMAGED + WHICH},
    ]
    assert wbscope.document("fleet", "sql", lossy_dataset, QUESTION)["warnings"] == told
    assert wbscope.document("fleet", "sql", lossy_dataset)["warnings"] == told
    report = wbscope.document("fleet", "report", lossy_dataset)
    assert [one for one in report["warnings"] if one in told] == told
    (head,) = report["rows"]
    assert (head["lossy_count"], head["damaged_count"]) == (2, 1)
    asked = wbscope.run("fleet", "sql", lossy_dataset, QUESTION)
    assert asked.stderr.splitlines() == [
        f"warning[{one['slug']}]: {one['message']}" for one in told
    ]
    page = wbscope.run("fleet", "report", lossy_dataset).stdout
    assert LOSSY + WHICH in " ".join(page.split())
    assert max(map(len, page.splitlines()[:8])) <= 80


def test_what_it_tells_to_ask_names_the_runs(wbscope: Wbscope, lossy_dataset: Path) -> None:
    rows = wbscope.document(
        "fleet",
        "sql",
        lossy_dataset,
        "SELECT r.name, w.slug FROM run_warnings AS w JOIN runs AS r ON r.run = w.run"
        " WHERE w.slug IN ('lost-events', 'damaged-trace') ORDER BY 1",
    )["rows"]
    assert [(row["name"], row["slug"]) for row in rows] == [
        ("cut", "damaged-trace"),
        ("lost", "lost-events"),
        ("unknown", "lost-events"),
    ]


def test_whole_runs_say_nothing(wbscope: Wbscope, folder: Path, tmp_path: Path) -> None:
    done = wbscope.run("fleet", "ingest", folder / "whole", "-o", tmp_path / "dataset", "--json")
    assert json.loads(done.stdout)["warnings"] == []
    for words in ((), (QUESTION,)):
        document = wbscope.document("fleet", "sql", tmp_path / "dataset", *words)
        assert document["warnings"] == []


def test_warnings_of_a_manifest_that_are_none(
    wbscope: Wbscope, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "dataset"
    assert wbscope.run("fleet", "ingest", folder / "lost", "-o", place).returncode == 0
    (manifest,) = (place / "_manifest").iterdir()
    document = json.loads(manifest.read_text())
    for strange in (7, [3], [["lost-events"]], {"a": "b"}):
        manifest.write_text(json.dumps(document | {"warnings": strange}))
        done = wbscope.run("fleet", "sql", place, QUESTION)
        assert (done.returncode, "error[damaged-dataset]" in done.stderr) == (3, True), strange
