# SPDX-License-Identifier: Apache-2.0
"""Questions over a dataset: DuckDB says what the runs say one by one, and reads nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet
import pytest
import wbscope as package
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.runs import REPOSITORY, example
from support.tools import ingester_path, wbscope_path
from support.waits import GUARD_SECONDS, wait_until
from wbscope.fleet.redact import Redaction, redact_database


@pytest.mark.parametrize(
    ("statement", "slug"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "bad-sql"),
        ("COPY runs TO 'out.csv'", "not-a-select"),
        ("SELECT 1; SELECT 2", "not-a-select"),
        ("SET memory_limit = '1GB'", "not-a-select"),
        ("ATTACH 'other.db'", "not-a-select"),
        ("SELECT nothing FROM runs", "bad-sql"),
        ("SELECT '\udcff' AS a", "not-text"),
    ],
)
@pytest.mark.core
def test_sql_only_reads_the_dataset(
    wbscope: Wbscope, dataset: Path, tmp_path: Path, statement: str, slug: str
) -> None:
    refused = wbscope.run("fleet", "sql", dataset, statement, cwd=tmp_path)
    assert (refused.returncode, slug in refused.stderr) == (2, True), refused.stderr
    assert not list(tmp_path.iterdir())


def test_a_misspelt_table_has_the_nearest(wbscope: Wbscope, dataset: Path) -> None:
    refused = wbscope.run("fleet", "sql", dataset, "SELECT * FROM stals")
    assert refused.returncode == 2
    assert "  have: tables stalls" in refused.stderr, refused.stderr


def test_a_table_without_rows_has_its_columns(wbscope: Wbscope, dataset: Path) -> None:
    document = wbscope.document("fleet", "sql", dataset, "SELECT slug, host FROM ingest_errors")
    assert document["rows"] == []


@pytest.mark.core
def test_the_report_says_what_the_runs_say(
    wbscope: Wbscope, dataset: Path, sources: dict[str, Path], tmp_path: Path
) -> None:
    document = wbscope.document("fleet", "report", dataset)
    (head,) = document["rows"]
    sections = {section["name"]: section["rows"] for section in document["sections"]}
    severe, total, pauses = 0, dict[tuple[str, str], int](), []
    for source in sources.values():
        with package.open(source) as run:
            found = run.query("findings").records()
            severe += any(one["severity"] == "severe" for one in found)
            for one in found:
                key = (one["severity"], one["id"])
                total[key] = total.get(key, 0) + (one["cost_task_ns"] or 0)
            pauses += [row["pause_p99_ns"] for row in run.query("throttle_summary").records()]
    assert (head["runs_count"], head["severe_count"]) == (3, severe)
    for row in sections["problems"]:
        assert row["cost_task_ns"] == total[row["severity"], row["id"]]
    assert max(row["p99_max_ns"] for row in sections["pause_p99"]) == max(filter(None, pauses))
    page = tmp_path / "report.html"
    assert wbscope.run("fleet", "report", dataset, "-o", page).returncode == 0
    text = page.read_text()
    assert document["title"] in text
    assert not re.search(r"(src|href)=\"?https?:", text)


@pytest.mark.core
def test_the_report_has_no_all_clear_of_runs_without_one(wbscope: Wbscope, tmp_path: Path) -> None:
    healthy = unpack(CORPUS / "6.1-healthy-cgroup", tmp_path)
    untold = REPOSITORY / "examples/gate/runs/lower-2"
    titles = []
    for name, runs in (("clear", [healthy]), ("mixed", [healthy, untold])):
        assert wbscope.run("fleet", "ingest", *runs, "-o", tmp_path / name).returncode == 0
        titles.append(wbscope.document("fleet", "report", tmp_path / name)["title"])
    assert titles[0] == "nothing is wrong in 1 run"
    assert titles[1].endswith("; 1 of 2 runs (50.0 %) have an all-clear")


def test_the_report_calls_runs_by_name(wbscope: Wbscope, dataset: Path, tmp_path: Path) -> None:
    """A hash says nothing to people, and `unknown` is said of no machine whose run is named."""
    document = wbscope.document("fleet", "report", dataset)
    sections = {section["name"]: section["rows"] for section in document["sections"]}
    sql = "SELECT run, name, source, host FROM runs"
    runs = {row["run"]: row for row in wbscope.document("fleet", "sql", dataset, sql)["rows"]}
    expected = []
    for row in sections["problems"][:3]:
        one = runs[row["run"]]
        where = f"({one['source']})" if one["host"] == "unknown" else f"of {one['host']}"
        expected.append(f"worst in {one['name']} {where}: ")
    assert any("(" in told for told in expected)
    page = tmp_path / "report.html"
    assert wbscope.run("fleet", "report", dataset, "-o", page).returncode == 0
    text = wbscope.run("fleet", "report", dataset).stdout
    for told in expected:
        assert told.replace(" ", "") in re.sub(r"\s", "", text)
        assert told in page.read_text()
    assert "of unknown" not in text


def test_a_gate_over_cohorts(wbscope: Wbscope, dataset: Path, tmp_path: Path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text('[metrics."throttle_summary.pause_p99_ns"]\nbudget = "<= 1h"\n')
    words = ("--policy", policy, "--cohort", "name = 'cgroup'", "--unit", "run")
    done = wbscope.run("fleet", "gate", dataset, *words, "--against", "name <> 'cgroup'")
    assert done.returncode in (0, 4), done.stderr
    empty = wbscope.run("fleet", "gate", dataset, *words, "--against", "name = 'none'")
    assert (empty.returncode, "empty-cohort" in empty.stderr) == (4, True)
    both = wbscope.run("fleet", "gate", dataset, *words, "--against", "1 = 1")
    assert (both.returncode, "run-on-both-sides" in both.stderr) == (2, True)


_ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"
_LARGE = "SELECT count(*) FROM (SELECT DISTINCT range FROM range(3000000000))"
_PREDICATE = f"run IN (SELECT run FROM runs WHERE ({_LARGE}) > 0)"


def _start(wbscope: Wbscope, words: Sequence[str | Path], **limits: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [wbscope_path(), "fleet", *words], env=wbscope.env | limits, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("question", "limits", "slug"),
    [
        (_ENDLESS, {"WBSCOPE_TIMEOUT": "1"}, "time-limit"),
        (_LARGE, {"WBSCOPE_MEMORY_LIMIT": "600000000", "WBSCOPE_TEMP_LIMIT": "50000000"},
         "temp-limit"),
        ("SELECT range FROM range(300000000)", {"WBSCOPE_MEMORY_LIMIT": "600000000"},
         "memory-limit"),
    ],
)  # fmt: skip
def test_limits_of_duckdb(
    wbscope: Wbscope, dataset: Path, tmp_path: Path, question: str, limits: dict[str, str],
    slug: str,
) -> None:  # fmt: skip
    """Those of `sql`; nothing is left where DuckDB writes what does not fit into memory."""
    started = _start(wbscope, ("sql", dataset, question), TMPDIR=str(tmp_path), **limits)
    out, err = started.communicate(timeout=GUARD_SECONDS)
    assert (started.returncode, out) == (2, ""), err
    assert err.startswith(f"error[{slug}]: sql: "), err
    assert list(tmp_path.iterdir()) == []


def _is_asked(pid: int) -> bool:
    """DuckDB is in the middle of the question: it has more memory than before."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") > 400 << 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("verb", ["sql", "gate"])
