# SPDX-License-Identifier: Apache-2.0
"""Texts with holes, the headers of findings, and what is done about advice."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from wbscope.base.errors import EvidenceError
from wbscope.explain.remedy import sysctl_text, trial_of, tuned_text, undo_of
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Advice, Finding, no_label
from wbscope.library.rules import read_rule, read_template

_HEADER = {
    "severity": ["warning"],
    "confidence": ["measured"],
    "sentence": ["{tasks} waited {cost_task_ns}."],
}
_COLUMNS = ["cost_task_ns", "tasks", "bdi", "cgroup_ino"]


def _label(column: str, value: Any) -> str | None:
    return {"cgroup_ino": {27: "/app"}, "bdi": {"8:0": "sda (/)"}}.get(column, {}).get(value)


@pytest.mark.parametrize(
    ("text", "facts", "wanted"),
    [
        (
            "{tasks} waited {dur_ns}",
            {"tasks": "2 dd", "dur_ns": 1_500_000_000},
            "2 dd waited 1.50 s",
        ),
        ("a[ of {bdi}] b", {"bdi": "8:0"}, "a of sda (/) b"),
        ("a[ of {bdi}] b", {"bdi": None}, "a b"),
        ("a[ of {bdi} {x}] b", {"bdi": "8:0", "x": None}, "a b"),
        ("[{a:raw}][{b:raw}]", {"a": None, "b": 7}, "7"),
        ("{bdi}", {"bdi": None}, None),
        ("{bdi:raw} {bdi}", {"bdi": "8:0"}, "8:0 sda (/)"),
        ("/sys{cgroup_ino:path}/io.max", {"cgroup_ino": 27}, "/sys/app/io.max"),
        ("/sys{cgroup_ino:path}/io.max", {"cgroup_ino": 28}, None),
        ("{n:task} and {m:task}", {"n": 1, "m": 3}, "1 task and 3 tasks"),
        ("{tasks}", {"tasks": "[{dd}]"}, "[{dd}]"),
        ("", {}, ""),
    ],
)
def test_holes_are_filled(text: str, facts: dict[str, Any], wanted: str | None) -> None:
    assert read_template(text).fill(facts, _label) == wanted


def test_told_are_the_facts_that_stand_in_the_text() -> None:
    template = read_template("{a} [and {b}][, not {c} {d}]")
    assert template.names() == ["a", "b", "c", "d"]
    assert template.told({"a": 1, "b": 2, "c": 3, "d": None}) == ["a", "b"]


@pytest.mark.parametrize("text", ["[a", "a]", "[a[b]]", "{a", "a}", "{a b}", "{}"])
def test_a_text_that_is_no_template(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_template(text)


@pytest.mark.parametrize(
    ("tag", "lines", "wrong"),
    [
        ("severity", ["bad"], "@severity is 'bad'"),
        ("confidence", [], "@confidence is ''"),
        ("sentence", [], "has no @sentence"),
        ("sentence", ["{cost}"], "{cost} is no @column"),
        ("set", ["vm.dirty_bytes 7"], "sets nothing"),
        ("set", ["vm.dirty_bytes = {seven}"], "{seven} is no @column"),
        ("now", ["[vm.dirty_bytes = {seven}]"], "{seven} is no @column"),
        ("expect", ["{seven} lower"], "{seven} is no @column"),
        ("evidence", ["Lost Time"], "@evidence is 'Lost Time'"),
        ("evidence", ["lost_time: cost_task_ns"], "is no check"),
        ("evidence", ["lost_time: cost_task_ns = median(dur)"], "is no number of a query"),
        ("evidence", ["lost_time --bdi {seven}: cost_task_ns = sum(dur)"], "{seven} is no @column"),
    ],
)
def test_a_header_that_is_wrong(tag: str, lines: list[str], wrong: str) -> None:
    assert read_rule(_HEADER, _COLUMNS).severity == "warning"
    with pytest.raises(ValueError, match=re.escape(wrong)):
        read_rule(_HEADER | {tag: lines}, _COLUMNS)


def test_terms_of_evidence() -> None:
    line = "lost_time --bdi {bdi}: cost_task_ns = 1 - mean(share, total_ns, bdi={bdi}) / tasks"
    (evidence,) = read_rule(_HEADER | {"evidence": [line]}, _COLUMNS).evidence
    (check,) = evidence.checks
    assert evidence.query == "lost_time"
    assert [name for name, _ in evidence.options] == ["--bdi"]
    assert (check.fact, check.first.aggregate, check.first.column) == ("cost_task_ns", "", "1")
    (_, mean), (_, fact) = check.steps
    assert (mean.aggregate, mean.column, mean.weight) == ("mean", "share", "total_ns")
    assert [name for name, _ in mean.where] == ["bdi"]
    assert (fact.aggregate, fact.column) == ("", "tasks")


def _finding(settings: dict[str, str], *now: str, severity: str = "warning") -> Finding:
    advice = Advice("Change it.", tuple(settings.items()), now, "", "")
    return Finding(
        "slow_device", "A title", severity, "measured", 1, "text", (), advice, {}, (), None, None
    )


def _verdict(*findings: Finding, run: str = "RUN") -> Verdict:
    return Verdict(run, findings, (), (), (), 0)


def test_a_trial_and_how_to_undo_it() -> None:
    one = _finding(
        {"vm.dirty_bytes": "7", "/sys/class/bdi/8:0/max_ratio": "3", "the rate": "1 MiB/s"},
        "vm.dirty_ratio = 20",
        "/sys/class/bdi/8:0/max_ratio = 100 (the default; not recorded)",
    )
    assert trial_of(one, "RUN") == (
        "echo 3 > /sys/class/bdi/8:0/max_ratio",
        "wbscope record --sysctl vm.dirty_bytes=7 -o TRIAL -- COMMAND",
        "wbscope compare TRIAL --against RUN",
    )
    assert undo_of(one) == (
        "sysctl -w vm.dirty_ratio=20",
        "echo 100 > /sys/class/bdi/8:0/max_ratio",
    )
    assert trial_of(_finding({"the rate": "1 MiB/s"}), "RUN") == ()


def test_names_of_a_stranger_are_words_of_a_command_and_no_lines_of_a_file() -> None:
    strange = "/sys/fs/cgroup/x; rm -rf ~\nvm.panic_on_oom = 1/memory.max"
    one = _finding({strange: "7; reboot", "vm.dirty_bytes": "7"}, f"{strange} = max")
    (echo, _, _), (undo,) = trial_of(one, "RUN"), undo_of(one)
    assert shlex.split(echo) == ["echo", "7; reboot", ">", strange]
    assert shlex.split(undo) == ["echo", "max", ">", strange]
    assert "rm" not in tuned_text(_verdict(one)) + sysctl_text(_verdict(one))
    idle = _finding({"/sys/fs/cgroup/a/io.max": "8:0 wbps=max"})
    assert "/sys/fs/cgroup/a/io.max=8:0 wbps=max\n" in tuned_text(_verdict(idle))


def test_files_with_the_advice() -> None:
    first = _finding({"vm.dirty_bytes": "7", "/sys/class/bdi/8:0/max_ratio": "3"})
    second = _finding({"vm.dirty_bytes": "9", "vm.swappiness": "1"})
    note = _finding({"vm.laptop_mode": "1"}, severity="note")
    sysctl = sysctl_text(_verdict(first, second, note)).splitlines()
    assert [line for line in sysctl if line[0] != "#"] == [
        "vm.dirty_bytes = 7",
        "vm.swappiness = 1",
    ]
    tuned = tuned_text(_verdict(first, note))
    assert "[sysctl]\n# slow_device: A title\nvm.dirty_bytes=7\n" in tuned
    assert "[sysfs]\n# slow_device: A title\n/sys/class/bdi/8:0/max_ratio=3\n" in tuned
    with pytest.raises(EvidenceError, match="sets a sysctl"):
        sysctl_text(_verdict(note))
    with pytest.raises(EvidenceError, match=r"a file of /sys"):
        tuned_text(_verdict(_finding({"the rate": "1"})))


def test_the_name_of_a_run_is_no_line_of_a_file() -> None:
    """A folder of a stranger may be called anything."""
    run = "nl/run\nkernel.core_pattern = |"
    verdict = _verdict(_finding({"vm.dirty_bytes": "7"}), run=run)
    for text in (sysctl_text(verdict), tuned_text(verdict)):
        assert not any(line.startswith("kernel.") for line in text.splitlines())
        assert "for $'nl/run\\x0akernel.core_pattern = |'" in text.splitlines()[0] + text
    assert sysctl_text(_verdict(*verdict.findings)).startswith(
        "# Advice of wbscope explain for RUN: try it"
    )


def test_no_label_keeps_values() -> None:
    assert read_template("{bdi}").fill({"bdi": "8:0"}, no_label) == "8:0"
