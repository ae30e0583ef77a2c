# SPDX-License-Identifier: Apache-2.0
"""Files and names of strangers: all stay, and none steers a terminal or a log."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.faults import Place, foreign_files, snapshot
from support.labs import new_lab
from support.runs import REPOSITORY, example
from support.texttrace import sent_archive
from support.tools import wbscope_path
from support.wait_events import Waits
from support.waits import GUARD_SECONDS
from typer.main import get_command
from wbscope.cli.main import program
from wbscope.render.text import printable

# Every command in a folder full of other people's things, as cache and for outputs: all stay.

_GATE = "throttle_summary.pause_p99_ns <= 100s"
# Words of each command; it runs in the folder and names what it writes there.
_COMMANDS = {
    "query": ["query", "fairness", "{trace}"],
    "query -o": ["query", "fairness", "{trace}", "--csv", "-o", "fairness.csv"],
    "sql": ["sql", "{trace}", "SELECT count(*) FROM wb_throttle"],
    "report": ["report", "{trace}", "-o", "report.txt"],
    "report -o html": ["report", "{trace}", "-o", "report.html"],
    "explain": ["explain", "{trace}", "-o", "verdict.txt"],
    "ingest": ["ingest", "{trace}", "-o", "run.db"],
    "ingest --force": ["ingest", "{trace}", "-o", "run.db", "--force"],
    "timeline": ["timeline", "{trace}", "-o", "run.pftrace"],
    "plot": ["plot", "{trace}", "task-wait", "-o", ".", "--format", "svg"],
    "convert": ["convert", "{trace}", "-o", "config"],
    "open": ["open", "{trace}", "--no-browser", "--wait", "100ms"],
    "compare": ["compare", "{trace}", "--against", "{trace}"],
    "gate": ["gate", "{trace}", "--budget", _GATE],
    "queries": ["queries"],
    "doctor": ["doctor"],
    "sql-package": ["sql-package", "-o", "package"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    for name in (".run.db.12345678", ".config.d", ".run.db.wbscope-notours"):
        (made / name).mkdir()
        (made / name / "file").write_text(name)
    (made / ".run.db.abcdefgh").mkdir()  # empty and old
    (made / ".fairness.csv.wbscope-theirs01").mkdir()
    (made / ".fairness.csv.wbscope-theirs01" / "keep").write_text("no lock: no writer's folder")
    return made


@pytest.mark.parametrize("name", _COMMANDS)
def test_foreign_files_survive(place: Place, folder: Path, name: str) -> None:
    before = foreign_files(folder)
    command = [word.format(trace=place.source) for word in _COMMANDS[name]]
    done = subprocess.run(
        [wbscope_path(), *command],
        cwd=folder,
        env=dict(os.environ, WBSCOPE_CACHE_DIR=str(folder), HOME=str(folder)),
        capture_output=True,
        text=True,
        timeout=GUARD_SECONDS,
        check=False,
    )
    codes = {"open": (5,), "doctor": (0, 5), "compare": (0, 4), "gate": (0, 4)}
    assert done.returncode in codes.get(name, (0,)), done.stderr
    after = snapshot(folder)
    gone = {path for path, seen in before.items() if after.get(path) != seen}
    assert not gone
    new = {path.split("/")[0] for path in after} - {path.split("/")[0] for path in before}
    outputs = {"fairness.csv", "report.txt", "run.db", "run.pftrace", "config", "package"}
    outputs |= {"task-wait.svg", "report.html", "verdict.txt"}
    assert new <= outputs | {"wbscope", ".local", ".cache"}


def test_caches_that_cannot_be_trusted_are_refused(place: Place, tmp_path: Path) -> None:
    """What a gate asks must not come from where somebody else can write."""
    shared, link = tmp_path / "shared", tmp_path / "link"
    shared.mkdir()
    link.symlink_to(shared)
    for cache, mode in ((shared, 0o777), (link, 0o755)):
        shared.chmod(mode)
        for command in _COMMANDS["query"], _COMMANDS["gate"]:
            words = [word.format(trace=place.source) for word in command]
            env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache))
            done = subprocess.run(
                [wbscope_path(), *words], env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 5, done.stderr
            assert done.stderr.startswith("error[no-cache]: "), done.stderr
            assert "fix: export WBSCOPE_CACHE_DIR=" in done.stderr
        assert os.listdir(shared) == []


_RUNS = REPOSITORY / "examples/gate"
_BEFORE, _LOW = str(_RUNS / "before.json"), str(_RUNS / "lower-limit.json")
_POLICY = str(_RUNS / "gate.toml")
# Words of each verb that has --force, which come twice to the same folder; what it writes there.
_FORCED = {
    "baseline save": (["{runs}", "-o", "all.json"], "all.json"),
    "baseline merge": ([_BEFORE, _LOW, "-o", "all.json"], "all.json"),
    "baseline show": ([_BEFORE, "-o", "shown.html"], "shown.html"),
    "check": (["{run}", "-o", "check.txt"], "check.txt"),
    "compare": ([_LOW, "--against", _BEFORE, "--html", "c.html"], "c.html"),
    "convert": (["{trace}", "-o", "run.pftrace"], "run.pftrace"),
    "explain": (["{trace}", "-o", "verdict.txt"], "verdict.txt"),
    "fleet gate": (
        ["{dataset}", "--cohort", "source LIKE '%7.2'", "--against", "source NOT LIKE '%7.2'",
         "--policy", _POLICY, "-o", "gate.txt"],
        "gate.txt",
    ),
    "fleet report": (["{dataset}", "-o", "fleet.html"], "fleet.html"),
    "fleet sql": (["{dataset}", "SELECT 1 AS one", "-o", "one.csv"], "one.csv"),
    "gate": (
        [_LOW, "--baseline", _BEFORE, "--policy", _POLICY, "-o", "gate.txt",
         "--junit", "gate.xml", "--sarif", "gate.sarif"],
        "gate.txt gate.xml gate.sarif",
    ),
    "history show": (["{history}", "-o", "trend.html"], "trend.html"),
    "ingest": (["{trace}", "-o", "run.db"], "run.db"),
    "lab report": (["{lab}", "-o", "pictures", "--save", "lab.json"], "pictures lab.json"),
    "plot": (["{trace}", "task-wait", "-o", ".", "--format", "svg"], "task-wait.svg"),
    "query": (["fairness", "{trace}", "-o", "fairness.csv"], "fairness.csv"),
    "record": (["--unpack", "{archive}", "--no-report", "-o", "recorded"], "recorded"),
    "report": (["{trace}", "-o", "report.html"], "report.html"),
    "sql": (["{trace}", "SELECT 1 AS one", "-o", "one.csv"], "one.csv"),
    "sql-package": (["-o", "package"], "package"),
    "timeline": (["{trace}", "-o", "time.pftrace"], "time.pftrace"),
}  # fmt: skip


def _with_force(command: Any, name: str = "") -> Iterator[str]:
    if any("--force" in parameter.opts for parameter in command.params):
        yield name
    for below, one in getattr(command, "commands", {}).items():
        yield from _with_force(one, f"{name} {below}".strip())


def test_every_verb_with_force_is_tried() -> None:
    assert set(_FORCED) == set(_with_force(get_command(program())))


@pytest.fixture(scope="module")
def inputs(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("inputs")
    made = {name: str(folder / name) for name in ("history", "dataset", "archive")}
    for number, commit in enumerate(("a1", "b2", "c3", "d4")):
        words = (
            "add",
            made["history"],
            _LOW,
            "--commit",
            commit,
            "--date",
            f"2026-01-0{number + 1}",
        )
        done = wbscope.run("history", *words)
        assert done.returncode == 0, done.stderr
    folders = [example(f"four-equal-writers{kernel}").folder for kernel in ("", "-7.2")]
    done = wbscope.run("fleet", "ingest", *folders, "-o", made["dataset"])
    assert done.returncode == 0, done.stderr
    (folder / "archive").write_bytes(sent_archive())
    lab = new_lab(folder / "lab", {"limit": ("low", "high")}, {"low": [1, 2], "high": [3, 4]}, 2)
    return made | {"lab": str(lab), "runs": str(lab / "low"), "run": str(folders[0])}


@pytest.mark.parametrize("name", _FORCED)
def test_force_replaces_what_is_ours(
    wbscope: Wbscope, place: Place, inputs: dict[str, str], tmp_path: Path, name: str
) -> None:
    """Beside a note, a folder, a repository and links; the second time, the first one is there."""
    words, outputs = _FORCED[name]
    folder = tmp_path / "home"
    folder.mkdir()
    before = foreign_files(folder)
    command = [*name.split(), *(w.format(trace=place.source, **inputs) for w in words), "--force"]
    for _ in range(2):
        done = wbscope.run(*command, cwd=folder)
        assert done.returncode in (0, 1, 4), done.stderr
        after = snapshot(folder)
        assert {path: after.get(path) for path in before} == before
        assert {path.split("/")[0] for path in after.keys() - before.keys()} == {*outputs.split()}


@pytest.mark.parametrize("name", ["lab report", "plot", "record", "sql-package"])
def test_files_of_others_in_a_folder_that_is_written_again(
    wbscope: Wbscope, place: Place, inputs: dict[str, str], tmp_path: Path, name: str
) -> None:
    """What somebody has put into a folder that a verb has made."""
    words, _ = _FORCED[name]
    made = {"lab report": "pictures", "plot": ".", "record": "recorded", "sql-package": "package"}
    command = [*name.split(), *(w.format(trace=place.source, **inputs) for w in words), "--force"]
    folder = tmp_path / "home"
    folder.mkdir()
    assert wbscope.run(*command, cwd=folder).returncode == 0
    inside = folder / made[name]
    before = foreign_files(inside)
    theirs = {path for path in before if (inside / path).is_symlink() or path[0] == "."}
    done = wbscope.run(*command, cwd=folder)
    after = snapshot(inside)
    assert theirs
    if name == "record":
        assert (done.returncode, after) == (2, before)
        assert "error[output-exists]: recorded: is a run with other files in it" in done.stderr
        assert (
            "/, .backups1/, .config/, .dangling, .env, .git/, .run.db.wbscope-aaaaaaa/\n"
            in done.stderr
        )
        assert done.stderr.endswith("fix: -o recorded-2\n")
    else:
        assert done.returncode == 0, done.stderr
    assert {path: after.get(path) for path in theirs} == {path: before[path] for path in theirs}


# Names of strangers in what every verb says: none steers a terminal, or the log of a CI job.

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
_NAMING_COMMANDS = {
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
    assert set(_NAMING_COMMANDS) == _verbs(get_command(program()))


@pytest.mark.parametrize("verb", _NAMING_COMMANDS)
def test_names_steer_nothing(
    wbscope: Wbscope, places: dict[str, str], tmp_path: Path, verb: str
) -> None:
    """With exit code 0 or as an error, of a name that is there and of one that is not."""
    failures = []
    for number, command in enumerate(_NAMING_COMMANDS[verb]):
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
