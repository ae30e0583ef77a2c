# SPDX-License-Identifier: Apache-2.0
"""compare, gate and baseline on the command line: options, formats, files, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import check_error
from support.rundata import RATE, TIME, damaged, lost, side
from wbscope.compare.baseline import baseline_text

Cli = Callable[..., Any]
STEADY = [100e6 + 1e5 * i for i in range(6)]
WORSE = [value * 1.3 for value in STEADY]
PAIR = ["compare", "old.json", "--against", "old.json"]
POLICY = '[metrics."time.elapsed_ns"]\nmargin = "5%"\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Baselines old, same, slow, few, and a policy: what a user has beside the runs."""
    monkeypatch.chdir(tmp_path)
    for name, values in (
        ("old", STEADY),
        ("same", [value + 1e4 for value in STEADY]),
        ("slow", WORSE),
        ("few", WORSE[:2]),
        ("wild", [5e7, 8e7, 1e8, 1.2e8, 1.5e8, 1.8e8]),
    ):
        runs = side(name, {TIME: values, RATE: values}).runs
        (tmp_path / f"{name}.json").write_text(baseline_text(runs))
    (tmp_path / "gate.toml").write_text(POLICY)
    return tmp_path


@pytest.mark.parametrize(
    ("run", "code", "verdict"),
    [
        ("same.json", 0, "gate: PASS"),
        ("slow.json", 1, "gate: FAIL"),
        ("wild.json", 4, "gate: INCONCLUSIVE"),
        ("few.json", 4, "gate: INCONCLUSIVE"),
    ],
)
def test_the_exit_code_is_the_verdict(
    cli: Cli, files: Path, run: str, code: int, verdict: str
) -> None:
    for option in ("--against", "--baseline"):
        ran = cli("gate", "--policy", "gate.toml", run, option, "old.json")
        assert (ran.code, ran.err) == (code, "")
        assert ran.out.startswith(verdict)
        assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_inconclusive_can_be_mapped(cli: Cli, files: Path) -> None:
    words = ["gate", "--policy", "gate.toml", "wild.json", "--against", "old.json"]
    assert cli(*words, "--inconclusive", "pass").code == 0
    assert cli(*words, "--inconclusive", "fail").code == 1
    assert "counted as fail" in cli(*words, "--inconclusive", "fail").out
    assert cli(*words, "--inconclusive", "maybe").code == 2


def test_an_open_verdict_says_what_to_do(cli: Cli, files: Path) -> None:
    text = " ".join(
        cli("gate", "--policy", "gate.toml", "wild.json", "--against", "old.json").out.split()
    )
    assert re.search(r"smallest regression that these runs can detect: \+\d", text)
    assert "runs a side" in text


def test_a_policy_that_compares_asks_for_a_base(cli: Cli, files: Path) -> None:
    ran = cli("gate", "--policy", "gate.toml", "old.json")
    fix = "wbscope gate --policy gate.toml old.json --against RUN..."
    assert f"  fix: {fix}\n" in ran.err
    assert cli(*fix.replace("RUN...", "old.json").split()[1:]).code in (0, 1, 4)


