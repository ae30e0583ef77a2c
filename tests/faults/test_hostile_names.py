# SPDX-License-Identifier: Apache-2.0
"""Names of strangers in what every verb says: none steers a terminal, or the log of a CI job."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.labs import new_lab
from support.runs import example
from support.wait_events import Waits
from typer.main import get_command
from wbscope.cli.main import program
from wbscope.render.text import printable

# A line feed and a command of GitHub's runner, a sequence of a terminal, a return to the start of
# the line, commands of the older kind.
_HOSTILE = "b\n::warning::x\x1b[2J\r::add-mask::y ##[error]z"
_COMM = "\n::error::x\x1b\r##"
_BDI = "8:0\n::group::x\r"
# At a word a page may break its line.
_STEERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]|^\s*::[\w-]+(?: .*)?::|##\[", re.MULTILINE)


def _run(folder: Path, values: int) -> Path:
    """Tasks, devices, mounts, cgroups, a machine and a command of such names."""
    folder.mkdir(parents=True)
    waits = Waits("balance_dirty_pages", cmdlines={tid: f"{_COMM[:-1]}{tid}" for tid in (11, 12)})
    for place in range(60):
        told = {"limit": 1000, "setpoint": 900, "dirty": 950, "dirty_ratelimit": 1000}
        told |= {"task_ratelimit": 875, "dirtied": 8, "pause": values, "period": 10}
        waits.add(20 * place, 11 + place % 2, "balance_dirty_pages", bdi=_BDI, cgroup_ino=1, **told)
    waits.write(folder)
    octal = "".join(f"\\{ord(sign):03o}" if sign in "\n\r\x1b " else sign for sign in _HOSTILE)
    (folder / "mounts").write_text(f"24 1 8:0 / /{octal} rw - ext4 /dev/{octal} rw\n")
    (folder / "uname").write_text(f"Linux {_HOSTILE[2:12]} 6.1.0{_HOSTILE[2:]} #1\n")
    (folder / "cgroups").write_text("1 /sys/fs/cgroup/::warning::x\x1b[2J ##[error]z\n")
    (folder / "ops.txt").write_text(f"stall {values} s\n")
    (folder / "sysctls").write_text(f"vm.dirty_bytes = 1{_HOSTILE[1:]}\n")
    meta = {
        "schema": "wbscope.record/1", "ended": "complete", "command": ["dd", _HOSTILE],
        "profile": _HOSTILE, "problems": [_HOSTILE], "missing": [_HOSTILE],
        "machine": {"hostname": _HOSTILE, "kernel_release": f"6.1.0{_HOSTILE}"},
    }  # fmt: skip
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


@pytest.fixture(scope="module")
def places(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the verbs are given, each of a hostile name."""
    folder = tmp_path_factory.mktemp("hostile")
    runs = folder / f"runs{_HOSTILE}"
    for side, value in (("a", 20), ("b", 60)):
        for number in range(2):
            _run(runs / f"{side}{_HOSTILE}" / f"{number}{_HOSTILE}", value + number)
    first = runs / f"a{_HOSTILE}"
    broken = runs / f"bad{_HOSTILE}"
    broken.mkdir()
    trace = example("reclaim-writes").trace.read_bytes()
    (broken / "trace.dat").write_bytes(trace[: len(trace) // 2])
    lab = new_lab(folder / f"lab{_HOSTILE}", {"limit": ("low",)}, {"low": [1, 2]}, 3)
    told = json.loads((lab / "lab.json").read_text()) | {"title": _HOSTILE}
    (lab / "lab.json").write_text(json.dumps(told))
    policy = folder / f"gate{_HOSTILE}"
    policy.write_text('["metrics"."command.duration_ns"]\nmargin = "5%"\n')
    wrong = folder / f"wrong{_HOSTILE}"
    wrong.write_text('["::error::x\\u001b"]\n"b\\n::warning::x" = "\\r##[error]y"\n')
    history, baseline = folder / f"history{_HOSTILE}", folder / f"all{_HOSTILE}.json"
    for number in range(2):
        words = (
            "add",
            history,
            first / f"{number}{_HOSTILE}",
            "--commit",
            f"::warning::x##[error]{number}",
        )
        done = wbscope.run("history", *words, "--date", f"2026-01-0{number + 1}")
        assert done.returncode == 0, done.stderr
    assert wbscope.run("baseline", "save", first, "-o", baseline).returncode == 0
    archive = folder / f"archive{_HOSTILE}"
    archive.write_bytes(b"\x1f\x8b\n::warning::x")
    return {
        "run": str(first / f"0{_HOSTILE}"), "other": str(first / f"1{_HOSTILE}"),
        "first": str(first), "second": str(runs / f"b{_HOSTILE}"), "runs": str(runs),
        "broken": str(broken), "lab": str(lab), "policy": str(policy), "wrong": str(wrong),
        "history": str(history), "baseline": str(baseline), "archive": str(archive),
        "none": str(folder / f"none{_HOSTILE}"), "hostile": _HOSTILE, "new": "NEW",
    }  # fmt: skip


# Words of each verb, each said once as it is and once with a name that is not there: {} is a place.
_COMMANDS = {
    "baseline save": ["baseline save {first} -o {new}"],
    "baseline show": ["baseline show {baseline}"],
    "baseline merge": ["baseline merge {baseline} {baseline} -o {new}"],
    "check": ["check {run}", "check {run} --json"],
    "compare": ["compare {first} --against {second}", "compare {first} --against {second} {x}"],
    "completion": ["completion {hostile}"],
    "convert": ["convert {run} -o {new}", "convert {broken} -o {new}"],
    "demo": ["demo -o {run}"],
    "doctor": ["doctor --profile {hostile}"],
    "explain": ["explain {run}", "explain {run} --markdown", "explain {run} --stall {hostile}"],
    "export": ["export {hostile}"],
    "fleet gate": ["fleet gate {dataset} --policy {policy} --cohort {hostile} --against 1"],
    "fleet ingest": ["fleet ingest {run} -o {new}", "fleet ingest {broken} -o {new} --json"],
    "fleet report": ["fleet report {dataset}", "fleet report {dataset} --markdown"],
    "fleet sql": [
        "fleet sql {dataset} SELECT\u00a0*\u00a0FROM\u00a0runs",
        "fleet sql {dataset} SELECT\u00a0*\u00a0FROM\u00a0run_facts --csv",
        "fleet sql {dataset} {hostile}",
    ],
    "gate": [
        "gate {second} --against {first} --policy {policy} --github",
        "gate {second} --baseline {baseline} --policy {policy} --markdown",
        "gate {second} --against {first} --policy {wrong}",
        "gate {second} --against {first} --budget {hostile}",
    ],
    "history add": ["history add {history} {other} --commit {hostile} --date 2026-01-03"],
    "history show": ["history show {history}"],
    "ingest": ["ingest {run} -o {new}", "ingest {run} -o {new} --events {hostile}"],
    "lab run": ["lab run {wrong} -o {new} --dry-run"],
    "lab bisect": ["lab bisect {wrong} -o {new} --metric {hostile}"],
    "lab report": ["lab report {lab}", "lab report {lab} --style lkml"],
    "open": ["open {run} --no-browser --wait 1ms", "open {run} --ui {hostile}"],
    "plot": ["plot {run} task-wait -o {new}", "plot {run} {hostile} -o {new}"],
    "queries": ["queries {hostile}"],
    "query": [
        "query throttle_by_task {run}", "query throttle_by_task {run} --csv",
        "query throttle_by_task {run} --markdown", "query throttle_by_task {run} --json",
        "query {hostile} {run}", "query fairness {run} --bdi {hostile}",
        "query fairness {run} --comm {hostile}",
    ],
    "record": [
        "record --unpack {archive} -o {new}", "record --recover {run}",
        "record -e {hostile} -o {new} -- true", "record -o {new} -- {none}",
    ],
    "report": ["report {run}", "report {run} --full", "report {first} --markdown"],
    "schema": ["schema {hostile}"],
    "sql": [
        "sql {run} SELECT\u00a0*\u00a0FROM\u00a0wb_throttle\u00a0LIMIT\u00a03",
        "sql {run} {hostile}",
    ],
    "sql-package": ["sql-package -o {run}", "sql-package -o {new}"],
    "timeline": ["timeline {run} -o {new}", "timeline {broken} -o {new}"],
}  # fmt: skip


def _verbs(command: object, name: str = "") -> set[str]:
    below = getattr(command, "commands", {})
    listed = {one for key, sub in below.items() for one in _verbs(sub, f"{name} {key}".strip())}
    return listed or {name}


def test_every_verb_is_tried() -> None:
    assert set(_COMMANDS) == _verbs(get_command(program()))


@pytest.mark.parametrize("verb", _COMMANDS)
def test_names_steer_nothing(
    wbscope: Wbscope, places: dict[str, str], tmp_path: Path, verb: str
) -> None:
    """With exit code 0 or as an error, of a name that is there and of one that is not."""
    failures = []
    for number, command in enumerate(_COMMANDS[verb]):
        said = [command, *_with_none(command)]
        for words in said:
            there = places | {"new": str(tmp_path / f"{number}{_HOSTILE}"), "x": "--all"}
            if "{dataset}" in words:
                there["dataset"] = _dataset(wbscope, places)
            filled = [word.replace("\u00a0", " ") for word in words.split(" ")]
            done = wbscope.run(*(word.format(**there) for word in filled), cwd=tmp_path)
            told = f"{done.stdout}\n{done.stderr}"
            assert done.returncode in (0, 1, 2, 3, 4, 5), told
            if "--github" in words:
                told = re.sub(
                    r"^::(?:error|warning|notice) (?:[^:\n]|%3A)*::", "", told, flags=re.M
                )
            if found := _STEERS.search(told):
                failures.append(
                    (words, done.returncode, told[max(0, found.start() - 80) : found.end() + 40])
                )
            shutil.rmtree(there["new"], ignore_errors=True)
    assert not failures


def _with_none(command: str) -> list[str]:
    made = re.sub(
        r"\{(?:run|first|runs|baseline|dataset|history|lab|archive|policy|broken)\}",
        "{none}",
        command,
    )
    return [made] if made != command else []


_kept: dict[str, str] = {}


def _dataset(wbscope: Wbscope, places: dict[str, str]) -> str:
    if "dataset" not in _kept:
        made = os.path.join(os.path.dirname(places["lab"]), f"dataset{_HOSTILE}")
        done = wbscope.run("fleet", "ingest", places["first"], places["second"], "-o", made)
        assert done.returncode in (0, 4), done.stderr
        _kept["dataset"] = made
    return _kept["dataset"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\x1b\x9b\u2028", "a\\nb\\r\\x1b\\x9b\\u2028"),
        ("::warning::x", "\\x3a:warning::x"),
        (" ::error file=a::x", " \\x3a:error file=a::x"),
        ("a ::stop-commands::x", "a \\x3a:stop-commands::x"),
        ("##[error]x", "##\\x5berror]x"),
        ("std::string::npos, ::1, a::b", "std::string::npos, ::1, a::b"),
        ("## [1]", "## [1]"),
        ("dd \u00e9", "dd \u00e9"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown
