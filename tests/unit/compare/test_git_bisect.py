# SPDX-License-Identifier: Apache-2.0
"""`git bisect run` with the gate's exit codes: it blames the right commit, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.opsruns import ops_runs

Cli = Callable[..., Any]

_POLICY = '[metrics."ops.stall_ns"]\nmargin = "5%"\n'
_NEAR = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
_WIDE = (0.0, 5.0, -4.0, 6.0, -5.0, 3.0)


def _git(folder: Path, *words: str) -> str:
    # Without what a hook of another repository around this test has set.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder, env=kept, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Eight commits with how long a run takes; runs of the first one beside it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    for number in range(1, 9):
        (folder / "seconds").write_text(f"{12 if number > 5 else 10}\n")
        (folder / "number").write_text(f"{number}\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", f"change {number}")
    ops_runs(tmp_path / "base", [10 + step for step in _NEAR])
    (tmp_path / "gate.toml").write_text(_POLICY)
    return folder


def _script(folder: Path, spread: dict[int, tuple[float, ...]], gate: str) -> Path:
    """Makes runs of the commit that is checked out, and judges them."""
    script = folder.parent / "script.py"
    script.write_text(
        f"""
import shutil, subprocess, sys
from pathlib import Path
here = Path({str(folder)!r})
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from support.opsruns import ops_runs
number = int((here / "number").read_text())
seconds = float((here / "seconds").read_text())
runs = here.parent / "runs"
shutil.rmtree(runs, ignore_errors=True)
ops_runs(runs, [seconds + 0.003 + x for x in {spread!r}.get(number, {_NEAR!r})], later=number * 60)
sys.exit(subprocess.call([sys.executable, "-m", "wbscope", "gate", "--policy", {gate!r},
    str(runs), "--against", str(here.parent / "base"), "--exit-codes", "bisect"]))
"""
    )
    return script


def _bisected(repository: Path, spread: dict[int, tuple[float, ...]], gate: str) -> str:
    first = _git(repository, "rev-list", "--max-parents=0", "HEAD").strip()
    _git(repository, "bisect", "start", "HEAD", first)
    script = _script(repository, spread, gate)
    return _git(repository, "bisect", "run", sys.executable, str(script))


def test_it_finds_the_commit(repository: Path) -> None:
    told = _bisected(repository, {}, str(repository.parent / "gate.toml"))
    assert "is the first bad commit" in told, told
    assert "change 6" in told.partition("first bad commit")[2]


def test_a_commit_that_nobody_knows_of_is_skipped(repository: Path) -> None:
    """Runs of two commits are all over the place: git names what is left, and blames none."""
    wild = dict.fromkeys((4, 5), _WIDE)
    told = _bisected(repository, wild, str(repository.parent / "gate.toml"))
    assert "INCONCLUSIVE" in told
    assert "We cannot bisect more" in told
    assert "is the first bad commit" not in told


def test_an_error_ends_the_bisection(repository: Path) -> None:
    told = _bisected(repository, {}, str(repository.parent / "no-such.toml"))
    assert "first bad commit" not in told
    assert "exit code 131" in told


def test_exit_codes(cli: Cli, tmp_path: Path) -> None:
    policy = tmp_path / "gate.toml"
    policy.write_text(_POLICY)
    base = ops_runs(tmp_path / "base", [10 + step for step in _NEAR])
    sides = {
        "same": ([10.003 + step for step in _NEAR], 0),
        "worse": ([12 + step for step in _NEAR], 1),
        "wild": ([10 + step for step in _WIDE], 125),
    }
    words = ("--policy", policy, "--against", base, "--exit-codes", "bisect")
    for place, (name, (values, code)) in enumerate(sides.items(), 1):
        ops_runs(tmp_path / name, values, later=place * 60)
        assert cli("gate", tmp_path / name, *words).code == code
    # What CI may call a pass is no good commit.
    wild = cli("gate", tmp_path / "wild", *words, "--inconclusive", "pass")
    assert wild.code == 125
    assert cli("gate", base, *words).code == 128 + 4
    assert cli("gate", tmp_path / "none", *words).code == 128 + 3
    assert cli("gate", base, "--no-such", *words).code == 128 + 2
    assert cli("gate", base, "--exit-codes=bisect").code == 128 + 2
    assert cli("gate", base, "--policy", policy, "--no-such").code == 2


_MADE_RUNS = """#!{python}
import sys
sys.path.insert(0, {tests!r})
import pytest
from support.bisects import made_runs
from wbscope.cli.main import main
made_runs(pytest.MonkeyPatch())
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("build", "is_blamed"),
    [
        ("cp seconds image", True),
        ("grep -qv '^4$' number && cp seconds image", True),  # that one is skipped
        ("no-such-compiler", False),
    ],
    ids=["good", "one", "none"],
)
def test_the_command_for_what_lab_bisect_did(
    cli: Cli, repository: Path, build: str, is_blamed: bool
) -> None:
    """`lab bisect --git` is gone, and names this one: here no guest makes the runs."""
    beside = repository.parent
    (beside / "good").write_text("10\n")
    (beside / "gate.toml").write_text(
        'differs = ["kernel"]\n[metrics."ops.latency_ns"]\nmargin = "10%"\n'
    )
    matrix = beside / "a matrix.toml"
    matrix.write_text(
        '[setup]\nworkload = "true"\n[axis.kernel]\ngood = { kernel.image = "good" }\n'
        'built = { kernel.image = "repository/image" }\n'
    )
    wbscope = beside / "bin/wbscope"
    wbscope.parent.mkdir()
    tests = Path(__file__).resolve().parents[2]
    wbscope.write_text(_MADE_RUNS.format(python=sys.executable, tests=str(tests)))
    wbscope.chmod(0o755)
    words = ("--git", repository, "--build", build, "--good", "HEAD~7", "--bad", "HEAD")
    metric = ("--metric", "ops.latency_ns")
    told = cli("lab", "bisect", matrix, *metric, *words, "-o", beside / "out", "--json")
    assert (told.code, told.error()["slug"]) == (2, "removed-option")
    search = {**os.environ, "PATH": f"{wbscope.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", told.error()["fix"]], env=search, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == is_blamed, done.stdout + done.stderr
    blamed = "change 6" in done.stdout.partition("is the first bad commit")[2]
    assert blamed == is_blamed, done.stdout + done.stderr
