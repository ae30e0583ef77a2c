# SPDX-License-Identifier: Apache-2.0
"""wbscope lab bisect along commits: git chooses them, and the work tree is put back at any end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bisects import Made, bisect, made_runs
from support.waits import GUARD_SECONDS, wait_until

Cli = Callable[..., Any]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    return made_runs(monkeypatch)


class _Sources:
    """A small work tree of git: commit N has the file `latency`; the kernel is a copy of it."""

    build = "cp latency image"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: list[str] = []
        self.git("init", "-q", "-b", "topic")
        self.git("config", "user.name", "Nobody")
        self.git("config", "user.email", "nobody@example.org")
        (folder / ".gitignore").write_text("image\nobject*\n")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words], capture_output=True, text=True, check=True,
            timeout=GUARD_SECONDS,
        )  # fmt: skip
        return done.stdout.strip()

    def add(self, latency: str) -> str:
        (self.folder / "latency").write_text(f"{latency}\n")
        (self.folder / "count").write_text(f"{len(self.commits)}\n")
        self.git("add", ".")
        self.git("commit", "-qm", f"commit {len(self.commits)}, {latency}")
        self.commits.append(self.git("rev-parse", "HEAD"))
        return self.commits[-1]

    @property
    def checked_out(self) -> tuple[str, str, str]:
        """Branch, commit, what is changed or left over."""
        return (
            self.git("rev-parse", "--abbrev-ref", "HEAD"),
            self.git("rev-parse", "HEAD"),
            self.git("status", "--porcelain"),
        )

    @property
    def is_bisecting(self) -> bool:
        return (self.folder / ".git/BISECT_START").exists()


@pytest.fixture
def sources(tmp_path: Path) -> _Sources:
    if shutil.which("git") is None:
        pytest.skip("no git")
    folder = tmp_path / "the sources"
    folder.mkdir()
    return _Sources(folder)


@pytest.fixture
def one(sources: _Sources, tmp_path: Path) -> Path:
    (sources.folder / "image").write_text("10\n")
    path = tmp_path / "one.toml"
    path.write_text('[setup]\nkernel.image = "the sources/image"\nworkload = "true"\n')
    return path


def _along(
    cli: Cli, one: Path, sources: _Sources, *more: object, build: str = _Sources.build
) -> Any:
    ends = ("--good", sources.commits[0][:10], "--bad", "topic")
    words = ("--git", sources.folder, "--build", build, *ends, *more)
    return bisect(cli, one, one.parent / "out", *words)


@pytest.fixture
def series(sources: _Sources) -> _Sources:
    """Twelve commits; from the eighth on it is slow."""
    for number in range(12):
        sources.add("20" if number >= 7 else "10")
    return sources


@pytest.mark.parametrize("is_detached", [False, True])
def test_the_first_bad_commit(
    cli: Cli, made: Made, one: Path, series: _Sources, is_detached: bool
) -> None:
    if is_detached:
        series.git("checkout", "-q", "--detach", series.commits[3])
    before = series.checked_out
    ran = _along(cli, one, series)
    assert ran.code == 0, ran.err
    short = series.git("rev-parse", "--short", series.commits[7])
    assert ran.out.splitlines()[0] == f"first bad: {short} commit 7, 20"
    document = json.loads((one.parent / "out/bisect.json").read_text())
    assert document["first_bad"] == series.commits[7]
    assert document["last_good"] == series.commits[6]
    assert series.checked_out == before
    assert not series.is_bisecting
    # Each kernel is built once, from the right sources.
    built = [line for line in ran.err.splitlines() if line.startswith("building ")]
    assert len(built) == len(set(built))
    for row in document["rows"]:
        assert row["verdict"] == ("bad" if series.commits.index(row["point"]) >= 7 else "good")
    cells = {path.name for path in (one.parent / "out").iterdir() if (path / "run-1").is_dir()}
    assert {series.commits[0][:12], series.commits[-1][:12]} < cells
    made.latencies.clear()
    assert _along(cli, one, series, "--resume").out == ran.out
    assert made.latencies == []


def test_what_does_not_build_or_boot_is_skipped(
    cli: Cli, made: Made, one: Path, sources: _Sources
) -> None:
    """Commits 4 to 6 and what git tries first are none that can be measured."""
    for number in range(12):
        latency = {4: "no number", 5: "13"}.get(number, "20" if number >= 7 else "10")
        sources.add(latency)
    made.fail = (13.0,)
    build = "grep -q '^[0-9]*$' latency && cp latency image"
    ran = _along(cli, one, sources, "--json", build=build)
    assert ran.code == 0, ran.err
    document = ran.document()
    assert document["first_bad"] == sources.commits[7]
    verdicts = {
        sources.commits.index(row["point"]): (row["verdict"], row["why"])
        for row in document["rows"]
    }
    for number, told in ((4, "the build ended with 1: see "), (5, "run 1: the guest died")):
        if number in verdicts:
            assert verdicts[number][0] == "skip"
            assert told in verdicts[number][1]
    assert any(verdict == "skip" for verdict, _ in verdicts.values())
    assert all(verdict != "bad" for number, (verdict, _) in verdicts.items() if number < 7)


def test_only_skipped_ones_are_left(cli: Cli, made: Made, one: Path, sources: _Sources) -> None:
    for latency in ("10", "10", "13", "13", "20", "20"):
        sources.add(latency)
    made.fail = (13.0,)
    before = sources.checked_out
    ran = _along(cli, one, sources, "--json")
    assert ran.code == 4
    document = ran.document()
    assert document["status"] == "range"
    assert document["range"] == [sources.commits[1], sources.commits[4]]
    assert document["why"] == "2 between them could not be judged"
    assert sources.checked_out == before


@pytest.mark.parametrize("build", ["no-such-compiler", "exit 126", "kill -9 $$"])
def test_a_build_that_cannot_be_names_no_commit(
    cli: Cli, made: Made, one: Path, series: _Sources, build: str
) -> None:
    """`git bisect run` would call each of these bad, or end as good."""
    before = series.checked_out
    ran = _along(cli, one, series, "--json", build=build)
    assert (ran.code, ran.error()["slug"]) == (5, "no-build")
    assert made.latencies == []
    assert series.checked_out == before
    assert not series.is_bisecting
    assert not (one.parent / "out/bisect.json").exists()


def test_a_build_that_makes_nothing_is_skipped(
    cli: Cli, made: Made, one: Path, series: _Sources
) -> None:
    ran = _along(cli, one, series, "--json", build="rm -f image")
    assert ran.code == 4
    assert ran.document()["status"] == "unmeasured"
    assert "the build made no " in ran.document()["why"]


def test_one_merge(cli: Cli, made: Made, one: Path, sources: _Sources) -> None:
    """The slow commit is on a branch that was merged."""
    sources.add("10")
    base = sources.add("10")
    sources.git("checkout", "-qb", "side")
    slow = sources.add("20")
    sources.git("checkout", "-q", "topic")
    for number in range(3):
        (sources.folder / f"other-{number}").touch()
        sources.git("add", ".")
        sources.git("commit", "-qm", f"other {number}")
    sources.git("merge", "-q", "--no-edit", "side")
    document = _along(cli, one, sources, "--json").document()
    assert (document["status"], document["first_bad"]) == ("found", slow)
    assert document["last_good"] == base


@pytest.mark.parametrize("number", [3, 14, 20, 32])
def test_ctrl_c_puts_the_checkout_back(
    cli: Cli, made: Made, one: Path, series: _Sources, number: int
) -> None:
    """While the ends, a point, the border are run."""
    before = series.checked_out
    made.interrupt = number
    ran = _along(cli, one, series)
    assert (ran.code, ran.out) == (130, "")
    assert series.checked_out == before
    assert not series.is_bisecting
    made.interrupt = None
    ended = _along(cli, one, series, "--resume", "--json")
    assert ended.document()["first_bad"] == series.commits[7]


def test_after_a_kill_git_knows_the_way_back(
    cli: Cli, made: Made, one: Path, series: _Sources
) -> None:
    """Nothing is put back, and the next start says what to do."""
    before = series.checked_out
    made.kill = 14
    if (child := os.fork()) == 0:
        try:
            _along(cli, one, series)
        finally:
            os._exit(0)  # it was not killed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert series.is_bisecting
    refused = _along(cli, one, series, "--resume", "--json")
    assert (refused.code, refused.error()["slug"]) == (2, "bisecting")
    subprocess.run(["sh", "-c", refused.error()["fix"]], check=True, capture_output=True)
    assert series.checked_out == before


_BUILDING = """
import sys
from pathlib import Path
from wbscope.base.watch import watching
from wbscope.lab.gitsteps import Builds, Repository
from wbscope.lab.kernels import Kernel

