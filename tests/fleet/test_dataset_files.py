# SPDX-License-Identifier: Apache-2.0
"""The files of a dataset: others read them without wbscope, and they say what queries say."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet
import pytest
import wbscope as package
from support.cli import Wbscope
from wbscope.base.errors import EvidenceError
from wbscope.base.result import unit_of
from wbscope.library.library import load_library

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