def test_signals_end_duckdb(
    wbscope: Wbscope, dataset: Path, tmp_path: Path, verb: str, number: signal.Signals
) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text('[metrics."throttle_summary.pauses_count"]\nmargin = "10%"\n')
    words: dict[str, tuple[str | Path, ...]] = {
        "sql": ("sql", dataset, _LARGE),
        "gate": ("gate", dataset, "--policy", policy, "--cohort", _PREDICATE, "--against", "1=1"),
    }
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    started = _start(wbscope, words[verb], TMPDIR=str(scratch))
    wait_until(lambda: _is_asked(started.pid), "the question")
    started.send_signal(number)
    out, err = started.communicate(timeout=GUARD_SECONDS)
    assert (started.returncode, out, err) == (130, "", "interrupted\n")
    assert list(scratch.iterdir()) == []


def test_redacted_names_are_nowhere(
    wbscope: Wbscope, sources: dict[str, Path], tmp_path: Path
) -> None:
    database = tmp_path / "run.db"
    wbscope.run("ingest", sources["cgroup"], "-o", database)
    with sqlite3.connect(database) as connection:
        names = {name for (name,) in connection.execute("SELECT comm FROM task")}
    kernel = r"k(worker|swapd|softirqd|compactd|threadd)|jbd2|swapper|<|migration|trace-cmd"
    # A file system and a cgroup of this run.
    private = {name for name in names if not re.match(kernel, name)} | {"/data", "/small"}
    assert "dd" in private
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    dataset = tmp_path / "dataset"
    words = ("fleet", "ingest", sources["cgroup"], "-o", dataset)
    assert wbscope.run(*words, "--redact", key).returncode == 0
    texts = set()
    for path in dataset.rglob("*.parquet"):
        table = pyarrow.parquet.ParquetFile(path).read()
        for name in table.column_names:
            if str(table.schema.field(name).type) == "string":
                texts |= {(path.parts[-5], name, text) for text in table[name].to_pylist() if text}
    for name in private:
        found = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        is_word = name in ("sleep", "sync")  # of our own sentences: only as a whole cell
        shown = [one for one in texts if one[2] == name or (not is_word and found.search(one[2]))]
        assert not shown, (name, shown[:3])
    assert wbscope.run(*words).returncode == 2  # plain names beside hashed ones
    check_no_guess(wbscope, dataset, tmp_path, key)
    key.write_bytes(b"short")
    assert wbscope.run(*words, "--redact", key).returncode == 3