def test_budgets_without_a_policy_and_a_base(cli: Cli, files: Path) -> None:
    assert cli("gate", "slow.json", "--budget", "elapsed_ns <= 200ms").code == 0
    ran = cli("gate", "slow.json", "--budget", "time.elapsed_ns <= 120ms")
    assert ran.code == 1
    assert "median is 130 ms, the budget is <= 120ms" in ran.out


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        (["gate", "old.json"], 2, "no-policy"),
        (["gate", "--policy", "none.toml", "old.json"], 3, "no-policy"),
        (["gate", "--policy", "gate.toml", "old.json"], 2, "no-base"),
        (["gate", "--policy", "gate.toml", "--against", "old.json"], 2, "no-runs"),
        (["gate", "--policy", "gate.toml", "none", "--against", "old.json"], 3, "no-such-file"),
        (["gate", "old.json", "--budget", "elapsd_ns <= 1s"], 2, "unknown-metric"),
        (["gate", "old.json", "--budget", "elapsed_ns <= 1MiB"], 2, "bad-quantity"),
        (["gate", "old.json", "--budget", "what"], 2, "bad-budget"),
        (["compare", "old.json"], 2, "no-base"),
        (["compare", "--against", "old.json"], 2, "no-runs"),
        (["compare"], 2, "no-runs"),
        (["compare", "old.json", "--against"], 2, "usage"),
        (["compare", "--side", "a=old.json"], 2, "one-side"),
        (["compare", "--side", "old.json", "--side", "b=old.json"], 2, "bad-side"),
        (["compare", "x", "--side", "a=old.json", "--side", "b=old.json"], 2, "two-ways"),
        ([*PAIR, "--json", "--markdown"], 2, "two-formats"),
        ([*PAIR, "--html", "a", "-o", "b"], 2, "two-outputs"),
        ([*PAIR, "--metric", "x.y"], 2, "unknown-metric"),
        ([*PAIR, "--margin", "x"], 2, "bad-quantity"),
        ([*PAIR, "--html", "old.json"], 2, "output-is-input"),
        (["baseline", "show", "gate.toml"], 3, "damaged-baseline"),
        (["baseline", "save", "old.json", "-o", "same.json"], 2, "output-exists"),
        (["baseline", "merge", "old.json", "old.json", "-o", "x.json"], 2, "same-recording"),
    ],
)  # fmt: skip
def test_mistakes(cli: Cli, files: Path, words: list[str], code: int, slug: str) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (code, "")
    if "--json" in words:
        assert (ran.error()["slug"], ran.error()["exit_code"]) == (slug, code)
        return
    assert ran.err.startswith(f"error[{slug}]"), ran.err
    assert "fix: " in ran.err
    if "save" not in words and "merge" not in words:
        assert cli(*words, "--json").error()["exit_code"] == code


def test_damaged_and_lost(cli: Cli, files: Path) -> None:
    for name, more in (("torn", damaged("read up to 5")), ("lossy", lost("7 events are lost"))):
        (files / f"{name}.json").write_text(baseline_text(side(name, {TIME: STEADY}, **more).runs))
    ran = cli("compare", "torn.json", "--against", "old.json")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("error[damaged-run]")
    allowed = cli("compare", "torn.json", "--against", "old.json", "--allow-damaged")
    assert allowed.code == 0
    assert allowed.out.index("read up to 5") < allowed.out.index("\ntime\n----")
    told = cli("compare", "lossy.json", "--against", "old.json")
    assert told.code == 0
    assert told.out.index("7 events are lost") < told.out.index("\ntime\n----")
    verdict, sure = told.out.splitlines()[:2]
    assert verdict.startswith("A against B: ")
    assert sure == "A: 6 runs, B: 6 runs; warnings below: 6 x lost-events, unknown facts."
    for name, slug in (("torn", "damaged-run"), ("lossy", "lost-events")):
        ran = cli("gate", "--policy", "gate.toml", f"{name}.json", "--against", "old.json")
        assert (ran.code, f"refused[{slug}]" in ran.out) == (4, True)
        assert ran.out.startswith("gate: REFUSED")


def test_not_comparable_names_the_fact_and_the_remedy(cli: Cli, files: Path) -> None:
    runs = side("hz", {TIME: STEADY}, facts={"hz": 1000}).runs
    (files / "hz.json").write_text(baseline_text(runs))
    words = ["gate", "--policy", "gate.toml", "hz.json", "--against", "old.json"]
    ran = cli(*words)
    text = " ".join(ran.out.split())
    assert ran.code == 4
    assert "refused[not-comparable]: hz: 1000 (hz0, hz1 and 4 more), 250 (old0, old1" in text
    assert 'differs = ["hz"]' in text
    document = cli(*words, "--json").document()
    assert (document["status"], document["exit_code"], document["rows"]) == ("REFUSED", 4, [])
    (files / "gate.toml").write_text('differs = ["hz"]\n' + POLICY)
    assert cli(*words).code == 0


