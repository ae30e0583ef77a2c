# SPDX-License-Identifier: Apache-2.0
"""fio under record: its JSON in the run, its own output as it was asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.live import Recorder

_BYTES = 37 << 12
_JOB = ("--name=j", "--rw=write", "--bs=4k", f"--size={_BYTES}", "--ioengine=psync")
_OPTIONS = ("--backend", "tracefs", "--no-report", "-o", "run", "--", "fio")


@pytest.fixture(autouse=True)
def fio() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")


def _record(recorder: Recorder, disk: Path, *words: str) -> str:
    done = recorder.record(*_OPTIONS, *words, *_JOB, f"--filename={disk}/fio")
    assert done.returncode == 0, done.stderr
    return done.stderr


def _check(recorder: Recorder) -> None:
    result = json.loads((recorder.folder / "run/fio.json").read_text())
    assert result["jobs"][0]["write"]["io_bytes"] == _BYTES
    rows = recorder.sql(
        "run", "SELECT value FROM sidecar_fio WHERE path LIKE '%jobs%[0]%write%io_bytes%'"
    )
    assert [int(row["value"]) for row in rows] == [_BYTES]


def test_text_is_printed_and_json_kept(recorder: Recorder, disk: Path) -> None:
    said = _record(recorder, disk)
    assert "j: (groupid=0" in said
    assert '"jobs"' not in said
    assert not (recorder.folder / "run/fio.out").exists()
    _check(recorder)


def test_json_is_the_callers_under_sudo(recorder: Recorder, disk: Path) -> None:
    recorder.env |= {"SUDO_UID": "4242", "SUDO_GID": "4343"}
    _record(recorder, disk)
    run = recorder.folder / "run"
    assert (run / "fio.json").exists()
    assert {path.stat().st_uid for path in (run, *run.rglob("*"))} == {4242}


@pytest.mark.parametrize(
    "words",
    [
        ("--output-format=json", "--output=mine"),
        ("--output-format", "normal,json", "--output", "mine"),
        ("--output-format=json+", "--output", "mine"),
    ],
)
def test_own_file(recorder: Recorder, disk: Path, words: tuple[str, ...]) -> None:
    said = _record(recorder, disk, *words)
    assert "no-fio-json" not in said
    mine = (recorder.folder / "mine").read_text()
    assert ("j: (groupid=0" in mine) == ("normal,json" in words)
    _check(recorder)


def test_own_file_of_text_is_text(recorder: Recorder, disk: Path) -> None:
    said = _record(recorder, disk, "--output", "mine")
    assert "warning[no-fio-json]" in said
    assert "j: (groupid=0" in (recorder.folder / "mine").read_text()
    assert not (recorder.folder / "run/fio.json").exists()
