# SPDX-License-Identifier: Apache-2.0
"""Numbers of recorded runs compared, and the gate on 24 real runs."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import wbscope
import wbscope as package
from support.cli import Wbscope
from support.kernel_events import formats
from support.runs import REPOSITORY
from support.tools import run
from support.tracedat import Trace
from wbscope.compare.baseline import read_baseline
from wbscope.compare.gate import GateResult
from wbscope.compare.measure import measure
from wbscope.compare.metrics import Catalog, load_catalog
from wbscope.compare.policy import read_policy
from wbscope.compare.rundata import RunData
from wbscope.library.library import load_library
from wbscope.record.finish import META_SCHEMA
from wbscope.record.machine import machine_facts

# Numbers of recorded runs: each is what its query says, and whole runs can be compared.

EXAMPLES = sorted(path.parent for path in REPOSITORY.glob("examples/*/trace.dat"))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog(load_library())


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.name)
def opened(request: pytest.FixtureRequest, catalog: Catalog):  # type: ignore[no-untyped-def]
    with package.open(request.param) as run:
        yield run, measure(run, request.param.name, catalog)


def test_every_metric_of_the_catalogue_is_compared(catalog: Catalog) -> None:
    taken = {f"{metric.query}.{metric.column}" for metric in catalog.metrics}
    for query in load_library().queries():
        for metric in query.metrics:
            name = f"{query.name}.{metric.column}"
            assert (name in taken) != (name in catalog.not_compared), name


def test_throttling_in_one_line_is_the_sum_of_its_tasks(opened) -> None:  # type: ignore[no-untyped-def]
    run, data = opened
    rows = run.query("throttle_by_task").records()
    (whole,) = run.query("throttle_summary").records()
    for column in ("pauses_count", "pause_total_ns", "slept_total_ns"):
        assert whole[column] == sum(row[column] for row in rows)
    for column in ("pause_max_ns", "call_max_ns"):
        assert whole[column] == max(row[column] for row in rows)
    for column in ("pauses_count", "pause_p99_ns", "throttled_ratio"):
        assert data.value(f"throttle_summary.{column}") == whole[column]
    assert whole["events_count"] == dict(run.sql("SELECT event, count FROM event_counts").rows).get(
        "writeback:balance_dirty_pages", 0
    )


def test_percentiles_are_of_all_pauses_as_one_list(opened) -> None:  # type: ignore[no-untyped-def]
    """Nearest rank, counted out here from the events themselves."""
    run, data = opened
    pauses = sorted(
        row[0] for row in run.sql("SELECT pause_ns FROM wb_throttle WHERE pause_ns > 0").rows
    )
    for share in (50, 95, 99):
        rank = -(-share * len(pauses) // 100)
        assert data.value(f"throttle_summary.pause_p{share}_ns") == pauses[rank - 1]
    lengths = run.query("pause_distribution").records()
    assert sum(row["pauses_count"] for row in lengths) == len(pauses)
    assert [row["pause_ns"] for row in lengths] == sorted(set(pauses))
    assert lengths[-1]["at_most_ratio"] == 1
    middle = lengths[len(lengths) // 2]
    at_most = sum(pause <= middle["pause_ns"] for pause in pauses) / len(pauses)
    assert middle["at_most_ratio"] == pytest.approx(at_most)


def test_numbers_with_keys_are_those_of_the_rows(opened) -> None:  # type: ignore[no-untyped-def]
    run, data = opened
    stalls = run.query("stalls_by_task").records()
    for kind in {row["kind"] for row in stalls}:
        name = f"stalls_by_task.total_ns[kind={kind.replace(' ', '_')}]"
        wanted = sum(row["total_ns"] or 0 for row in stalls if row["kind"] == kind)
        assert data.value(name) == wanted
    assert data.value("stalls_by_task.total_ns[kind=no_such]") == 0
    assert data.value("fairness.no_such_ratio") is None
    for row in run.query("mmtests_vmstat"):
        name = f"mmtests_vmstat.value[name={row['name'].replace(' ', '_')}]"
        assert data.value(name) == row["value"]
        unit, better = data.scalars[name][0].unit, data.scalars[name][0].better
        assert unit == row["unit"]
        assert better == {"-": "neutral"}.get(row["better"], row["better"])


def test_names_have_no_tid_and_no_device(opened) -> None:  # type: ignore[no-untyped-def]
    run, data = opened
    tids = {str(row[0]) for row in run.sql("SELECT tid FROM task WHERE tid > 9").rows}
    for name in data.scalars:
        keys = name.partition("[")[2].rstrip("]").split(",")
        values = {pair.partition("=")[2] for pair in keys if pair}
        assert not values & tids, name
        assert not any(":" in value for value in values), name


def test_every_sentence_is_there(opened) -> None:  # type: ignore[no-untyped-def]
    data: RunData = opened[1]
    for metric, _ in data.scalars.values():
        assert len(metric.meaning) > 15, metric.name
        assert "\n" not in metric.meaning


def test_what_a_run_was_recorded_on(opened) -> None:  # type: ignore[no-untyped-def]
    run, data = opened
    facts = data.fingerprint
    assert facts["kernel"] == run.recorded().meta["kernel_release"]
    assert (facts["machine"], facts["cpus_count"], facts["page_bytes"]) == ("x86_64", 2, 4096)
    assert facts["hz"] in (250, None)
    assert "writeback:balance_dirty_pages" in str(facts["events"])
    assert facts["filesystem"] is None  # nothing recorded it, and nothing is assumed


def test_facts_of_a_run_folder_of_the_recorder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(REPOSITORY / "examples" / "four-equal-writers", folder)
    (folder / "sysctls").write_text(
        "vm.dirty_ratio = 20\nvm.drop_caches = 3\nvm.lowmem_reserve_ratio = 256\t256\nno line\n"
    )
    (folder / "mounts").write_text(
        "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "30 25 254:0 / /data rw,noatime - xfs /dev/vda rw,attr2\n"
        "31 25 0:5 / /proc rw - proc proc rw\nnonsense\n"
        "32 25 7:9 / /snap/core ro - squashfs /dev/loop9 ro\n"
    )
    machine = machine_facts() | {"hz": 1000, "hostname": "one"}
    meta = {"schema": META_SCHEMA, "command": ["dd", "of=/mnt/run-7/x"], "machine": machine}
    meta |= {"probe": {"kind": "fprobe"}, "waits": {"kind": None, "why": "not in this kernel"}}
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "devices").write_text("== vda\nsize 8192\nqueue/scheduler [none]\n")
    catalog = load_catalog(load_library())
    with package.open(folder) as run:
        facts = measure(run, "run", catalog, lambda family: False).fingerprint
    assert facts["sysctl.vm.dirty_ratio"] == "20"
    assert facts["sysctl.vm.lowmem_reserve_ratio"] == "256 256"
    assert "sysctl.vm.drop_caches" not in facts
    assert facts["filesystem"] == "/ ext4 rw,relatime rw; /data xfs rw,noatime rw,attr2"
    assert facts["command"] == '["dd", "of=x"]'
    assert facts["hz"] == 1000  # read by the recorder; the events only hint at 250
    assert facts["machine"] == "x86_64"  # of the trace's uname, as it was before the recorder
    assert facts["kernel"] == "6.1.0-56-cloud-amd64"
    assert [e for e in facts["absent_events"].split() if "wbscope:" in e] == ["wbscope:blocked"]
    assert facts["device"] == "== vda size 8192 queue/scheduler [none]"
    assert "one" not in {str(fact) for fact in facts.values()}  # the host's name is no fact


def test_a_short_last_window_is_not_the_worst(tmp_path: Path) -> None:
    """Slept 25 % of the first 2 s and all of the 50 ms that the trace has of the next."""
    trace = Trace(formats("balance_dirty_pages"), cmdlines={11: "dd"})
    values = {"bdi": "8:0", "cgroup_ino": 1, "task_ratelimit": 100, "dirtied": 8}
    for ms, pause in ((0, 150), (300, 150), (600, 200), (1990, 190), (2050, 0)):
        event = {**values, "pause": pause, "period": 200}
        trace.event(0, (10_000 + ms) * 1_000_000, 11, "balance_dirty_pages", event)
    trace.write(tmp_path / "trace.dat")
    with package.open(tmp_path) as run:
        rows = run.query("throttle_windows").records()
        name = "throttle_windows.throttled_max_ratio"
        measured = measure(run, "run", load_catalog(load_library()), lambda found: found == name)
    assert [row["throttled_ratio"] > 0.99 for row in rows] == [False, True]
    assert measured.scalars[f"{name}[comm=dd]"][1] == rows[0]["throttled_ratio"]


def test_machine_of_the_recorder_alone(tmp_path: Path) -> None:
    """A run whose sidecars tell nothing else."""
    shutil.copy(REPOSITORY / "examples/four-equal-writers/trace.dat", tmp_path)
    machine = machine_facts() | {"memory_bytes": 1 << 30, "swap_bytes": 0, "machine": "riscv64"}
    (tmp_path / "meta.json").write_text(json.dumps({"schema": META_SCHEMA, "machine": machine}))
    with package.open(tmp_path) as run:
        facts = measure(run, "run", load_catalog(load_library()), lambda _: False).fingerprint
    assert (facts["memory_bytes"], facts["swap_bytes"]) == (1 << 30, 0)
    assert facts["hz"] == machine["hz"]


def test_only_what_is_asked_for_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    query = package.Run.query
    monkeypatch.setattr(
        package.Run,
        "query",
        lambda self, name, **more: (asked.append(name), query(self, name, **more))[1],
    )
    folder = REPOSITORY / "examples" / "four-equal-writers"
    found = package.compare(folder, folder, metrics=["fairness.jain_ratio"])
    assert [row.metric.name for row in found.rows] == ["fairness.jain_ratio"]
    assert set(asked) == {"fairness", "fingerprint"}


def test_a_copy_of_a_run_is_told(wbscope: Wbscope, tmp_path: Path) -> None:
    source = REPOSITORY / "examples" / "four-equal-writers"
    shutil.copytree(source, tmp_path / "copy")
    result = wbscope.run("compare", tmp_path / "copy", "--against", source, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert "same-recording" in {notice["slug"] for notice in document["warnings"]}
    assert {row["outcome"] for row in document["rows"]} == {"undecided"}


def test_a_folder_of_runs_and_a_baseline_of_it(wbscope: Wbscope, tmp_path: Path) -> None:
    for name in ("four-equal-writers", "reclaim-writes"):
        shutil.copytree(REPOSITORY / "examples" / name, tmp_path / "runs" / name)
    save = ("baseline", "save", tmp_path / "runs", "-o", tmp_path / "base.json")
    (saved,) = wbscope.document(*save, "--metric", "throttle_summary*")["rows"]
    assert (saved["runs_count"], saved["metrics_count"]) == (2, 9)
    assert (tmp_path / "base.json").stat().st_size < 16_000
    compared = wbscope.run(
        "compare", tmp_path / "runs", "--baseline", tmp_path / "base.json",
        "--metric", "throttle_summary*", "--json",
    )  # fmt: skip
    rows = json.loads(compared.stdout)["rows"]
    assert len(rows) == 9
    assert all(row["of_side"]["values"] == row["of_base"]["values"] for row in rows)


def test_across_6_16(wbscope: Wbscope) -> None:
    runs = [
        REPOSITORY / "examples" / name for name in ("four-equal-writers-7.2", "four-equal-writers")
    ]
    result = wbscope.run("compare", runs[0], "--against", runs[1], "--json")
    refused = {
        row["metric"] for row in json.loads(result.stdout)["rows"] if row["outcome"] == "refused"
    }
    assert "mmtests_vmstat.value[name=Page_writes_by_reclaim]" in refused
    assert "vmstat.nr_vmscan_write_count" in refused
    assert "throttle_summary.throttled_ratio" not in refused


def test_swap_is_the_same_on_every_kernel(wbscope: Wbscope, tmp_path: Path) -> None:
    """From 6.16 on reclaim writes no file pages; anonymous ones go to swap as before."""
    run, baseline = REPOSITORY / "examples/reclaim-writes", tmp_path / "baseline.json"
    assert wbscope.run("baseline", "save", run, "-o", baseline).returncode == 0
    metrics = json.loads(baseline.read_text())["metrics"]
    pages = {kind: metrics[f"reclaim_writes.pages_count[kind={kind}]"] for kind in ("anon", "file")}
    assert pages["file"]["not_across"] == "6.16"
    assert "not_across" not in pages["anon"]


def test_a_gate_on_a_trace(wbscope: Wbscope) -> None:
    run = REPOSITORY / "examples" / "four-equal-writers"
    for budget, code in (("<= 300ms", 0), ("<= 100ms", 1)):
        rule = f"throttle_summary.pause_p99_ns {budget}"
        result = wbscope.run("gate", run, "--budget", rule)
        assert result.returncode == code, result.stderr
    missing = wbscope.run("gate", run, "--budget", "completion_waits.wait_ns[comm=dd] <= 1s")
    assert missing.returncode == 4
    assert "writeback_balance_dirty_pages_waiting" in missing.stdout


def test_findings_of_real_runs_are_those_of_explain(wbscope: Wbscope) -> None:
    """What is new is what explain tells of the one run and not of the other."""
    runs = [REPOSITORY / "examples" / name for name in ("deep", "four-equal-writers")]
    done = wbscope.run("compare", runs[0], "--against", runs[1], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["findings"]["A"]
    wrong = []
    for folder in runs:
        rows = json.loads(wbscope.run("explain", folder, "--json").stdout)["rows"]
        wrong.append({row["id"] for row in rows if row["severity"] not in ("fact", "ok")})
    assert {one["id"] for one in found if one["is_new"]} == wrong[0] - wrong[1]
    assert {one["id"] for one in found if not one["is_new"]} == wrong[1] - wrong[0]
    assert wrong[0] != wrong[1]


# The gate on 24 real runs: one setting changed, the disk changed, nothing changed.

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
