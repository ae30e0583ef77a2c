# SPDX-License-Identifier: Apache-2.0
"""Files of measurements on the sides of compare, gate and baseline, and their units."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from support.archives import unpacked
from support.opsruns import ops_runs
from support.rundata import compare_markdown, compare_text, metric
from support.rundata import side as run_side
from wbscope.compare.comparison import Side, compare_sides
from wbscope.compare.gate import judge
from wbscope.compare.policy import Policy, budget_rule
from wbscope.render.changes import described_text, median_text
from wbscope.render.compare_html import compare_html
from wbscope.render.gate import gate_text

# Files of measurements on the sides of compare, gate and baseline.

Cli = Callable[..., Any]
DATA = unpacked("data") / "measure"


def row(ran: Any, name: str) -> dict[str, Any]:
    (found,) = [one for one in ran.document()["rows"] if one["metric"] == name]
    told: dict[str, Any] = found
    return told


def medians(found: dict[str, Any]) -> tuple[float, float]:
    return found["of_side"]["median"], found["of_base"]["median"]


def counts(found: dict[str, Any]) -> tuple[int, int]:
    return found["of_side"]["n"], found["of_base"]["n"]


def times(path: Path, values: list[float]) -> Path:
    blocks = [f"real\t0m{value:.3f}s\nuser\t0m0.1s\nsys\t0m0.2s\n" for value in values]
    path.write_text("\n".join(blocks))
    return path


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    times(tmp_path / "old.log", [10.1, 10.2, 10.3, 10.4, 10.5, 10.6])
    times(tmp_path / "new.log", [20.1, 20.2, 20.3, 20.4, 20.5, 20.6])
    return tmp_path


def test_runs_of_a_file(cli: Cli, logs: Path) -> None:
    found = row(cli("compare", "new.log", "--against", "old.log", "--json"), "time.elapsed_ns")
    assert found["outcome"] == "worse"
    told = stats.mannwhitneyu(range(6), range(6, 12), method="exact")
    assert found["p"] == pytest.approx(told.pvalue)


def test_a_gate_and_a_baseline_of_files(cli: Cli, logs: Path) -> None:
    (logs / "p.toml").write_text('[metrics."time.elapsed_ns"]\nmargin = "5%"\n')
    assert cli("baseline", "save", "old.log", "-o", "old.json").code == 0
    for base in ("old.log", "old.json"):
        ran = cli("gate", "--policy", "p.toml", "new.log", "--against", base)
        assert (ran.code, "FAIL time.elapsed_ns" in ran.out) == (1, True)
    same = cli("gate", "--policy", "p.toml", "old.log", "--against", "old.json")
    assert same.code == 4
    assert "same-recording" in same.out + same.err


def test_a_folder_of_files(cli: Cli, logs: Path) -> None:
    for side, first in (("a", 10), ("b", 20)):
        (logs / side).mkdir()
        for number in range(6):
            times(logs / side / f"{number}.log", [first + number / 10])
    found = row(cli("compare", "b", "--against", "a", "--json"), "time.elapsed_ns")
    assert (found["outcome"], found["p"]) == ("worse", pytest.approx(2 / 924))


def test_folders_with_one_file_of_any_name(cli: Cli, logs: Path) -> None:
    for side, first in (("a", 10), ("b", 20)):
        for number in range(6):
            folder = logs / side / str(number)
            folder.mkdir(parents=True)
            times(folder / "bench.log", [first + number / 10])
    found = row(cli("compare", "b", "--against", "a", "--json"), "time.elapsed_ns")
    assert found["outcome"] == "worse"


def test_two_kernels_of_one_report(cli: Cli, tmp_path: Path) -> None:
    file = shutil.copy(DATA / "mail-2013.txt", tmp_path)
    ran = cli("compare", f"{file}#lessdisrupt", "--against", f"{file}#vanilla", "--json")
    found = row(ran, "ops.memcachetest-4055M")
    assert medians(found) == (24341, 3628)
    error = cli("compare", file, "--against", f"{file}#vanilla", "--json").error()
    assert error["slug"] == "several-parts"
    assert "3.10.0-rc1-lessdisrupt-v4" in error["have"]
    error = cli("compare", f"{file}#3.9", "--against", f"{file}#vanilla", "--json").error()
    assert error["slug"] == "no-such-part"


# What fell to 0 got better by all there was; mmtests prints no gain.
FELL_TO_0 = ("swaptotal-2385M", "swapin-2385M", "swapin-4055M")


def test_the_table_of_the_mail_is_printed_again(cli: Cli) -> None:
    file = DATA / "mail-2013.txt"
    sides = ("--side", f"vanilla={file}#vanilla", "--side", f"v4={file}#lessdisrupt-v4")
    printed = cli("compare", *sides, "--style", "mmtests").out
    rows = re.findall(
        r"Ops (\S+)\s+([0-9.]+) \(\s*0\.00%\)\s+([0-9.]+) [(*]\s*(-?[0-9.]+)%\s*[)*]",
        file.read_text().replace("> >", ""),
    )
    again = re.findall(
        r"Ops (\S+)\s+([0-9.]+) \(\s*0\.00%\)\s+([0-9.]+) [(*]\s*(-?[0-9.]+)%\s*[)*]", printed
    )
    assert len(rows) == 24
    kept = [row for row in rows if row[0] not in FELL_TO_0]
    assert [row for row in again if row[0] not in FELL_TO_0] == kept


def test_what_compare_prints_as_mmtests_can_be_read(cli: Cli, tmp_path: Path) -> None:
    file = shutil.copy(DATA / "mail-2013.txt", tmp_path)
    sides = ("--side", f"old={file}#vanilla", "--side", f"new={file}#lessdisrupt")
    (tmp_path / "again.txt").write_text(cli("compare", *sides, "--style", "mmtests").out)
    again = (f"{tmp_path}/again.txt#new", "--against", f"{tmp_path}/again.txt#old", "--json")
    first = cli("compare", *sides, "--json").document()["rows"]
    second = cli("compare", *again).document()["rows"]
    told = {one["metric"]: medians(one) for one in second}
    assert len(told) == len(second) > 40
    for one in first:
        if one["metric"] in told:
            assert told[one["metric"]] == pytest.approx(medians(one), abs=0.01)


def test_commands_of_hyperfine_with_other_numbers_of_runs(cli: Cli, tmp_path: Path) -> None:
    slow = json.loads((DATA / "hyperfine-1.19.json").read_text())
    for result in slow["results"]:
        result["times"] = [time * 1.5 for time in result["times"]]
        result["memory_usage_byte"] = [size + 1 for size in result["memory_usage_byte"]]
    slow["results"][1]["times"].pop()
    slow["results"][1]["memory_usage_byte"].pop()
    slow["results"][1]["exit_codes"].pop()
    (tmp_path / "slow.json").write_text(json.dumps(slow))
    ran = cli(
        "compare", tmp_path / "slow.json", "--against", DATA / "hyperfine-1.19.json", "--json"
    )
    found = [one for one in ran.document()["rows"] if "hyperfine.time" in one["metric"]]
    assert [one["outcome"] for one in found] == ["worse", "worse"]
    assert [counts(one) for one in found] == [(10, 10), (11, 12)]


def test_published_means_of_a_commit(cli: Cli) -> None:
    """Linux 2.6.32, e50e3720: 648.6 (14.6) and 620.1 (16.5) of 10 runs without two."""
    file = DATA / "table-means.csv"
    sides = (f"{file}#+patch", "--against", f"{file}#2.6.31-rc8")
    ran = cli("compare", *sides, "--json")
    found = row(ran, "ops.cache-references")
    told = stats.ttest_ind_from_stats(620.1, 16.5, 8, 648.6, 14.6, 8, equal_var=False)
    assert found["p"] == pytest.approx(told.pvalue)
    assert found["shift"]["low"] < 620.1 - 648.6 < found["shift"]["high"] < 0
    slugs = [warning["slug"] for warning in ran.document()["warnings"]]
    assert "published-means" in slugs
    assert "too-few-runs" not in slugs
    assert "published-means" in cli("compare", *sides).out


def test_a_gate_of_published_means(cli: Cli, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text('[metrics."perf.time_elapsed_ns"]\nmargin = "5%"\n')
    file = DATA / "mail-2011-copy.txt"
    better = cli("gate", "--policy", policy, f"{file}#3.0-per", "--against", f"{file}#3.0")
    worse = cli("gate", "--policy", policy, f"{file}#3.0", "--against", f"{file}#3.0-per")
    assert (better.code, worse.code) == (0, 1)
    assert "n 6+6" in better.out
    assert "published-means" in better.out + better.err
    assert "B 913 s, A 606 s (published means), change -307 s" in better.out


def test_published_means_against_runs(cli: Cli, tmp_path: Path) -> None:
    values = [101.0, 99.0, 100.5, 99.5, 100.0]
    (tmp_path / "runs.csv").write_text("run,t_s\n" + "".join(
        f"{number},{value}\n" for number, value in enumerate(values)))  # fmt: skip
    (tmp_path / "paper.csv").write_text("metric,mean,sd,n,unit\nt,120,2,10,s\n")
    ran = cli("compare", tmp_path / "runs.csv", "--against", tmp_path / "paper.csv", "--json")
    found = row(ran, "ops.t_ns")
    told = stats.ttest_ind_from_stats(100, stats.tstd(values), 5, 120, 2, 10, equal_var=False)
    assert found["p"] == pytest.approx(told.pvalue, rel=1e-6)
    assert found["outcome"] == "better"


def test_means_are_kept_by_a_baseline(cli: Cli, tmp_path: Path) -> None:
    file = DATA / "mail-2011-copy.txt"
    saved = tmp_path / "old.json"
    assert cli("baseline", "save", f"{file}#3.0", "-o", saved).code == 0
    direct = cli("compare", f"{file}#3.0-per", "--against", f"{file}#3.0", "--json")
    kept = cli("compare", f"{file}#3.0-per", "--against", saved, "--json")
    name = "perf.time_elapsed_ns"
    assert row(kept, name)["p"] == row(direct, name)["p"] < 0.001


def test_iterations_in_a_run_folder_are_told(cli: Cli, tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "ops.txt").write_text("tps 10 ops/s\ntps 11 ops/s\ntps 12.5 ops/s\n" * number)
    ran = cli("compare", tmp_path / "1", "--against", tmp_path / "2")
    assert "several-iterations" in ran.out
    found = cli("compare", tmp_path / "1/ops.txt", "--against", tmp_path / "2/ops.txt", "--json")
    assert counts(row(found, "ops.tps")) == (3, 6)


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("x.log", "real 0m1.0s\nuser 0m1.0s\n", "line 3"),
        ("x.csv", "run,metric,value,unit\n1,t,3\n", "line 2"),
        ("x.txt", "a 3 s\nb 4 s\na 5 s\n", None),
        ("perf.txt", " Performance counter stats for 'x':\n\n  7 cycles\n", None),
    ],
)
def test_refusals(cli: Cli, tmp_path: Path, name: str, text: str, at: str | None) -> None:
    file = tmp_path / name
    file.write_text(text)
    ran = cli("compare", file, "--against", file, "--json")
    assert ran.code == 3
    error = ran.error()
    assert error["slug"] == "bad-measurement"
    assert error["object"] == str(file)
    assert error.get("at") == at
    assert error["fix"]


@pytest.mark.parametrize("text", ["hello world\nof prose\n", '{"a": 1}\n', "name;x\nfoo;bar\n"])
def test_a_text_that_nobody_knows(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.txt"
    file.write_text(text)
    error = cli("compare", file, "--against", file, "--json").error()
    assert (error["slug"], error["object"], error["at"][:6]) == ("not-a-trace", str(file), "line 1")
    assert "no file of measurements (time, perf stat, fio, hyperfine" in error["message"]
    assert "docs/measurements.md" in error["fix"]


@pytest.mark.parametrize("told", [{"command_exit_code": 1}, {"command_signal": 9}])
def test_a_folder_without_a_trace_whose_command_failed_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, int]
) -> None:
    """As a run with a trace is: the numbers of a benchmark that failed are no result."""
    monkeypatch.chdir(tmp_path)
    for side in ("new", "old"):
        for number in range(6):
            folder = tmp_path / side / f"r{number}"
            folder.mkdir(parents=True)
            (folder / "ops.txt").write_text(f"done {1000 + number} ops/s\n")
            (folder / "meta.json").write_text(json.dumps(told if side == "new" else {}))
    policy = '[metrics."ops.done"]\nmargin = "5%"\n'
    (tmp_path / "p.toml").write_text(policy)
    ran = cli("gate", "--policy", "p.toml", "new", "--against", "old")
    assert (ran.code, "command-failed" in ran.out) == (4, True), ran.out + ran.err
    (tmp_path / "p.toml").write_text('failed = "allow"\n' + policy)
    assert cli("gate", "--policy", "p.toml", "new", "--against", "old").code == 0


def test_a_budget_on_what_the_file_does_not_have(cli: Cli, tmp_path: Path) -> None:
    """The base has the command, and so has the catalogue; nobody ran it on this side."""
    for name, commands in (("new", ("sleep 1", "true")), ("old", ("sleep 1", "sync"))):
        results = [{"command": one, "times": [1.0, 1.1, 1.05]} for one in commands]
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": results}))
    words = (tmp_path / "new.json", "--against", tmp_path / "old.json")
    budget = "hyperfine.time_ns[command=sync] <= 500ms"
    ran = cli("gate", *words, "--budget", budget, "--junit", tmp_path / "j.xml")
    assert ran.code == 4
    assert ran.out.startswith("gate: REFUSED: 1 REFUSED of 1 metric")
    assert "no run of A has it" in ran.out
    assert 'errors="1"' in (tmp_path / "j.xml").read_text()
    policy = tmp_path / "p.toml"
    policy.write_text(
        '[metrics."hyperfine.time_ns[command=sync]"]\neach_run = "<= 500ms"\nbudget = "<= 1s"\n'
    )
    for more in ((), ("--inconclusive", "pass")):
        ran = cli("gate", "--policy", policy, *words, *more)
        assert (ran.code, ran.out[:14]) == (4, "gate: REFUSED:")
    there = cli("gate", *words, "--budget", "hyperfine.time_ns[command=true] <= 2s")
    assert there.code == 0


# Numbers of other tools in a gate: each keeps its unit, and none becomes bytes.


@pytest.mark.parametrize(
    ("values", "unit", "budget", "told"),
    [
        ([28500, 28400, 28456.4], "io/s", ">= 100", "median 28,456 io/s keeps >= 100"),
        ([22720] * 3, "ops/s", ">= 23000 ops/s", "median is 22,720 ops/s, the budget is >="),
        ([0.35] * 3, "ops/s", "<= 1 ops/s", "median 0.35 ops/s keeps"),
        ([24 << 10] * 3, "frames", ">= 1", "median 24,576 frames keeps"),
    ],
)
def test_a_budget_shows_what_was_counted(
    cli: Cli, tmp_path: Path, values: list[float], unit: str, budget: str, told: str
) -> None:
    runs = ops_runs(tmp_path / "runs", values, name="x", unit=unit)
    junit = tmp_path / "gate.xml"
    ran = cli("gate", runs, "--budget", f"ops.x {budget}", "--junit", junit, "--github")
    for text in (ran.out, junit.read_text()):
        assert told.replace(">", "&gt;") in text.replace(">", "&gt;")
        assert "KiB" not in text


def test_times_and_requests_of_fio() -> None:
    time, rate = metric("x.time_ns"), metric("fio.write.iops", "higher", "1/s")
    rules = (budget_rule("x.time_ns <= 6s"), budget_rule("fio.write.iops >= 100"))
    found = gate_text(judge(run_side("A", {time: [5e9], rate: [28456.4]}), None, Policy(rules), []))
    assert "median 5.00 s keeps <= 6s" in found
    assert "median 28,456 1/s keeps >= 100" in found


def test_large_counts_are_written_out(cli: Cli, tmp_path: Path) -> None:
    values = [1529980, 1529984, 1529985, 1529990]  # its median is no whole number
    runs = ops_runs(tmp_path / "runs", values, name="faults", unit="count")
    ran = cli("gate", runs, "--budget", "ops.faults_count <= 2000000")
    assert "median 1529984 keeps" in ran.out


def test_sides_of_different_units_are_printed_in_their_own() -> None:
    seconds, pages = (metric("ops.x", unit=unit) for unit in ("ns", "pages"))
    found = compare_sides(run_side("B", {pages: [12.0] * 6}), [run_side("A", {seconds: [5e9] * 6})])
    for text in (compare_text(found), compare_markdown(found), compare_html(found, {}, True)):
        assert "5.00 s" in text
        assert "12 pages" in text
        assert "e+09" not in text


def test_a_side_of_several_units_has_no_median() -> None:
    seconds, pages = (metric("ops.x", unit=unit) for unit in ("ns", "pages"))
    mixed = run_side("A", {seconds: [5e9]}).runs + run_side("C", {pages: [12.0]}).runs
    base = run_side("B", {seconds: [5e9] * 2})
    row = compare_sides(base, [Side("A", mixed)]).rows[0]
    assert (row.outcome, row.sample.units) == ("refused", ("ns", "pages"))
    assert [median_text(row.metric, one) for one in (row.base_sample, row.sample)] == [
        "5.00 s",
        "-",
    ]
    assert described_text(row.metric, row.sample) == "-"