def interrupt(*_):
    raise KeyboardInterrupt

import signal
signal.signal(signal.SIGTERM, interrupt)
folder, commit, build, patience = sys.argv[1:]
repository = Repository(Path(folder))
try:
    with watching(lambda error: 1), repository.as_it_was():
        kernel = Kernel(image=folder + "/image")
        folder = Path(folder).parent / "builds"
        Builds(repository, build, kernel, folder, print, float(patience)).of(commit)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_build_before_the_checkout(
    series: _Sources, number: signal.Signals
) -> None:
    """Its children, too, that take their time; and git is slow to put the sources back."""
    beside = series.folder.parent
    (series.folder / ".git/hooks").mkdir(exist_ok=True)
    hook = series.folder / ".git/hooks/post-checkout"
    hook.write_text(
        f"#!/bin/sh\n[ -e {beside}/begun ] || exit 0\n[ -e object ] && touch {beside}/early\n"
        f"touch {beside}/back\nuntil [ -e {beside}/go ]; do sleep 0.02; done\n"
        "sleep 1  # more than a command has that does not hold signals\n"
    )
    hook.chmod(0o755)
    before = series.checked_out
    build = (
        f"(trap 'sleep 0.5; rm object; exit' TERM; sleep {GUARD_SECONDS} &"
        # A shell that has not become sleep yet would forget the signal.
        " until grep -q sleep /proc/$!/comm; do :; done;"
        f" touch object {beside}/begun; wait) & wait"
    )
    words = [str(series.folder), series.commits[2], build, str(GUARD_SECONDS)]
    command = [sys.executable, "-c", _BUILDING, *words]
    with subprocess.Popen(command, start_new_session=True) as started:
        try:
            wait_until((beside / "begun").exists, "the build")
            assert series.git("rev-parse", "HEAD") == series.commits[2]
            started.send_signal(number)
            wait_until((beside / "back").exists, "the checkout")
            started.send_signal(number)  # the impatient
        finally:
            (beside / "go").touch()
        assert started.wait(GUARD_SECONDS) == 130
    assert not (beside / "early").exists()
    assert not (series.folder / "object").exists()
    assert series.checked_out == before


