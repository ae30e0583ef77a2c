# SPDX-License-Identifier: Apache-2.0
"""fio's JSON in the run, and nothing that the user asked fio for changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wbscope.record.workload import FioResults, fio_results, json_part

_JSON = '{\n  "fio version" : "fio-3.33",\n  "jobs" : [ {} ]\n}'


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "fio").touch(0o755)
    monkeypatch.setenv("PATH", str(programs))


def _results(folder: Path, *words: str) -> FioResults:
    found = fio_results(["fio", *words, "job.fio"], folder, folder)
    assert found is not None
    return found


def test_what_fio_prints_goes_through_a_file(tmp_path: Path) -> None:
    found = _results(tmp_path)
    out = f"--output={tmp_path / 'fio.out'}"
    assert found.command == ("fio", out, "--output-format=normal,json", "job.fio")
    (tmp_path / "fio.out").write_text(f"note\n{_JSON}\n\njob: (groupid=0)\n  {{}}\n")
    shown: list[str] = []
    assert found.save(tmp_path, shown.append) is None
    assert json.loads((tmp_path / "fio.json").read_text())["jobs"] == [{}]
    assert "".join(shown).split() == ["note", "job:", "(groupid=0)", "{}"]
    assert not (tmp_path / "fio.out").exists()


@pytest.mark.parametrize(
    "words", [("--output-format=json",), ("--output-format", "normal,json"), ("-output-f=json+",)]
)
def test_json_that_is_printed_stays_printed(tmp_path: Path, words: tuple[str, ...]) -> None:
    found = _results(tmp_path, *words)
    assert found.command == ("fio", f"--output={tmp_path / 'fio.out'}", *words, "job.fio")
    (tmp_path / "fio.out").write_text(_JSON)
    shown: list[str] = []
    assert found.save(tmp_path, shown.append) is None
    assert shown == [_JSON]
    assert (tmp_path / "fio.json").read_text() == _JSON


@pytest.mark.parametrize(
    "words",
    [
        ("--output-format=json", "--output=mine"),
        ("--output-format", "json+", "--output", "mine"),
        ("--output-format=normal,json", "--output", "mine"),
    ],
)
def test_own_file_with_json_is_copied(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "mine").write_text("of an older run")
    found = _results(tmp_path, *words)
    assert found.command == ("fio", *words, "job.fio")
    told = f"fio did not write {tmp_path / 'mine'}, so the run has no fio.json"
    assert found.save(tmp_path, pytest.fail) == told
    (tmp_path / "mine").write_text(f"{_JSON}\njob: text\n")
    assert found.save(tmp_path, pytest.fail) is None
    assert (tmp_path / "fio.json").read_text() == _JSON
    assert (tmp_path / "mine").read_text() == f"{_JSON}\njob: text\n"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--output=mine",), "add --output-format=normal,json"),
        (("--output", "mine"), "add --output-format=normal,json"),
        (("--output-format=terse",), "add --output-format=terse,json"),
    ],
)
def test_no_json_is_told(tmp_path: Path, words: tuple[str, ...], wanted: str) -> None:
    found = _results(tmp_path, *words)
    assert found.command == ("fio", *words, "job.fio")
    (tmp_path / "mine").write_text("text")
    assert wanted in str(found.save(tmp_path, pytest.fail))
    assert not (tmp_path / "fio.json").exists()
    assert (tmp_path / "mine").read_text() == "text"


@pytest.mark.parametrize("text", ["", '{\n  "jobs" : [', "fio: job.fio: no such file\n"])
def test_no_empty_or_broken_json(tmp_path: Path, text: str) -> None:
    found = _results(tmp_path)
    (tmp_path / "fio.out").write_text(text)
    shown: list[str] = []
    assert "no whole JSON" in str(found.save(tmp_path, shown.append))
    assert shown == [text]
    assert not (tmp_path / "fio.json").exists()


def test_other_commands() -> None:
    assert fio_results(["dd", "if=x"], Path("/x"), Path("/x")) is None
    assert fio_results([], Path("/x"), Path("/x")) is None


def test_last_document_counts() -> None:
    """With --status-interval there is one at each interval."""
    assert json_part(f'{{"n": 1}}\nnote\n{_JSON}\n') == _JSON
    assert json_part("  {}") is None