def test_runs_of_one_name_on_both_sides_are_told_apart(cli: Cli, files: Path) -> None:
    """old/1 and new/1 are both called 1."""
    for name, hz in (("x", 250), ("y", 1000)):
        runs = [replace(run, name=run.name[-1], source_id=f"{name}{i}", fingerprint={"hz": hz})
                for i, run in enumerate(side("r", {TIME: STEADY}).runs)]  # fmt: skip
        (files / f"{name}.json").write_text(baseline_text(runs))
    text = " ".join(cli("compare", "y.json", "--against", "x.json").out.split())
    assert "hz: 250 (B 0, B 1 and 4 more), 1000 (A 0, A 1 and 4 more)" in text
    ran = cli("gate", "--policy", "gate.toml", "y.json", "--against", "x.json")
    assert "(A 0, A 1 and 4 more)" in " ".join(ran.out.split())


def test_a_run_given_twice(cli: Cli, files: Path) -> None:
    (files / "run").mkdir()
    (files / "run/ops.txt").write_text("rate 5 ops/s\n")
    ran = cli("compare", "run", "run", "--against", "old.json")
    assert ran.code == 2
    check_error(ran.err, "same-run", "run: ", "fix: ")


def test_the_verdict_of_a_refusal_is_short(cli: Cli, files: Path) -> None:
    lossy = side("lossy", {TIME: STEADY}, facts={"hz": 100}, **lost("7 events are lost"))
    (files / "lossy.json").write_text(baseline_text(lossy.runs))
    ran = cli("gate", "--policy", "gate.toml", "lossy.json", "--against", "old.json")
    told = "gate: REFUSED, nothing was judged: 6 x lost-events, not-comparable"
    assert ran.out.splitlines()[0] == told


def test_a_budget_says_the_value_that_keeps_it(cli: Cli, files: Path) -> None:
    words = ["gate", "slow.json", "--budget", "elapsed_ns <= 200ms"]
    assert "    median 130 ms keeps <= 200ms" in cli(*words).out.splitlines()
    (row,) = cli(*words, "--json").document()["rows"]
    assert row["of_side"]["values"] == WORSE
    assert row["of_side"]["n"] == 6
    assert row["of_base"] is None
    (files / "each.toml").write_text('[metrics."time.elapsed_ns"]\neach_run = "<= 200ms"\n')
    kept = cli("gate", "slow.json", "--policy", "each.toml").out
    assert "    each run, at worst 131 ms, keeps <= 200ms" in kept.splitlines()


def test_a_self_check_has_both_verdicts_in_json(cli: Cli, files: Path) -> None:
    words = ["gate", "--policy", "gate.toml", "--self-check", "--json"]
    few = cli(*words, "old.json").document()["self_check"]
    assert (few["status"], few["decided_by"], few["halves"]) == ("PASS", "same", None)
    assert few["same"]["rows"][0]["metric"] == "time.elapsed_ns"
    drifted = side("d", {TIME: [*STEADY, *WORSE]}).runs
    (files / "drift.json").write_text(baseline_text(drifted))
    ran = cli(*words, "drift.json")
    found = ran.document()
    assert (ran.code, found["status"], found["self_check"]["status"]) == (1, "FAIL", "FAIL")
    assert found["self_check"]["decided_by"] == "halves"
    assert found["self_check"]["halves"]["rows"] == found["rows"]
    assert found["self_check"]["same"]["status"] in ("PASS", "INCONCLUSIVE")
    assert found["self_check"]["same"]["rows"] != found["rows"]
    words = ["gate", "--policy", "gate.toml", "same.json", "--against", "old.json", "--json"]
    assert cli(*words).document()["self_check"] is None