def test_redacted_runs_keep_what_fio_measured(wbscope: Wbscope, tmp_path: Path) -> None:
    """Its version is no secret: without it nobody knows the units, and the run was refused."""
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    run = example("rate-limited-writers").folder
    version = json.loads((run / "fio.json").read_text())["fio version"]
    told = []
    for name, options in (("plain", ()), ("hashed", ("--redact", key))):
        done = wbscope.run("fleet", "ingest", run, "-o", tmp_path / name, *options)
        assert done.returncode == 0, done.stderr
        question = "SELECT metric, value FROM run_metrics WHERE metric LIKE 'fio.%' ORDER BY ALL"
        rows = wbscope.document("fleet", "sql", tmp_path / name, question)["rows"]
        told.append([row for row in rows if "[" not in row["metric"]])
    assert told[0] == told[1] != []
    rule = Redaction(bytes(range(32)))
    for secret in ("fio-of-alice", "fio-3.36 on db7", "fio-3.36-alice", f"{version}\n", "fio-"):
        assert rule.result(secret).startswith("x-"), secret
    for kept in (version, "fio-3.36", "fio-3.36-47-gd6dbd", "fio-3.33-dirty"):
        assert rule.result(kept) == kept


@pytest.mark.parametrize("form", [(), ("--quiet",), ("--json",)])
def test_refused_runs_are_no_success(
    wbscope: Wbscope, sources: dict[str, Path], tmp_path: Path, form: tuple[str, ...]
) -> None:
    """The others are in the dataset; so it is each time, until somebody allows it."""
    (tmp_path / "empty").mkdir()
    trace = tmp_path / "cut/trace.dat"
    trace.parent.mkdir()
    trace.write_bytes((sources["reclaim"] / "trace.dat").read_bytes()[:200])
    words = ("fleet", "ingest", sources["reclaim"], tmp_path / "empty", trace.parent)
    dataset = tmp_path / "dataset"
    for added in ("1 run added", "0 runs added, 1 there already"):
        done = wbscope.run(*words, "-o", dataset, *form)
        assert done.returncode == 4, done.stderr
        if "--json" in form:
            assert json.loads(done.stdout)["failed_count"] == 2
        else:
            last = done.stderr.splitlines()[-1]
            assert last == f"wrote {dataset}: {added}, 2 refused (table ingest_errors)"
        assert wbscope.run(*words, "-o", dataset, *form, "--allow-errors").returncode == 0
    assert wbscope.run("fleet", "ingest", sources["reclaim"], "-o", dataset).returncode == 0


