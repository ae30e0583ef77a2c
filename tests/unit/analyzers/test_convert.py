# SPDX-License-Identifier: Apache-2.0
"""wbscope convert: what it passes on, what it refuses, how it ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import line_of

Cli = Callable[..., Any]


def test_what_is_passed_on(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.pftrace"
    ran = cli("convert", trace, "-o", output)
    assert (ran.code, ran.out) == (0, "")
    line_of(ran.err, f"wrote {output}: ", 2, 3)
    [call] = ingester.calls()
    words = call["arguments"]
    assert words[:2] == ["convert", str(trace)]
    assert words[2:4] == ["-o", words[3]]
    assert words[4:] == ["--json-lines"]
    assert output.is_file()


def test_options(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    guest = tmp_path / "guest.dat"
    guest.write_bytes(trace.read_bytes())
    words = ("--compat", "--events", "sched:*", "--events", "block:*", "--time-range", "2s..4s")
    assert cli("convert", trace, guest, "-o", tmp_path / "x.pftrace", *words).code == 0
    [call] = ingester.calls()
    assert call["arguments"][1:3] == [str(trace), str(guest)]
    passed = ["--compat", "--events", "sched:*", "--events", "block:*"]
    passed += ["--time-range", "+2000000000..+4000000000", "--json-lines"]
    assert call["arguments"][5:] == passed


def test_a_run_folder_is_its_trace(cli: Cli, ingester: Any, run_folder: Path) -> None:
    assert cli("convert", run_folder, "-o", run_folder / "x.pftrace").code == 0
    assert ingester.calls()[0]["arguments"][1] == str(run_folder)


def test_document(
    cli: Cli, ingester: Any, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "damaged")
    output = tmp_path / "x.pftrace"
    document = cli("convert", trace, "-o", output, "--json").json()
    assert document["schema"] == "wbscope.convert/1"
    row = {"output": str(output), "events_count": 3, "converted_count": 2, "damaged": True}
    assert document["rows"] == [row]
    assert document["units"] == {"events_count": "count", "converted_count": "count"}
    assert [warning["slug"] for warning in document["warnings"]] == ["damaged-trace"]


def test_other_runs_are_refused(
    cli: Cli, ingester: Any, database: Path, trace: Path, tmp_path: Path
) -> None:
    perfetto = tmp_path / "there.pftrace"
    perfetto.write_bytes(b"\n\x04\x01\x02\x03\x04")
    ran = cli("convert", perfetto, "-o", tmp_path / "x.pftrace")
    assert (ran.code, ran.err.split(":")[0]) == (3, "error[already-perfetto]")
    ran = cli("convert", trace, database, "-o", tmp_path / "x.pftrace")
    assert (ran.code, ran.err.split(":")[0]) == (3, "error[not-a-trace]")
    assert f"wbscope timeline {database}" in ran.err
    assert cli("convert", tmp_path / "none.dat", "-o", tmp_path / "x.pftrace").code == 3
    assert ingester.calls() == []


def test_output_is_checked_first(cli: Cli, ingester: Any, trace: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.pftrace"
    output.write_text("earlier")
    assert cli("convert", trace, "-o", output).code == 2
    assert cli("convert", trace, "-o", trace, "--force").code == 2
    assert cli("convert", trace, "-o", "-").code == 2
    assert cli("convert", trace, "-o", tmp_path / "no" / "x").code == 5
    assert cli("convert", trace, "-o", output, "--events", "[").code == 2
    assert cli("convert", trace, "-o", output, "--time-range", "now").code == 2
    assert ingester.calls() == []
    assert cli("convert", trace, "-o", output, "--force").code == 0
    assert output.read_bytes() != b"earlier"


@pytest.mark.parametrize(("mode", "code"), [("error3", 3), ("error5", 5), ("signal9", 5)])
def test_what_fails_leaves_nothing(
    cli: Cli, ingester: Any, trace: Path, tmp_path: Path, monkeypatch: Any, mode: str, code: int
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", mode)
    assert cli("convert", trace, "-o", tmp_path / "x.pftrace").code == code
    assert os.listdir(tmp_path) == ["trace.dat"]