def test_the_table(cli: Cli, files: Path) -> None:
    ran = cli("compare", "slow.json", "--against", "old.json")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:2] == [
        "A against B: worse in some metrics, better in others.",
        "A: 6 runs, B: 6 runs; warnings below: unknown facts.",
    ]
    (row,) = [line for line in lines if line.startswith(":( ")]
    assert row.split()[:6] == [":(", "elapsed_ns", "100", "ms", "130", "ms"]
    assert "+30.0 %" in row
    assert "0.0022  6+6" in row
    (rate,) = [line for line in lines if line.startswith(":) bw_bytes_per_s ")]
    assert "+29.6 to +30.4 %" in rate
    assert "* elapsed_ns (lower is better): how long it took" in lines
    assert all(len(line) <= 80 for line in lines)
    plain = cli("compare", "slow.json", "--against", "old.json", "--no-faces")
    assert ":)" not in plain.out
    assert ":(" not in plain.out
    undecided = cli("compare", "same.json", "--against", "old.json").out
    (row,) = [line for line in undecided.splitlines() if line.startswith(":|  elapsed_ns ")]
    assert " = " in row


def test_means_are_shown_when_asked_for(cli: Cli, files: Path) -> None:
    ran = cli("compare", "slow.json", "--against", "old.json", "--describe")
    assert "not the test" in ran.out
    assert "trimmed" in ran.out


def test_several_runs_behind_against(cli: Cli, files: Path) -> None:
    first = cli("compare", "slow.json", "--against", "old.json", "same.json", "--json")
    again = cli("compare", "--against", "old.json", "same.json", "--json", "--", "slow.json")
    assert first.document() == again.document()
    assert [len(one["runs"]) for one in first.document()["sides"]] == [12, 6]


def test_named_sides(cli: Cli, files: Path) -> None:
    sides = [f"--side={name}={name}.json" for name in ("old", "same", "slow")]
    document = cli("compare", *sides, "--json").document()
    assert document["base"] == "old"
    assert [(row["side"], row["outcome"]) for row in document["rows"]] == [
        ("same", "same"),
        ("same", "same"),
        ("slow", "worse"),
        ("slow", "better"),
    ]
    text = cli("compare", *sides).out
    assert "same against old\n================" in text
    assert "slow against old\n================" in text
    mmtests = cli("compare", *sides, "--style", "mmtests").out
    assert ["old", "same", "slow"] in [line.split() for line in mmtests.splitlines()]
    assert re.search(
        r"elapsed_ns\s+100 ms \(  0\.00%\)\s+100 ms \( -0\.01%\)\s+130 ms \*-30\.00%\*", mmtests
    )


def test_json(cli: Cli, files: Path) -> None:
    words = ["slow.json", "--against", "old.json", "--json"]
    document = cli("compare", *words).document()
    assert document["schema"] == "wbscope.compare/1"
    row = document["rows"][0]
    assert (row["metric"], row["unit"], row["better"]) == ("time.elapsed_ns", "ns", "lower")
    assert row["shift"]["scale"] == "ratio"
    assert row["shift"]["estimate"] == pytest.approx(1.3, abs=0.002)
    assert row["shift"]["low"] < 1.3 < row["shift"]["high"]
    assert (row["p"], row["p_method"]) == (pytest.approx(2 / 924), "exact")
    assert row["of_base"]["values"] == STEADY
    assert row["of_side"]["trimmed_mean"] == pytest.approx(sum(WORSE[1:-1]) / 4)
    document = cli("gate", "--policy", "gate.toml", *words).document()
    assert (document["schema"], document["status"]) == ("wbscope.gate/1", "FAIL")
    assert document["rows"][0]["p_adjusted"] == pytest.approx(2 / 924)


