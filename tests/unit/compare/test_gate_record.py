# SPDX-License-Identifier: Apache-2.0
"""`wbscope gate --record`, with places that make no guest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bisects import Made, made_runs
from support.cli import check_error
from support.labs import METRIC

Cli = Callable[..., Any]

_MATRIX = """
runs = 1
[setup]
kernel.folder = "."
workload = "true"
[axis.limit]
old = {{ sysctl = {{ "vm.dirty_bytes" = {old} }} }}
new = {{ sysctl = {{ "vm.dirty_bytes" = {new} }} }}
"""
_POLICY = f"""
[metrics."{METRIC}"]
margin = "5%"
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return made_runs(monkeypatch)


def _gate(cli: Cli, folder: Path, old: float, new: float, *words: object) -> Any:
    (folder / "matrix.toml").write_text(_MATRIX.format(old=old, new=new))
    (folder / "gate.toml").write_text(_POLICY)
    return cli(
        "gate", "--policy", folder / "gate.toml", "--record", folder / "matrix.toml",
        "--runs-in", folder / "runs", *words,
    )  # fmt: skip


def test_runs_are_made_in_turns_until_it_is_decided(cli: Cli, tmp_path: Path, made: Made) -> None:
    ran = _gate(cli, tmp_path, 100, 130)
    assert ran.code == 1, ran.err
    assert "6, 9, 14, 24 runs" in ran.err
    assert "6 + 6 runs: FAIL" in ran.err
    assert "1 of 4 planned looks were made" in ran.out
    assert len(made.latencies) == 12
    pairs = [sorted(made.latencies[at : at + 2]) for at in range(0, 12, 2)]
    assert pairs == [[100.0, 130.0]] * 6
    names = sorted(str(p.relative_to(tmp_path / "runs")) for p in tmp_path.glob("runs/*/run-*"))
    assert names == [f"{cell}/run-{n}" for cell in ("new", "old") for n in range(1, 7)]
    # One start of the command is one session.
    metas = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/run-*/meta.json")]
    assert len({meta["lab"]["session"] for meta in metas}) == 1


def test_the_base_can_be_named(cli: Cli, tmp_path: Path, made: Made) -> None:
    assert _gate(cli, tmp_path, 100, 130, "--against", "new", "--quiet").code == 0


def test_a_second_command_goes_on(cli: Cli, tmp_path: Path, made: Made) -> None:
    """What the first one made is taken as it is; more runs are more sessions, in turns."""
    assert _gate(cli, tmp_path, 100, 100, "--max-runs", 3).code == 4
    again = _gate(cli, tmp_path, 100, 100)
    assert again.code == 2
    check_error(again.err, "output-exists", "--resume")
    assert _gate(cli, tmp_path, 100, 100, "--resume", "--json").document()["status"] == "PASS"
    assert len(made.latencies) == 12


def test_a_run_that_fails_is_no_run_less(cli: Cli, tmp_path: Path, made: Made) -> None:
    made.fail = (130.0,)
    ran = _gate(cli, tmp_path, 100, 130)
    assert ran.code == 5
    check_error(ran.err, "runs-failed", "6 runs", "new/run-1: the guest died", "--resume")
    assert ran.out == ""
    bisecting = _gate(cli, tmp_path, 100, 130, "--resume", "--exit-codes", "bisect")
    assert bisecting.code == 128 + 5


@pytest.mark.parametrize(
    ("words", "slug", "fact"),
    [
        (("runs",), "two-ways", ""),
        (("--self-check",), "two-ways", ""),
        (("--baseline", "b.json"), "two-ways", ""),
        (("--against", "old", "new"), "two-ways", ""),
        (("--against", "olde"), "unknown-cell", "olde"),
        (("--max-runs", "0"), "bad-count", "1 to 1000"),
    ],
)
def test_wrong_words(
    cli: Cli, tmp_path: Path, made: Made, words: tuple[str, ...], slug: str, fact: str
) -> None:
    ran = _gate(cli, tmp_path, 100, 130, *words)
    assert (ran.code, ran.out, made.latencies) == (2, "", [])
    check_error(ran.err, slug, fact)


def test_no_policy_and_three_cells(cli: Cli, tmp_path: Path, made: Made) -> None:
    path = tmp_path / "m.toml"
    path.write_text(_MATRIX.format(old=1, new=2) + "third = {}\n")
    ran = cli("gate", "--record", path)
    assert ran.code == 2
    check_error(ran.err, "no-policy")
    (tmp_path / "gate.toml").write_text(_POLICY)
    ran = cli("gate", "--record", path, "--policy", tmp_path / "gate.toml")
    assert ran.code == 2
    check_error(ran.err, "not-two-cells", path, "3 cells")