def _changed(sources: _Sources) -> None:
    (sources.folder / "latency").write_text("30\n")


def _bisecting(sources: _Sources) -> None:
    sources.git("bisect", "start")


def _no_work_tree(sources: _Sources) -> None:
    os.rename(sources.folder / ".git", sources.folder / "git")


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("spoil", "words", "slug"),
    [
        (_changed, (), "changed-files"),
        (_bisecting, (), "bisecting"),
        (_no_work_tree, (), "no-repository"),
        (None, ("--bad", "v9.9"), "no-commit"),
        (None, ("--bad", "--all"), "no-commit"),
        (None, ("--good", "topic", "--bad", "topic~3"), "not-before"),
        (None, ("--good", "topic"), "same-commit"),
    ],
)
def test_what_cannot_be_bisected(
    cli: Cli, made: Made, one: Path, series: _Sources,
    spoil: Callable[[_Sources], None] | None, words: Sequence[str], slug: str,
) -> None:  # fmt: skip
    if spoil is not None:
        spoil(series)
    ran = _along(cli, one, series, *words, "--json")
    assert (ran.code, ran.error()["slug"]) == (2, slug)
    assert made.latencies == []
    assert not (one.parent / "out").exists()
    if slug == "changed-files":
        assert (series.folder / "latency").read_text() == "30\n"
    if slug == "bisecting":
        assert series.is_bisecting


def test_commits_want_one_cell(cli: Cli, made: Made, series: _Sources, one: Path) -> None:
    one.write_text(f"{one.read_text()}[axis.size]\na = {{}}\nb = {{}}\n")
    ran = _along(cli, one, series, "--json")
    assert (ran.code, ran.error()["slug"]) == (2, "no-build")
    assert "2 cells" in ran.error()["have"]
