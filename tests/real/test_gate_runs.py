# SPDX-License-Identifier: Apache-2.0
"""The gate on 24 real runs: one setting changed, the disk changed, nothing changed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import wbscope
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.tools import run
from wbscope.compare.baseline import read_baseline
from wbscope.compare.gate import GateResult
from wbscope.compare.policy import read_policy

GATE = REPOSITORY / "examples/gate"
POLICY = read_policy(GATE / "gate.toml")


def judged(side: str, base: str = "before", **policy: object) -> GateResult:
    chosen = replace(POLICY, **policy)  # type: ignore[arg-type]
    return wbscope.gate(GATE / f"{side}.json", GATE / f"{base}.json", policy=chosen)


@pytest.mark.parametrize(
    ("side", "base", "status", "code"),
    [
        ("lower-limit", "before", "FAIL", 1),
        ("lower-limit", "again", "FAIL", 1),
        ("again", "before", "PASS", 0),
        ("before", "lower-limit", "PASS", 0),  # better is no regression
        ("slower-disk", "before", "WORSE", 4),
    ],
)
def test_the_verdict(side: str, base: str, status: str, code: int) -> None:
    result = judged(side, base)
    assert (result.status, result.exit_code()) == (status, code)


def test_the_other_way_round_there_is_no_alarm_either() -> None:
    """`again` happened to be the faster one; runs that spread so widely can say no more."""
    assert judged("before", "again").status in ("PASS", "INCONCLUSIVE")


def test_every_metric_fails_when_the_limit_is_lower() -> None:
    result = judged("lower-limit")
    assert result.count("FAIL") == len(result.verdicts) == 3
    assert all((verdict.p_adjusted or 1) < 0.01 for verdict in result.verdicts)


def test_nothing_at_all_is_told_apart_when_nothing_changed() -> None:
    """Of all metrics of the runs, not only of the three that the policy names."""
    rows = wbscope.compare(GATE / "again.json", GATE / "before.json").rows
    assert len(rows) > 100
    sure = [row.metric.name for row in rows if row.is_sure]
    assert len(sure) <= 0.05 * len(rows)


def test_a_setting_that_nobody_declared_is_refused() -> None:
    result = judged("lower-limit", differs=())
    assert (result.status, result.exit_code()) == ("REFUSED", 4)
    told = "; ".join(refusal.message for refusal in result.refusals)
    assert "sysctl.vm.dirty_bytes: 13631488 (lower-1" in told
    assert "45088768 (before-1" in told


def test_too_few_of_the_runs_decide_nothing() -> None:
    runs = [str(GATE / "runs/lower-2")]
    result = wbscope.gate(runs, GATE / "before.json", policy=POLICY)
    assert result.status in ("INCONCLUSIVE", "REFUSED")


@pytest.mark.parametrize(("run", "side"), [("before-2", "before"), ("lower-2", "lower-limit")])
def test_the_baseline_is_what_the_run_says(run: str, side: str) -> None:
    """Two runs are there whole: other tools' files tell what the baseline must have."""
    kept = next(one for one in read_baseline(GATE / f"{side}.json") if one.name == run)
    jobs = json.loads((GATE / "runs" / run / "fio.json").read_text())["jobs"]
    longest_s = max(job["write"]["runtime"] for job in jobs) / 1000
    written = sum(job["write"]["io_bytes"] for job in jobs)
    assert written == 2 * 37 * 2**20
    assert kept.value("fio.write.bw_bytes_per_s") == pytest.approx(written / longest_s)
    text = (GATE / "runs" / run / "time.txt").read_text()
    elapsed = next(line for line in text.splitlines() if "Elapsed" in line).split()
    minutes, seconds = elapsed[-2].rstrip("m"), elapsed[-1].rstrip("s")
    elapsed_ns = (int(minutes) * 60 + float(seconds)) * 1e9
    assert kept.value("time.elapsed_ns") == pytest.approx(elapsed_ns)
    with wbscope.open(GATE / "runs" / run) as opened:
        rows = list(opened.query("throttle_by_task"))
        meta = opened.recorded().meta
    assert kept.value("throttle_summary.pauses_count") == sum(row["pauses_count"] for row in rows)
    assert meta["damaged"] in (0, "0")


def test_the_slower_disk_is_seen_in_what_no_policy_named() -> None:
    """fio moved less each second, surely: the policy only allows that much."""
    rows = wbscope.compare(
        GATE / "slower-disk.json", GATE / "before.json", metrics=["fio.write.bw_bytes_per_s"]
    ).rows
    assert [row.outcome for row in rows if "[" not in row.metric.name] == ["worse"]


def test_all_formats_of_a_real_verdict(wbscope: Wbscope, tmp_path: Path) -> None:
    words = ("--policy", GATE / "gate.toml", GATE / "lower-limit.json")
    junit, sarif = tmp_path / "gate.xml", tmp_path / "gate.sarif"
    done = wbscope.run(
        "gate", *words, "--baseline", GATE / "before.json", "--junit", junit, "--sarif", sarif
    )
    assert done.returncode == 1, done.stderr
    assert ElementTree.parse(junit).getroot().get("failures") == "3"
    run = json.loads(sarif.read_text())["runs"][0]
    assert len(run["results"]) == 3
    lines = (GATE / "gate.toml").read_text().splitlines()
    for found in run["results"]:
        line = found["locations"][0]["physicalLocation"]["region"]["startLine"]
        assert found["ruleId"] in lines[line - 1]


_ALL = """
import sys, wbscope
statuses, opened, started = [], [], []
def note(event, args):
    if event == "open" and str(args[0]).startswith(sys.argv[1]):
        opened.append(args[0][len(sys.argv[1]) + 1:])
    elif event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "sqlite3.connect"):
        started.append(event)
sys.addaudithook(note)
for side in ("again", "lower-limit", "slower-disk"):
    result = wbscope.gate(f"{sys.argv[1]}/{side}.json", f"{sys.argv[1]}/before.json",
                          policy=f"{sys.argv[1]}/gate.toml")
    statuses.append(result.status)
print(*statuses, *opened, *started)
"""


def test_24_runs_are_judged_by_their_baselines_alone() -> None:
    """No trace is read, by any program; how long it takes is told by make bench."""
    done = run([sys.executable, "-c", _ALL, str(GATE)])
    assert done.returncode == 0, done.stderr
    first, second, third, *opened = done.stdout.split()
    assert (first, second, third) == ("PASS", "FAIL", "WORSE")
    sides = ["again.json", "lower-limit.json", "slower-disk.json", *["before.json"] * 3]
    assert Counter(opened) <= Counter([*sides * 5, *["gate.toml"] * 3])


def test_a_gate_loads_no_library_that_it_does_not_use() -> None:
    """scipy.stats alone takes a second, and Matplotlib another one."""
    script = _ALL + "print(*(name for name in sys.modules if '.' not in name))"
    loaded = run([sys.executable, "-c", script, str(GATE)]).stdout.split()
    assert "numpy" in loaded
    assert not {"matplotlib", "pandas", "perfetto", "scipy"} & set(loaded)


def test_the_files_stay_small() -> None:
    files = [path for path in GATE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3_000_000
