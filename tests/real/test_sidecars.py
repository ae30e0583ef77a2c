# SPDX-License-Identifier: Apache-2.0
"""The files beside a trace arrive in the database as they are."""

from __future__ import annotations

import re

import pytest
from support.cli import Wbscope
from support.runs import RecordedRun, example
from support.sidecars import fio_written_bytes, ls_files_bytes, vmstat_value, zone_spans


def test_zones_are_those_of_zoneinfo(wbscope: Wbscope, recorded: RecordedRun) -> None:
    if not recorded.has("zoneinfo"):
        pytest.skip("the run has no zoneinfo")
    rows = wbscope.sql(
        recorded.folder,
        "SELECT node, zone, start_pfn, spanned_count FROM zone WHERE spanned_count > 0",
    )
    found = {
        (row["node"], row["zone"], row["start_pfn"], row["start_pfn"] + row["spanned_count"])
        for row in rows
    }
    assert found == set(zone_spans(recorded.folder))


@pytest.mark.parametrize("sample", ["before", "after"])
def test_vmstat_samples_are_whole(wbscope: Wbscope, recorded: RecordedRun, sample: str) -> None:
    if not recorded.has(f"vmstat.{sample}"):
        pytest.skip(f"the run has no vmstat.{sample}")
    rows = wbscope.sql(
        recorded.folder, f"SELECT name, value FROM sidecar_vmstat WHERE sample = '{sample}'"
    )
    lines = (recorded.folder / f"vmstat.{sample}").read_text().splitlines()
    names = [line.split()[0] for line in lines if re.fullmatch(r"\w+ \d+", line)]
    assert {row["name"]: row["value"] for row in rows} == {
        name: vmstat_value(recorded.folder, sample, name) for name in names
    }


def test_file_sizes_and_fio_totals(wbscope: Wbscope) -> None:
    deep = example("deep")
    rows = wbscope.sql(deep.folder, "SELECT name, bytes FROM sidecar_ls_files")
    sizes = {row["name"]: row["bytes"] for row in rows}
    for name, size in ls_files_bytes(deep.folder).items():
        assert sizes[name] == size
    rates = example("rate-limited-writers")
    values = {
        str(row["value"]) for row in wbscope.sql(rates.folder, "SELECT value FROM sidecar_fio")
    }
    assert {str(size) for size in fio_written_bytes(rates.folder).values()} <= values


def test_memory_cgroup_has_its_path(wbscope: Wbscope) -> None:
    rows = wbscope.sql(example("deep").folder, "SELECT cgroup_ino, path FROM cgroup")
    assert {row["cgroup_ino"]: row["path"] for row in rows}[27].endswith("/small")


@pytest.mark.parametrize("query", ["bdi_samples", "block_samples", "cgroup_samples", "pressure"])
def test_a_run_without_samples_says_so(wbscope: Wbscope, query: str) -> None:
    answer = wbscope.document("query", query, example("deep").folder)
    assert answer["rows"] == []
    assert [w["slug"] for w in answer["warnings"] if w["slug"] == "no-samples"] == ["no-samples"]


def test_kernel_release_and_clock(wbscope: Wbscope, recorded: RecordedRun) -> None:
    meta = {
        row["key"]: row["value"]
        for row in wbscope.sql(recorded.folder, "SELECT key, value FROM meta")
    }
    if recorded.has("uname"):
        words = (recorded.folder / "uname").read_text().split()
        assert meta["kernel_release"] == words[2]
    assert meta["clock"] == recorded.clock
    assert meta["endian"] == "little"
    assert int(meta["long_bytes"]) == 8
