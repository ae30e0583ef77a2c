# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the recorded runs: first screen, evidence, no advice on a trace that is not whole."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import wbscope
from support.archives import unpacked
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.runs import REPOSITORY, RecordedRun
from support.texttrace import load_lines
from support.tools import require_program, run
from support.verdicts import assert_sound
from wbscope.explain.remedy import prove
from wbscope.explain.verdict import verdict_of
from wbscope.library.library import load_library
from wbscope.render.blocks import blocks_text
from wbscope.render.verdict import explain_blocks

_FIRST_SCREEN = 24
_EXAMPLES = REPOSITORY / "examples"


def test_every_number_is_that_of_its_evidence(
    recorded: RecordedRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(recorded.folder) as run:
        for one in run.findings():
            assert all(proven.holds for proven in prove(run, one)), one


def test_what_is_to_be_set_can_be_and_is_a_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    count = 0
    for name in ("deep", "four-equal-writers", "patched-kernel/throttle", "rate-limited-writers"):
        with wbscope.open(_EXAMPLES / name) as run:
            count += assert_sound(run)
    assert count > 5


def test_the_root_cgroup_is_given_no_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has no memory.high: its writers can be moved."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(_EXAMPLES / "patched-kernel/throttle") as run:
        (one,) = (one for one in run.findings() if one.id == "cgroup_starves")
    assert one.facts["holder_cgroup_ino"] == 1
    assert one.advice is not None
    assert one.advice.settings == ()
    assert one.advice.now == ()
    # Half of the machine's threshold, 16.8 MiB; the run's events tell that 6.0 % of a domain's
    # memory may be dirty.
    assert "a cgroup with one that leaves 140 MiB to its files" in one.advice.text


def test_no_limit_is_lowered_that_is_low(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two seconds of the disk are 46 MiB, and the limit is 27.9 MiB."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(_EXAMPLES / "rate-limited-writers") as run:
        (one,) = (one for one in run.findings() if one.id == "journal_commit")
    assert one.advice is not None
    assert (one.advice.settings, one.advice.costs, one.advice.expect) == ((), "", "")
    # Nobody knows whether somebody called fsync.
    assert "the trace does not show what made the journal of 254:0 commit" in one.advice.text
    # No event of a journal was recorded: its thread had requests in flight.
    assert one.confidence == "inferred"


@pytest.mark.parametrize(
    ("name", "rule", "held_ms"),
    [
        ("four-equal-writers", "new_bdi_bandwidth", 431),
        ("rate-limited-writers", "new_bdi_bandwidth", 332),
        ("four-equal-writers-7.2", "new_bdi_bandwidth", 640),
        ("deep", "slow_device", 773),
        ("deep", "small_memcg_limit", 3154),
        ("patched-kernel/throttle", "cause_unknown", 851),
    ],
)
def test_the_call_that_is_told_was_held_by_that(
    name: str, rule: str, held_ms: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a finding held of a call that it held longest, never more than it cost.

    paused + pause of the last event of the call in trace-cmd's text: 776, 4088 and 1016 ms of the
    last three (deep has sched_switch, which tells how long it slept); other findings tell a part
    of the last two.
    """
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(_EXAMPLES / name) as run:
        (one,) = (one for one in run.findings() if one.id == rule)
        assert round(one.facts["call_part_ns"] / 1e6) == held_ms
        assert one.facts["call_part_ns"] <= one.cost_task_ns
        assert (one.severity == "warning") is (held_ms >= 500)


def test_a_part_of_the_trace_is_told_to_be_one(wbscope: Wbscope) -> None:
    run, part = str(_EXAMPLES / "four-equal-writers"), ("--from", "10s", "--to", "12s")
    done = wbscope.run("explain", run, *part)
    lead = "No all-clear in this part of the trace: "
    assert lead in " ".join(done.stdout.split())
    assert "Nothing is wrong: " not in done.stdout


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("deep", "3.231s", "3.281s"),
        ("four-equal-writers", "@21.074552606s", "@21.210552606s"),
        ("four-equal-writers", "10s", "12s"),
    ],
)
def test_calls_that_end_behind_the_part_are_told(
    name: str, begin: str, end: str, wbscope: Wbscope
) -> None:
    """The longest was of calls that ended in it: shorter than one of their waits, or none."""
    run, part = str(_EXAMPLES / name), ("--from", begin, "--to", end)
    done = wbscope.run("explain", run, *part, "--json")
    (one,) = (one for one in json.loads(done.stdout)["rows"] if one["id"] == "nothing_wrong")
    lost = wbscope.run("query", "lost_time", run, *part, "--json")
    waits = [row["max_ns"] for row in json.loads(lost.stdout)["rows"] if row["kind"] == "throttle"]
    assert one["facts"]["longest_ns"] >= max(waits)
    assert "no write for longer than" in one["text"]


def test_sql_reads_the_findings_whatever_was_asked_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(_EXAMPLES / "deep") as run:
        # A view that reads them reads them, too.
        drawn = run.sql("SELECT arg_text FROM tl_verdict WHERE arg_rule IS NOT NULL").rows
        told = run.sql("SELECT id, text FROM wb_finding ORDER BY place").rows
        asked = run.query("findings").records()
        assert run.sql("SELECT id, text FROM wb_finding ORDER BY place").rows == told
    assert told == [(row["id"], row["text"]) for row in asked]
    assert [name for (name,) in drawn] == [text for _, text in told[: len(drawn)]]
    assert drawn


def test_a_trace_of_one_event_has_a_verdict_that_can_be_seen(tmp_path: Path) -> None:
    loaded = load_lines(
        [
            "dd-124 [000] 13.370000: balance_dirty_pages: bdi 254:0: limit=15053 setpoint=13148"
            " dirty=13165 bdi_setpoint=13147 bdi_dirty=13165 dirty_ratelimit=101200"
            " task_ratelimit=101100 dirtied=32 dirtied_pause=32 paused=0 pause=200 period=200"
            " think=0 cgroup_ino=1"
        ],
        tmp_path,
    )
    with wbscope.open(loaded.path) as run:
        rows = run.sql("SELECT name, dur FROM tl_verdict").rows
    text = (
        "No all-clear in so short a time: dirty throttling delayed no write; a text of 1"
        " record may be an excerpt; whether tasks waited for anything else was not recorded."
    )
    assert rows[0] == (f"note: {text} (cannot tell)", 1_000_000)
    assert [name.partition(":")[0] for name, _ in rows] == ["note", "to do"]


def test_the_first_screen_is_one(recorded: RecordedRun, wbscope: Wbscope) -> None:
    done = wbscope.run("report", str(recorded.folder))
    head = done.stdout.split("\n\nTime that tasks lost")[0].splitlines()
    verdict = done.stdout[: done.stdout.index("wbscope explain")].splitlines()
    assert len(verdict) <= _FIRST_SCREEN
    assert head[0].startswith(f"{recorded.folder}:")
    # Two runs of words, then at most three tables, which are underlined.
    tables = [line for line in done.stdout.splitlines() if set(line) == {"="}]
    assert len(tables) <= 3
    assert max(map(len, verdict)) <= 80


def test_a_long_path_has_a_line_of_its_own(wbscope: Wbscope, tmp_path: Path) -> None:
    """A path can be copied, and what it is told of is still the first words of the screen."""
    far = tmp_path / ("a-folder-with-a-long-name-" * 3)
    shutil.copytree(_EXAMPLES / "four-equal-writers", far)
    lines = wbscope.run("report", str(far)).stdout.splitlines()
    assert lines[:2] == [f"{far}:", "A device is slower than its writers"]


def test_sections_are_the_tables_that_are_named(wbscope: Wbscope) -> None:
    run = str(_EXAMPLES / "four-equal-writers")
    done = wbscope.run("report", run, "--section", "fairness", "--section", "pause_distribution")
    assert done.returncode == 0, done.stderr
    assert "Who was throttled\n" not in done.stdout
    assert done.stdout.index("Fairness between") < done.stdout.index("How long the pauses")


def test_where_nothing_was_held_no_empty_table_is_shown(wbscope: Wbscope) -> None:
    """Unless somebody asks for it."""
    run = CORPUS / "6.1-healthy-copy/run.tar.xz"
    page = wbscope.run("report", run).stdout
    assert "\nNo rows: Who was throttled\n" in page
    assert "(no rows)" not in page
    for words in (["--section", "throttle_by_task"], ["--full"]):
        asked = wbscope.run("report", run, *words).stdout
        assert "\nWho was throttled\n=================\n(no rows)\n" in asked
        assert "\nNo rows: " not in asked


def test_a_trace_that_lost_events_gets_no_advice(wbscope: Wbscope, tmp_path: Path) -> None:
    lost = next((unpacked("data") / "traces/6.1-amd64-v7-lost").glob("trace.dat*"))
    done = wbscope.run("explain", str(lost), "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert json.loads(done.stdout)["is_whole"] is False
    assert rows[0]["id"] == "no_verdict"
    assert [row["id"] for row in rows if row["advice"]] == ["no_verdict"]
    assert "twice the buffer" in rows[0]["advice"]["text"]


def test_a_damaged_trace_gets_no_advice(wbscope: Wbscope, tmp_path: Path) -> None:
    content = bytearray((_EXAMPLES / "four-equal-writers/trace.dat").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = b"\xff" * 64
    cut = tmp_path / "trace.dat"
    cut.write_bytes(content)
    done = wbscope.run("explain", str(cut), "--json")
    rows = json.loads(done.stdout)["rows"]
    assert rows[0]["id"] == "no_verdict"
    assert all(row["advice"] is None for row in rows if row["id"] != "no_verdict")
    assert rows[0]["advice"]["text"].startswith("Copy the trace again, or record again")
    refused = wbscope.run("explain", str(cut), "--sysctl-d")
    assert refused.returncode == 4
    assert "error[no-advice]" in refused.stderr


def test_the_story_of_a_stall(wbscope: Wbscope) -> None:
    run = str(_EXAMPLES / "deep")
    listed = json.loads(wbscope.run("query", "stalls", run, "--task", "dd", "--json").stdout)[
        "rows"
    ]
    throttled = [row for row in listed if row["kind"] == "throttle"]
    longest = max(throttled, key=lambda row: row["dur"])
    document = json.loads(
        wbscope.run("explain", run, "--stall", str(longest["stall_id"]), "--json").stdout
    )
    assert document["schema"] == "wbscope.stall/1"
    times = [row["at_ns"] for row in document["rows"]]
    assert times == sorted(times)
    assert document["facts"]["dur"] == longest["dur"]
    told = " ".join(row["text"] for row in document["rows"])
    assert f"dd {longest['tid']} goes on after" in told
    assert longest["cause"] in told
    missing = wbscope.run("explain", run, "--stall", "1")
    assert missing.returncode == 4
    assert "error[no-such-stall]" in missing.stderr


def test_settings_of_the_advice(wbscope: Wbscope, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(_EXAMPLES / "four-equal-writers", run)
    out = tmp_path / "90-wbscope.conf"
    done = wbscope.run("explain", str(run), "--sysctl-d", "-o", str(out))
    assert done.returncode == 0, done.stderr
    settings = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert settings
    for line in settings:
        knob, value = line.split(" = ")
        assert knob.startswith("vm.dirty_")
        assert value.isdecimal()
    profile = wbscope.run("explain", str(run), "--tuned").stdout
    assert profile.startswith("[main]\n")
    assert "[sysctl]\n" in profile


def test_words_that_exclude_each_other(wbscope: Wbscope) -> None:
    run = str(_EXAMPLES / "four-equal-writers")
    done = wbscope.run("explain", run, "--tuned", "--markdown")
    assert done.returncode == 2
    assert "error[two-formats]" in done.stderr


def test_there_are_rules_enough_and_each_is_whole() -> None:
    rules = {file.name: file.rule for file in load_library().findings()}
    assert len([rule for rule in rules.values() if rule and rule.severity != "fact"]) >= 18
    for name, rule in rules.items():
        assert rule is not None
        assert rule.evidence, name
        told = {check.fact for one in rule.evidence for check in one.checks}
        numbers = {n for n in rule.sentence.names() if n.endswith(("_ns", "_bytes", "_count"))}
        assert numbers <= told, (name, numbers - told)
        changes = any(one.knob.source.startswith(("vm.", "/sys/")) for one in rule.settings)
        assert rule.costs is not None or not changes, name


def test_a_limit_is_judged_by_samples_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without requests nothing tells when the disk was idle, but how fast it writes."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    folder = unpack(CORPUS / "6.1-low-limits", tmp_path)
    report = run([require_program("trace-cmd"), "report", "-t", folder / "trace.dat"]).stdout
    (folder / "trace.txt").write_text(re.sub(r"(?m)^.* block_\w+: .*\n", "", report))
    (folder / "trace.dat").unlink()
    for name in ("block.before", "block.samples", "block.after"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("== vdc\n", "== vdc\ndev 254:32\n"))
    with wbscope.open(folder) as made:
        first = made.findings()[0]
        assert all(proven.holds for proven in prove(made, first))
    assert (first.id, first.confidence) == ("small_limit", "inferred")
    assert "idle" not in first.text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_page(width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sentences keep to the width; commands, settings, rules and long words are never broken."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    with wbscope.open(_EXAMPLES / "four-equal-writers") as run:
        lines = blocks_text(explain_blocks(verdict_of(run)), width).splitlines()
    whole = re.compile(r" *([a-z]+: )? *(wbscope |echo |/sys/|vm\.|[a-z]+; rule |[^ ]+$)")
    assert len(lines) > 40
    assert not [line for line in lines if len(line) > width and not whole.match(line)]


def test_a_wait_with_others_inside_says_how_long_it_was(wbscope: Wbscope) -> None:
    """`dur` is without the waits inside it: from start to end is span_ns."""
    run = _EXAMPLES / "deep"
    rows = wbscope.query("stalls", run)
    one = max((row for row in rows if row["kind"] == "fsync"), key=lambda row: row["dur"])
    assert one["dur"] < one["span_ns"]
    told = " ".join(wbscope.run("explain", run, "--stall", str(one["stall_id"])).stdout.split())
    # 4.804470 s - 0.019936 s; examples/deep: 4.608 s of them its own.
    assert "0.019936 s dd 176 waits in fsync" in told
    assert "4.804470 s dd 176 goes on after 4.78 s, of which 176 ms were in waits inside" in told
    alone = next(row for row in rows if row["dur"] and row["dur"] == row["span_ns"])
    told = wbscope.run("explain", run, "--stall", str(alone["stall_id"])).stdout
    assert "waits inside" not in told