def test_what_lies_on_what_is_kept(
    wbscope: Wbscope, sources: dict[str, Path], tmp_path: Path
) -> None:
    """Numbers of devices name nobody, and without them a finding tells of no disk."""
    stacks = "253:0 8:0\nbtrfs-1 253:0\n"
    run, database = tmp_path / "run", tmp_path / "run.db"
    shutil.copytree(sources["cgroup"], run)
    (run / "stacks").write_text(stacks)
    wbscope.run("ingest", run, "-o", database)
    redact_database(database, Redaction(bytes(32)))
    with sqlite3.connect(database) as connection:
        texts = connection.execute("SELECT text FROM sidecar_text WHERE name = 'stacks'").fetchall()
        rows = connection.execute("SELECT bdi, disk FROM sidecar_stacks").fetchall()
    assert texts == [(stacks,)]
    assert rows == [("253:0", "8:0"), ("btrfs-1", "253:0")]


def test_paths_in_files_of_the_machine_are_nowhere(
    sources: dict[str, Path], tmp_path: Path
) -> None:
    run, database = tmp_path / "run", tmp_path / "run.db"
    shutil.copytree(sources["cgroup"], run)
    secret = "/secret/my\\040secret"
    for name, text in (
        ("mounts", f"1 0 8:1 / {secret} rw - ext4 /dev/sda1 rw,lowerdir=/secret\n"),
        ("bdis", f"8:0 sda1 {secret} ext4\n0:45 server:{secret} /net nfs4\n"),
        ("swaps", f"{secret} file 8 0 -2\n/dev/sdb partition 8 0 -2\n"),
        ("sysctls", "kernel.hostname = secret\nkernel.modprobe = /secret\nvm.swappiness = 60\n"),
    ):
        (run / name).write_text(text)
    subprocess.run([ingester_path(), "sqlite", run, "-o", database], check=True)  # no views
    redact_database(database, Redaction(bytes(32)))
    with sqlite3.connect(database) as connection:
        left = [line for line in connection.iterdump() if "secret" in line]
        devices = connection.execute("SELECT device FROM sidecar_bdis ORDER BY line").fetchall()
        swap = connection.execute("SELECT path FROM sidecar_swaps WHERE type = 'partition'")
        assert swap.fetchall() == [("/dev/sdb",)]
        places = connection.execute(
            "SELECT count(DISTINCT mount) FROM (SELECT mount FROM sidecar_mounts UNION ALL"
            " SELECT path FROM sidecar_swaps WHERE type = 'file' UNION ALL"
            " SELECT mount FROM sidecar_bdis WHERE bdi = '8:0')"
        ).fetchone()
    assert left == []
    assert devices[0] == ("sda1",)
    assert str(devices[1][0]).startswith("server:/p-")
    assert places == (1,)  # one below another is found


def check_no_guess(wbscope: Wbscope, dataset: Path, folder: Path, key: Path) -> None:
    """Without the key nobody can test a name against what a source without content is called."""
    (folder / "empty").mkdir()
    words = ("fleet", "ingest", folder / "empty", "-o", dataset, "--redact", key)
    for _ in "12":
        assert wbscope.run(*words).returncode == 4
    question = "SELECT id, slug FROM ingest_errors"
    (row,) = wbscope.document("fleet", "sql", dataset, question)["rows"]
    guess = f"{folder / 'empty'}\0{row['slug']}".encode()
    assert not hashlib.sha256(guess).hexdigest().startswith(row["id"])


def test_a_table_with_the_name_of_a_word_of_sql(wbscope: Wbscope, dataset: Path) -> None:
    refused = wbscope.run("fleet", "sql", dataset, "SELECT count(*) AS n FROM check")
    assert refused.returncode == 2
    assert '"check"' in refused.stderr.partition("fix: ")[2]
    told = wbscope.document("fleet", "sql", dataset, 'SELECT count(*) AS n FROM "check"')
    assert told["rows"][0]["n"] > 0
