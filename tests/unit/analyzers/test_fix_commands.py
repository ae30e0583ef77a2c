# SPDX-License-Identifier: Apache-2.0
"""Fixes that write files, or are lines for a shell: each is run as it was printed, and works."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.tools import run, wbscope_path

RUN = example("four-equal-writers").folder
BASELINE = REPOSITORY / "examples/gate/before.json"
PERF_TEXT = REPOSITORY / "tests/data/text/perf-6.1-ns.txt"


@pytest.mark.parametrize(
    ("words", "wanted", "starts"),
    [
        (("report", "TRACE", "--html"), ("report", "TRACE", "-o", "report.html"), b"<!doctype"),
        (
            ("report", "TRACE", "--html", "a.html"),
            ("report", "TRACE", "-o", "a.html"),
            b"<!doctype",
        ),
        (("report", "TRACE", "--format", "md"), ("report", "TRACE", "-o", "report.md"), b"# "),
        (("timeline", "TRACE"), ("timeline", "TRACE", "-o", "a.pftrace"), b"\x0a"),
        (("convert", "TRACE"), ("convert", "TRACE", "-o", "a.pftrace"), b"\x0a"),
        (("export", "TRACE"), ("export", "TRACE", "--parquet", "answers"), b""),
    ],
)
def test_a_fix_that_writes(
    wbscope: Wbscope,
    tmp_path: Path,
    words: tuple[str, ...],
    wanted: tuple[str, ...],
    starts: bytes,
) -> None:
    (tmp_path / "a.dat").symlink_to(RUN / "trace.dat")
    done = wbscope.run(*_named(words, "a.dat"), cwd=tmp_path)
    assert (done.returncode, "error[usage]: " in done.stderr) == (2, True), done.stderr
    assert f"  fix: wbscope {' '.join(_named(wanted, 'a.dat'))}\n" in done.stderr
    good = wbscope.run(*_named(wanted, "a.dat"), cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    made = tmp_path / wanted[-1]
    assert any(made.iterdir()) if made.is_dir() else made.read_bytes().lower().startswith(starts)


def _named(words: tuple[str, ...], trace: str) -> list[str]:
    return [trace if word == "TRACE" else word for word in words]


def in_shell(wbscope: Wbscope, folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """What a user typed or pasted."""
    path = f"{wbscope_path().parent}:{wbscope.env['PATH']}"
    return run(["bash", "-c", command], cwd=folder, env={**wbscope.env, "PATH": path})


def put_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_a_pipe_of_the_shell(wbscope: Wbscope, tmp_path: Path) -> None:
    """What it was is not to be known; the rest of the command line stays."""
    (tmp_path / "a.gz").write_bytes(gzip.compress((RUN / "trace.dat").read_bytes(), 1))
    done = in_shell(wbscope, tmp_path, "wbscope explain <(zcat a.gz) --short")
    assert (done.returncode, "error[not-a-run]: /dev/fd/" in done.stderr) == (3, True)
    fix = "COMMAND | wbscope explain - --short"
    assert f"  fix: {fix}\n" in done.stderr
    good = in_shell(wbscope, tmp_path, fix.replace("COMMAND", "zcat a.gz"))
    assert (good.returncode, "To do:" in good.stdout) == (0, True), good.stderr


def test_an_address(wbscope: Wbscope, tmp_path: Path) -> None:
    """A curl of ours stands for the net."""
    trace = RUN / "trace.dat"
    url = "https://example.org/a.dat?x=1&y=2"
    done = wbscope.run("query", "fairness", url, "--json")
    told = json.loads(done.stderr)["error"]
    assert told["fix"] == f"curl -L '{url}' | wbscope query fairness - --json"
    put_program(tmp_path / "curl", f"test \"$*\" = '-L {url}' && cat {trace}")
    good = in_shell(wbscope, tmp_path, f"PATH=.:$PATH; {told['fix']}")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["rows"] == wbscope.query("fairness", trace)


def test_a_matrix_that_there_is_not(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("lab", "nosuch.toml", cwd=tmp_path)
    assert (done.returncode, "error[no-matrix]: nosuch.toml" in done.stderr) == (3, True)
    fix = done.stderr.partition("  fix: ")[2]
    assert in_shell(wbscope, tmp_path, fix).returncode == 0
    good = wbscope.run("lab", "nosuch.toml", "--list", cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert len(good.stdout.splitlines()) == 12  # 6 runs of 2 cells


def test_a_policy_that_there_is_not(wbscope: Wbscope, tmp_path: Path) -> None:
    words = ("gate", "--policy", "nosuch.toml", BASELINE, "--self-check")
    done = wbscope.run(*words, cwd=tmp_path)
    assert (done.returncode, "error[no-policy]: nosuch.toml" in done.stderr) == (3, True)
    assert in_shell(wbscope, tmp_path, done.stderr.partition("  fix: ")[2]).returncode == 0
    judged = wbscope.run(*words, cwd=tmp_path)
    assert judged.returncode in (0, 4), judged.stderr  # a verdict, whichever
    assert "throttle_summary.pause_p99_ns" in judged.stdout


def test_a_commit_that_git_cannot_tell(wbscope: Wbscope, tmp_path: Path) -> None:
    (tmp_path / "a.dat").symlink_to(RUN / "trace.dat")
    done = wbscope.run("history", "add", "h.db", "a.dat", cwd=tmp_path)
    assert (done.returncode, "error[no-commit]" in done.stderr) == (2, True), done.stderr
    fix = "wbscope history add h.db a.dat --commit abc1234 --date 2026-11-03"
    assert f"  fix: {fix}\n" in done.stderr
    good = wbscope.run(*fix.split()[1:], cwd=tmp_path)
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "h.db").exists()


@pytest.mark.parametrize("magic", [b"PERFILE2", b"2ELIFREP"])
def test_a_file_of_perf(wbscope: Wbscope, tmp_path: Path, magic: bytes) -> None:
    """A perf of ours stands for the real one: it prints what that printed of a recording."""
    (tmp_path / "it's.data").write_bytes(magic + bytes(96))
    done = wbscope.run("query", "event_counts", "it's.data", "--json", cwd=tmp_path)
    told = json.loads(done.stderr)["error"]
    assert (told["slug"], "perf.data" in told["message"]) == ("not-a-run", True)
    says = f'test "$*" = "script -i it\'s.data --ns" && cat {PERF_TEXT}'
    put_program(tmp_path / "perf", says)
    good = in_shell(wbscope, tmp_path, f"PATH=.:$PATH; {told['fix']}")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout)["rows"] == wbscope.query("event_counts", PERF_TEXT)
