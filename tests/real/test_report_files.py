# SPDX-License-Identifier: Apache-2.0
"""`wbscope report -o`: what each kind of file holds, of one run and of several."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from golden.lost_events import case as lost_events
from support.archives import unpacked
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.reportpage import HOSTILE, ReadPage, hostile_run
from support.runs import RecordedRun, example

# Far below the 3 MB that a page may weigh.
_MOST_BYTES = 1_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two recorded by wbscope, with samples, mounts and settings."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        unpack(CORPUS / name, folder) for name in ("7.2-slow-starves-fast", "7.2-memory-cgroup")
    ]


def _page(wbscope: Wbscope, folder: Path, *words: str | Path) -> str:
    file = folder / "report.html"
    done = wbscope.run("report", *words, "-o", str(file), "--force")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.endswith(f"wrote {file}\n")
    return file.read_text(encoding="utf-8")


def test_a_page_is_whole_and_loads_nothing(
    recorded: RecordedRun, wbscope: Wbscope, tmp_path: Path
) -> None:
    text = _page(wbscope, tmp_path, recorded.folder)
    read = ReadPage(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert read.faults == []
    assert all(value.startswith("#") for _, _, value in read.references), read.references
    named = {given["id"] for _, given in read.elements if "id" in given}
    assert {value[1:] for _, name, value in read.references if name == "href"} <= named
    identities = [given["id"] for _, given in read.elements if "id" in given]
    assert len(identities) == len(set(identities))
    assert not [given for _, given in read.elements if any(name[:2] == "on" for name in given)]
    assert not [given for _, given in read.elements if "style" in given]
    assert len(text.encode()) < _MOST_BYTES


def test_its_policy_names_its_scripts_and_style(wbscope: Wbscope, tmp_path: Path) -> None:
    text = _page(wbscope, tmp_path, example("four-equal-writers").folder)
    read = ReadPage(text)
    (policy,) = [
        str(given["content"])
        for tag, given in read.elements
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for inner in (*read.scripts[1:], style):
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "Copyright (c) 2022 Leon Sorokin" in text


def test_its_numbers_are_those_of_the_queries(
    recorded: RecordedRun, wbscope: Wbscope, tmp_path: Path
) -> None:
    read = ReadPage(_page(wbscope, tmp_path, recorded.folder))
    report = wbscope.document("report", recorded.folder, "--full")
    start = wbscope.sql(recorded.folder, "SELECT value FROM meta WHERE key = 'first_ts'")
    first = int(start[0]["value"])
    compared = 0
    for section in report["rows"]:
        if not section.get("rows"):
            continue
        table = read.table(section["title"])
        shown = [cell for row in table.rows for cell in row]
        numbers = sorted(float(raw) for _, raw in shown if raw is not None)
        wanted = []
        rows = section["rows"]
        if "is_incidental" in rows[0]:
            main = [row for row in rows if not row["is_incidental"]] or rows
            rows = [{k: v for k, v in row.items() if k != "is_incidental"} for row in main]
        for row in rows[:100]:
            for name, value in row.items():
                if section["units"].get(name) in (None, "count") or value is None:
                    continue  # they stand as they are
                at = name == "ts" or name.endswith(("_ts", "_start_ns"))
                wanted.append(float(value - first if at else value))
        left = list(numbers)
        for value in wanted:
            assert value in left, (section["query"], value)
            left.remove(value)
        compared += len(wanted)
    assert compared > 50


def test_figures_have_the_highest_values_of_their_query(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    read = ReadPage(_page(wbscope, tmp_path, run))
    plots = {plot["figure"]: plot for plot in reversed(read.data["plots"].values())}
    series = {one["label"]: one for one in plots["global_dirty_state"]["series"]}
    (window,) = set(re.findall(r"wbscope query dirty_pages \S+ --window (\w+)", read.text()))
    rows = wbscope.query("dirty_pages", run, "--window", window)
    for label, column in (("dirty, largest", "dirty_max_bytes"), ("limit", "limit_bytes")):
        told = [y for y in series[label]["y"] if y is not None]
        assert max(told) == max(row[column] for row in rows if row[column] is not None)
        assert min(told) == min(row[column] for row in rows if row[column] is not None)


def test_the_same_run_gives_the_same_bytes(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("reclaim-writes").folder
    assert _page(wbscope, tmp_path, run) == _page(wbscope, tmp_path, run)


def test_the_verdict_comes_first_and_the_environment_last(
    runs: list[Path], wbscope: Wbscope, tmp_path: Path
) -> None:
    text = ReadPage(_page(wbscope, tmp_path, runs[0])).text()
    places = [
        text.index(words)
        for words in (
            "Dirty pages of one device throttle writers of another",
            "severe",
            "What to change",
            "Drag in a figure to zoom",
            "Dirty pages of the machine against its limits",
            "Whose dirty pages filled the pool while a task was throttled",
            "Longest waits",
            "Time that tasks lost, by finding",
            "Machine and recording",
            "vm.dirty_ratio",
        )
    ]
    assert places == sorted(places)
    assert "wbscope open" in text
    assert "vm.dirty_background_bytes" in text


def test_what_is_lost_stands_before_any_number(wbscope: Wbscope, tmp_path: Path) -> None:
    (lost,) = (unpacked("data") / "traces/6.1-amd64-v7-lost").glob("trace.dat*")
    text = ReadPage(_page(wbscope, tmp_path, lost)).text()
    assert "warning[lost-events]" in text
    assert text.index("warning[lost-events]") < text.index("| rule no_verdict")
    assert "not answered: needs" in text


def test_several_runs_stand_side_by_side(
    runs: list[Path], wbscope: Wbscope, tmp_path: Path
) -> None:
    read = ReadPage(_page(wbscope, tmp_path, *runs))
    names = [run.name for run in runs]
    assert read.faults == []
    assert read.data["runs"] == names
    table = read.table("Who was throttled")
    assert table.heads[0] == "run"
    assert {row[0][0] for row in table.rows} == set(names)
    rows = sum(len(wbscope.query("throttle_by_task", run)) for run in runs)
    assert len(table.rows) <= rows
    machine = read.table("Machine and recording")
    assert machine.heads == ["name", *names]
    plots = [p for p in read.data["plots"].values() if p["figure"] == "global_dirty_state"]
    assert [p["run"] for p in plots[:2]] == [0, 1]
    assert (plots[0]["low"], plots[0]["high"]) == (plots[1]["low"], plots[1]["high"])
    # Each command is about the run of its row.
    commands = [str(g["data-copy"]) for _, g in read.elements if "data-copy" in g]
    assert all(any(str(run) in text for text in commands if " --at " in text) for run in runs)


def test_strange_names_are_text(runs: list[Path], wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "hostile.db"
    assert wbscope.run("ingest", runs[0], "-o", database).returncode == 0
    hostile_run(database)
    text = _page(wbscope, tmp_path, database)
    read = ReadPage(text)
    assert read.faults == []
    assert not {"img", "b"} & {tag for tag, _ in read.elements}
    assert HOSTILE[0] in read.text()
    assert HOSTILE[3] in read.text()
    assert "a\\u2028b\\u2029c\\x1b[31m" in read.text()
    assert not set("\u2028\u2029\x1b") & set(text)
    labels = {one["label"] for p in read.data["plots"].values() for one in p["series"]}
    assert any(HOSTILE[0] in label for label in labels)


@pytest.mark.parametrize(
    ("suffix", "begin"),
    [
        (".html", "<!DOCTYPE html>"),
        (".htm", "<!DOCTYPE html>"),
        (".HTML", "<!DOCTYPE html>"),
        (".md", "# "),
        (".markdown", "# "),
        (".txt", ""),
        (".log", ""),
        (".json", "{"),
    ],
)
def test_a_file_is_what_its_name_says(
    wbscope: Wbscope, tmp_path: Path, suffix: str, begin: str
) -> None:
    run = example("four-equal-writers").folder
    file = tmp_path / f"report{suffix}"
    assert wbscope.run("report", run, "-o", str(file)).returncode == 0
    text = file.read_text(encoding="utf-8")
    # A path that leaves no room has the first line for itself.
    title = "A device is slower than its writers\n"
    assert text.startswith((begin,) if begin else (f"{run}: {title}", f"{run}:\n{title}"))
    if suffix == ".json":
        assert json.loads(text) == wbscope.document("report", run)
    # Whole or not at all, and nothing is replaced unasked.
    assert wbscope.run("report", run, "-o", str(file)).returncode == 2
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("suffix", [".html", ".md"])
def test_json_is_refused_under_another_name(wbscope: Wbscope, tmp_path: Path, suffix: str) -> None:
    run = example("four-equal-writers").folder
    done = wbscope.run("report", run, "--json", "-o", str(tmp_path / f"x{suffix}"))
    assert done.returncode == 2
    assert "two-formats" in done.stderr
    assert not list(tmp_path.iterdir())


def test_several_runs_in_other_formats(runs: list[Path], wbscope: Wbscope) -> None:
    text = wbscope.run("report", *runs).stdout
    first, second = (text.index(f"{run}:") for run in runs)
    assert first < second
    assert text[:second].rstrip() == wbscope.run("report", runs[0]).stdout.rstrip()
    document = wbscope.document("report", *runs)
    assert document["schema"] == "wbscope.reports/1"
    single = [wbscope.document("report", run) for run in runs]
    assert document["runs"] == [{k: v for k, v in one.items() if k != "schema"} for one in single]
    # As of one run: jq '.rows[]' reads both.
    assert document["rows"] == [{"run": one["run"], **row} for one in single for row in one["rows"]]
    assert {row["run"] for row in document["rows"]} == {str(run) for run in runs}
    assert document["units"] == single[0]["units"]


def test_what_several_runs_lost_is_told_of_each(wbscope: Wbscope, tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        place.mkdir()
        lost_events.make(place)
    told = wbscope.document("report", *places)["warnings"]
    assert [(one["run"], one["slug"]) for one in told] == [(str(p), "lost-events") for p in places]
    assert all("at least 23 events are lost" in one["message"] for one in told)


def test_markdown_has_the_verdict_and_its_tables(
    runs: list[Path], wbscope: Wbscope, tmp_path: Path
) -> None:
    file = tmp_path / "x.md"
    assert wbscope.run("report", *runs, "-o", str(file)).returncode == 0
    text = file.read_text()
    titles = re.findall(r"^# (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    assert titles == [
        "Dirty pages of one device throttle writers of another",
        "A memory cgroup is too small for the burst",
    ]
    assert text.count("## Time that tasks lost, by finding") == 2
    assert f"wbscope query lost_time {runs[0]}" in text
    assert max(len(line) for line in text.splitlines() if line.startswith("## ")) < 80


def test_the_same_run_twice_is_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    done = wbscope.run("report", run, run, "-o", str(tmp_path / "x.html"))
    assert done.returncode == 2
    assert "same-run" in done.stderr


def test_a_run_that_is_not_there_does_not_wait_for_others(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    done = wbscope.run("report", run, tmp_path / "none", "-o", str(tmp_path / "x.html"))
    assert done.returncode == 3
    assert not list(tmp_path.iterdir())


def test_a_part_and_the_clock_of_the_trace(wbscope: Wbscope, tmp_path: Path) -> None:
    run = example("four-equal-writers").folder
    words = (run, "--from", "5s", "--to", "8s", "--section", "throttle_windows")
    whole = ReadPage(_page(wbscope, tmp_path, *words))
    clock = ReadPage(_page(wbscope, tmp_path, *words, "--clock"))
    assert "Only from 5.000000 s to 8.000000 s of the run." in whole.text()
    (title,) = {t.caption for t in whole.tables} & {
        row["title"] for row in wbscope.document("report", *words)["rows"]
    }
    first = wbscope.sql(run, "SELECT value FROM meta WHERE key = 'first_ts'")[0]["value"]
    times = [
        [int(row[place + 1][1] or 0) for row in page.table(title).rows]
        for page in (whole, clock)
        for place in [page.table(title).heads.index("window start") - 1]
    ]
    assert [time + int(first) for time in times[0]] == times[1]
    assert all(5 * 10**9 <= time < 8 * 10**9 for time in times[0])


def test_a_trace_without_anything_else_beside_it(wbscope: Wbscope, tmp_path: Path) -> None:
    shutil.copy(example("four-equal-writers").trace, tmp_path)
    read = ReadPage(_page(wbscope, tmp_path, tmp_path / "trace.dat"))
    assert read.faults == []
    assert "Settings when the recording began" not in read.text()
