# SPDX-License-Identifier: Apache-2.0
"""Every parser that is not C++: whatever the bytes, there is a result or one error of ours.

Mutants of traces and of Perfetto's packets, which other programs read, are in test_commands.py.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from support.archives import unpacked
from support.labs import new_lab
from support.progress import hang_guard
from support.properties import for_all
from support.rundata import LEVEL, RATE, TIME, run
from support.texttrace import sent_archive
from wbscope.base.errors import WbscopeError
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.history import Place, add_runs, parse_date, read_history
from wbscope.compare.policy import read_policy
from wbscope.compare.sessions import Design
from wbscope.fleet.dataset import files_by_table, open_dataset
from wbscope.fleet.layout import FLEET_SCHEMA
from wbscope.fleet.questions import contents
from wbscope.lab.matrix import read_matrix
from wbscope.lab.store import read_finished
from wbscope.lab.summary import kept_text, lab_report, read_kept
from wbscope.measure import files_of_folder, measurements
from wbscope.measure.files import read_measurements
from wbscope.record.remote import unpack
from wbscope.stats.tests import smallest_p, smallest_p_of

_DATA = unpacked("data") / "measure"
_PIECES = (
    b"", b"0", b"-1", b"2147483647", b"9223372036854775807", b"9223372036854775808", b"1e999",
    b"9" * 5000, b"0x" + b"f" * 5000, b"1." + b"0" * 400, b"NaN", b"-Infinity", b"nan", b"true",
    b"null", b'""', b'"\\ud800"', b"\xff", b"\0", b"\r", b"\n", b"=", b"[", b"]", b"{", b"}",
    b"[" * 3000, b"{" * 3000, b'{"a":' * 2000, b"a." * 2000, b"'", b",", b"%", b"#", b" ",
    "\u0663".encode(), b"1979-13-40", b"\xef\xbb\xbf", b"inf", b"1_0",
)  # fmt: skip
_TOKEN = re.compile(rb"[0-9][0-9.eE+-]*|\"[^\"\n]*\"|\w+|[^\w\s]")


@st.composite
def _mutants(draw: Callable[..., Any], data: bytes) -> bytes:
    """Up to four changes: of a token, a byte, a piece that is cut or told twice, the end."""
    out = data
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(out) - 1, 0)))
        piece = draw(st.sampled_from(_PIECES) | st.binary(max_size=6))
        kind = draw(st.sampled_from(("token", "token", "token", "byte", "cut", "twice", "end")))
        if kind == "token" and (found := _TOKEN.search(out, at)):
            out = out[: found.start()] + piece + out[found.end() :]
        elif kind == "cut":
            out = out[:at] + out[at + draw(st.integers(1, 200)) :]
        elif kind == "twice":
            out = out[:at] + out[at : at + draw(st.integers(1, 200))] + out[at:]
        elif kind == "end":
            out = out[:at]
        else:
            out = out[:at] + piece + out[at + 1 :]
    return out


def _any_bytes(*bases: bytes) -> SearchStrategy[bytes]:
    mutants = st.one_of([_mutants(base) for base in bases])
    return st.one_of(mutants, mutants, mutants, st.binary(max_size=200))


def _check(read: Callable[[], object]) -> None:
    """A result, or an error that names what is wrong and has an exit code of input or usage."""
    told = ("", "", 3)  # not the error: its frames hold files open
    try:
        with hang_guard():
            read()
    except WbscopeError as error:
        told = (error.slug, str(error.message) or "nothing is told", error.exit_code)
    assert told[2] in (2, 3, 4), told
    assert bool(told[0]) == bool(told[1])


_POLICY = b"""\
alpha = 0.01
min_runs = 6
drop_first = 1
expect_runs = 10
differs = ["kernel", "sysctl.vm.dirty_bytes"]
require = ["check"]
worse = "fail"
[metrics."throttle_summary.pause_p99_ns"]
margin = "10%"
better = "lower"
budget = "<= 100ms"
each_run = "< 1s"
"""
_MATRIX = b"""\
runs = 6
seed = 7
limit = "5m"
boots = 3
title = "limits"
metrics = ["throttle_summary.*"]
[setup]
kernel.debian = "bookworm"
memory = "512M"
cpus = 2
swap = "64M"
disk = [{ at = "data", size = "2G", bytes_per_s = "20M", iops = 100, mkfs = ["-q"] }]
sysctl = { "vm.dirty_bytes" = "16M", "vm.swappiness" = 10 }
cgroup.small = { "memory.high" = "64M" }
workload = "dd if=/dev/zero of=$DATA/file bs=1M count=200"
[axis.limit]
free = {}
low.sysctl = { "vm.dirty_bytes" = "8M" }
"""
_RUN = run("a", {TIME: 1.5e9, RATE: 1e6, LEVEL: None}, zeros={"stalls.count": 0.0})
_PLACE = Place("a1b2", parse_date("date", "2026-01-01"))


@for_all(400, data=_any_bytes(_POLICY))
def test_policies(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "policy.toml"
    path.write_bytes(data)

    def use() -> None:
        policy = read_policy(path)
        policy.check_units({"throttle_summary.pause_p99_ns": "ns"})
        if policy.expect_runs is not None:
            n = max(policy.expect_runs - policy.drop_first, 1)
            assert 0 < smallest_p(n, n) <= 1

    _check(use)


@for_all(400, data=_any_bytes(_MATRIX))
def test_matrices(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "matrix.toml"
    path.write_bytes(data)
    _check(lambda: read_matrix(path))


_BASELINE = baseline_text([_RUN, run("b", {TIME: 2e9, RATE: 2e6, LEVEL: 0.5})]).encode()


@for_all(400, data=_any_bytes(_BASELINE))
def test_baselines(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "baseline.json"
    path.write_bytes(data)

    def use() -> None:
        json.dumps(baseline_text(read_baseline(path)))  # of what is read, all can be written

    _check(use)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "history.db"
    add_runs(path, [_RUN], _PLACE)
    return path


@for_all(150, chances=st.randoms(use_true_random=False))
def test_histories(chances: Any, history: Path) -> None:
    """Bytes of the file."""
    data = bytearray(history.read_bytes())
    for _ in range(chances.randint(1, 8)):
        data[chances.randrange(len(data))] = chances.randrange(256)
    path = history.with_name("mutant.db")
    path.write_bytes(data[: chances.choice((len(data), chances.randrange(len(data))))])
    _check(lambda: read_history(path))
    _check(lambda: add_runs(path, [run("c", {TIME: 1.0})], _PLACE))


_COLUMNS = {
    "run": ("source_id", "name", "commit_id", "date", "branch", "kernel", "session",
            "wbscope_version", "fingerprint", "zeros", "warnings"),
    "metric": ("name", "unit", "better", "meaning", "source", "not_across", "definition"),
    "value": ("run", "metric", "value"),
}  # fmt: skip


@for_all(
    200,
    column=st.sampled_from([(t, c) for t, columns in _COLUMNS.items() for c in columns]),
    value=st.sampled_from(_PIECES) | st.binary(max_size=9) | st.floats() | st.integers(-9, 9),
)
def test_values_of_histories(column: tuple[str, str], value: Any, history: Path) -> None:
    path = history.with_name("changed.db")
    shutil.copy(history, path)
    table, name = column
    with closing(sqlite3.connect(path)) as database, database:
        cast = f"CAST(? AS {'TEXT' if table != 'value' else 'NUMERIC'})"
        try:
            database.execute(f"UPDATE {table} SET {name} = {cast}", (value,))
        except sqlite3.IntegrityError:
            return  # NULL or a text, which SQLite itself refuses
    _check(lambda: read_history(path))
    _check(lambda: add_runs(path, [run("c", {TIME: 1.0})], _PLACE))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = {"low": [1.0, 2.0], "high": [3.0, 4.0]}
    return new_lab(tmp_path_factory.mktemp("lab") / "lab", {"limit": ("low", "high")}, values, 2)


@pytest.fixture(scope="module")
def kept(lab: Path) -> bytes:
    return kept_text(lab_report(read_finished(lab))).encode()


@for_all(200, data=st.data())
def test_results_of_labs(
    data: st.DataObject, kept: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "results.json"
    path.write_bytes(data.draw(_any_bytes(kept)))
    _check(lambda: read_kept(path))


@for_all(200, data=st.data(), name=st.sampled_from(["lab.json", "matrix.toml"]))
def test_folders_of_labs(
    data: st.DataObject, name: str, lab: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "copy-of-lab"
    shutil.copytree(lab, folder, dirs_exist_ok=True)
    (folder / name).write_bytes(data.draw(_any_bytes((lab / name).read_bytes())))
    _check(lambda: read_finished(folder))


def _files(pattern: str) -> list[bytes]:
    return [p.read_bytes() for p in sorted(_DATA.glob(pattern)) if p.stat().st_size < 9000]


_MEASURED = {
    "fio.json": _files("fio-*"),
    "perf-stat.txt": [*_files("perf-csv*"), *_files("perf-text*")],
    "perf-stat.json": _files("perf-json*"),
    "time.txt": _files("time-*"),
    "vmstat.txt": _files("procps-*"),
    "ops.txt": [b"ops 12345.5 ops/s higher\nlatency-p99 17 ms lower\nshare 12.5 % neutral\n"],
}


@pytest.mark.parametrize("name", _MEASURED)
def test_files_of_runs(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("run")

    @for_all(120, data=_any_bytes(*_MEASURED[name]))
    def holds(data: bytes) -> None:
        (folder / name).write_bytes(data)
        _check(lambda: measurements(files_of_folder(folder)))

    holds()


_SIDES = {
    "mmtests": _files("mmtests-*"),
    "mails": _files("mail-*"),
    "csv": _files("table-*"),
    "hyperfine": _files("hyperfine-*"),
    "perf": [*_files("perf-*r5*"), *_files("perf-append*")],
    "fio": _files("fio-*"),
}


@pytest.mark.parametrize("kind", _SIDES)
def test_files_as_sides(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("side") / "file"

    @for_all(120, data=_any_bytes(*_SIDES[kind]))
    def holds(data: bytes) -> None:
        path.write_bytes(data)
        _check(lambda: read_measurements(path))

    holds()


_ID = "4553846871d7294c10bfaf6864a13f86"
_FILE = f"stalls/date=2026-11-24/host=db7/kernel=6.1.0/{_ID}.parquet"
_MANIFEST = json.dumps({
    "fleet_schema": FLEET_SCHEMA, "database_schema": 7, "wbscope_version": "0.2.0", "run": _ID,
    "source": "trace.dat", "warnings": [["lost-events", "7 events"]], "lost_events_count": 7,
    "damaged": False, "checks": {}, "unanswered": {},
    "files": {_FILE: {"table": "stalls", "rows": 3, "bytes": 900, "sha256": "0" * 64}},
}).encode()  # fmt: skip
_DATASET = json.dumps({"fleet_schema": FLEET_SCHEMA, "redaction": None}).encode()


@for_all(300, manifest=_any_bytes(_MANIFEST), mark=st.just(_DATASET) | _any_bytes(_DATASET))
def test_manifests(manifest: bytes, mark: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "dataset"
    (folder / "_manifest").mkdir(parents=True, exist_ok=True)
    (folder / "_manifest" / f"{_ID}.json").write_bytes(manifest)
    (folder / "_dataset.json").write_bytes(mark)

    def use() -> None:
        dataset = open_dataset(folder)
        files_by_table(dataset.manifests().values())
        contents(dataset)

    _check(use)


@for_all(150, data=_any_bytes(sent_archive()))
def test_archives_of_recordings(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("recording")
    _check(lambda: unpack(io.BytesIO(data), folder))


@for_all(
    150,
    name=st.sampled_from(["facts", "events", "run/uname", "elf", "saved_cmdlines", "cpu0.stats"]),
    text=st.sampled_from([p.decode("latin-1") for p in _PIECES]) | st.text(max_size=40),
)
def test_files_of_recordings(
    name: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whole archives with another file in them."""
    folder = tmp_path_factory.mktemp("recording")
    data = sent_archive(**{name: text.encode("utf-8", "replace").decode()})
    _check(lambda: unpack(io.BytesIO(data), folder))


@for_all(
    100, blocks=st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 10_000)), max_size=5)
)
def test_no_p_is_zero(blocks: list[tuple[int, int]]) -> None:
    """What is divided by it is a number, however many runs there are."""
    assert 0 < smallest_p_of(blocks) <= 1
    for n, m in blocks:
        assert 0 < smallest_p(n, m) <= 1


def test_a_design_of_many_runs() -> None:
    many = ("boot",) * 700
    assert 0 < Design("runs", many, many).smallest_p() < 1e-300