def test_markdown_and_html(cli: Cli, files: Path) -> None:
    words = ["compare", "slow.json", "--against", "old.json"]
    markdown = cli(*words, "--markdown").out
    assert "| :( | elapsed\\_ns | 100 ms | 130 ms | +30.0 % |" in markdown
    ran = cli(*words, "--html", "page.html")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("wrote page.html")
    page = (files / "page.html").read_text()
    assert page.count("<svg") >= 2
    assert "how long it took (lower is better)" in page
    assert not re.findall(r'(?:src|href)="https?:|url\((?!#)|<script[^>]|<link|@import', page)
    assert page.count("<script>") == 1
    assert cli(*words, "--html", "page.html").code == 2
    assert cli(*words, "--html", "page.html", "--force").code == 0
    assert (files / "page.html").read_text() == page  # the same runs, the same file


def test_names_of_strangers_do_no_harm(cli: Cli, files: Path) -> None:
    from support.rundata import metric

    evil = metric("x.y[comm=<script>alert(1)</script>|\x1b]".replace("\x1b", "_"))
    for name in ("a", "b"):
        runs = side(f"{name}<b>", {evil: STEADY}).runs
        (files / f"{name}.json").write_text(baseline_text(runs))
    cli("compare", "a.json", "--against", "b.json", "--html", "evil.html")
    page = (files / "evil.html").read_text()
    assert "<script>alert" not in page
    assert page.count("<script>") == 1  # our own
    assert "<script>" not in cli("compare", "a.json", "--against", "b.json", "--markdown").out


def test_output_to_a_file(cli: Cli, files: Path) -> None:
    ran = cli("gate", "--policy", "gate.toml", "slow.json", "--against", "old.json", "-o", "v.txt")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("wrote v.txt")
    assert "gate: FAIL" in (files / "v.txt").read_text()
    ran = cli("compare", "slow.json", "--against", "old.json", "-o", "c.txt")
    assert ran.code == 0
    assert ran.err.startswith("wrote c.txt")


def test_baselines(cli: Cli, files: Path) -> None:
    ran = cli("baseline", "merge", "old.json", "same.json", "-o", "both.json")
    assert ran.code == 0
    assert ran.err.startswith("wrote both.json")
    shown = cli("baseline", "show", "both.json").out
    assert shown.startswith("12 runs: old0, ")
    assert "kernel: 6.1.0" in shown
    document = cli("baseline", "show", "both.json", "--json").document()
    assert [(row["metric"], row["n"]) for row in document["rows"]] == [
        ("time.elapsed_ns", 12),
        ("fio.bw_bytes_per_s", 12),
    ]
    saved = cli("baseline", "save", "old.json", "-o", "copy.json", "--json").document()
    assert saved["rows"] == [{"output": "copy.json", "runs_count": 6, "metrics_count": 2}]
    assert (files / "copy.json").read_text() == (files / "old.json").read_text()
    assert json.loads((files / "both.json").read_text())["schema"] == "wbscope.baseline/1"


@pytest.mark.parametrize("margin", ["5", "-5%", "100%", "abc"])
def test_a_margin_that_is_no_share(cli: Cli, files: Path, margin: str) -> None:
    ran = cli("compare", "same.json", "--against", "old.json", f"--margin={margin}", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.error()["fix"] in ("5%", "--margin 5%")


def test_a_time_without_a_unit(cli: Cli, files: Path) -> None:
    ran = cli("gate", "same.json", "--budget", "time.elapsed_ns <= 100", "--json")
    assert (ran.code, ran.error()["slug"], ran.error()["fix"]) == (2, "bad-quantity", "100ms")
    assert cli("gate", "same.json", "--budget", "time.elapsed_ns > 0").code == 0


def test_a_baseline_made_smaller(cli: Cli, files: Path) -> None:
    assert cli("baseline", "save", "old.json", "--metric", "time.*", "-o", "less.json").code == 0
    document = json.loads((files / "less.json").read_text())
    assert list(document["metrics"]) == ["time.elapsed_ns"]


def test_runs_against_themselves(cli: Cli, files: Path) -> None:
    ran = cli("gate", "--policy", "gate.toml", "old.json", "--against", "old.json")
    assert ran.code == 4
    assert "are among the runs of B" in ran.out
    assert cli("gate", "--policy", "gate.toml", "old.json", "--self-check").code == 0


def test_folders_with_equal_numbers_are_several_runs(cli: Cli, files: Path) -> None:
    for name in ("x1", "x2"):
        (files / name).mkdir()
        (files / name / "ops.txt").write_text("swapin 0 pages lower\n")
    ran = cli("gate", "x1", "x2", "--budget", "ops.swapin <= 0")
    assert ran.code == 0, ran.out + ran.err


def test_a_summary_that_cannot_be_written_is_met_before_any_work(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(files / "none/summary"))
    gate = ["gate", "--policy", "gate.toml", "slow.json", "--against", "old.json"]
    ran = cli(*gate, "--github", "--junit", "gate.xml")
    assert (ran.code, ran.out) == (5, "")
    assert ran.err.startswith("error[cannot-write]")
    assert not (files / "gate.xml").exists()


def _measured(folder: Path, kernel: str | None, written: int) -> None:
    """A run without a trace: vmstat around it, and what kernel that was."""
    folder.mkdir(parents=True)
    (folder / "vmstat.before").write_text("nr_vmscan_write 0\n")
    (folder / "vmstat.after").write_text(f"nr_vmscan_write {written}\n")
    if kernel is not None:
        (folder / "uname").write_text(f"Linux guest {kernel} #1 SMP x86_64 GNU/Linux\n")
        (folder / "meminfo").write_text("MemTotal:         480004 kB\n")
        (folder / "sysctls").write_text("vm.dirty_ratio = 20\n")


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("6.1.0-49", "6.18.0", 4, "means another thing from Linux 6.16 on"),
        ("6.1.0-49", None, 4, "a run's kernel is unknown"),
        (None, None, 4, "a run's kernel is unknown"),
        ("6.1.0-49", "6.12.1", 0, "better"),
    ],
)
def test_nr_vmscan_write_of_runs_without_a_trace(
    cli: Cli, files: Path, old: str | None, new: str | None, code: int, told: str
) -> None:
    """A fall to 0 on a kernel that counts other pages is no gain."""
    for number in range(6):
        _measured(files / f"a/{number}", new, number)
        _measured(files / f"b/{number}", old, 667839 + number)
    rule = '[metrics."vmstat.nr_vmscan_write_count"]\nmargin = "10"\n'
    (files / "gate.toml").write_text('differs = ["kernel"]\n' + rule)
    ran = cli("gate", "--policy", "gate.toml", "a", "--against", "b", "--json")
    assert ran.code == code, ran.out
    (row,) = json.loads(ran.out)["rows"]
    assert told in row["reasons"][0]


def test_the_facts_of_a_run_without_a_trace(cli: Cli, files: Path) -> None:
    _measured(files / "a", "6.1.0-49-cloud-amd64", 1)
    found = json.loads(cli("compare", "a", "--against", "a", "--json").out)
    facts = found["sides"][0]["runs"][0]["fingerprint"]
    assert facts["kernel"] == "6.1.0-49-cloud-amd64"
    assert facts["machine"] == "x86_64"
    assert facts["memory_bytes"] == 480004 << 10
    assert facts["sysctl.vm.dirty_ratio"] == "20"
    assert facts["clock"] is None


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_gate_whose_reader_has_left_fails_all_the_same(
    files: Path, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    """`gate ... | head -1` must not pass a regression."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    reading, writing = os.pipe()
    os.close(reading)
    words = ["gate", "--policy", "gate.toml", "slow.json", "--against", "old.json"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: writing}
    process = subprocess.Popen(
        [sys.executable, "-m", "wbscope", *words, "--junit", "gate.xml", "--github"], **streams
    )
    os.close(writing)
    out, err = process.communicate()
    assert process.returncode == 1, err
    assert 'failures="1"' in (files / "gate.xml").read_text()
    assert b"gate: FAIL" in out if stream == "stderr" else b"::error" in err
