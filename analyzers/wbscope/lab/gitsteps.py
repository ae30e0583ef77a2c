# SPDX-License-Identifier: Apache-2.0
"""`git bisect` with verdicts of a judge: git chooses the commits, and hears good, bad or skip.

No `git bisect run`: there a program that is missing, or a crash with exit code 1, would call a
commit bad.  Here whatever is no verdict ends the bisection, and names no commit.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import private_folder
from wbscope.base.system import dying_with_us
from wbscope.lab.bisect import Broken, Found, Status, ending, no_series
from wbscope.lab.judging import Confirmed, Judge, Spent, Test
from wbscope.lab.kernels import Kernel
from wbscope.record.workload import Interrupts

_FIRST_BAD = re.compile(r"^([0-9a-f]{40,64}) is the first '?bad'? commit", re.M)
_ONLY_SKIPPED = "There are only 'skip'ped commits left to test"
_COMMIT = re.compile(r"^[0-9a-f]{40,64}$", re.M)
# A shell's words for a program that is missing, or that it may not run.
_NO_PROGRAM = (126, 127)
# What a compiler takes to end when it is asked to.
_GRACE_SECONDS = 10
_LOOK_SECONDS = 0.05


@dataclass
class Repository:
    """A git work tree with the sources."""

    folder: Path
    _interrupts: Interrupts | None = field(default=None, repr=False)

    @property
    def quoted(self) -> str:
        """As a shell takes it."""
        return shlex.quote(str(self.folder))

    def git(self, *words: str, allowed: tuple[int, ...] = ()) -> str:
        """Raises: SetupError with what git said, unless it ended with one of these codes."""
        try:
            # To its end, whatever signals come: half a checkout could not be put back.
            with nullcontext() if self._interrupts is None else self._interrupts.held():
                done = subprocess.run(
                    ["git", "-C", str(self.folder), *words], env=dict(os.environ, LC_ALL="C"),
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                    start_new_session=True, check=False,
                )  # fmt: skip
        except FileNotFoundError as error:
            raise SetupError(
                "missing-program", "git", "is not installed", fix="apt install git"
            ) from error
        if done.returncode and done.returncode not in allowed:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing"]
            raise SetupError(
                "git-failed", str(self.folder), f"git {words[0]} said: {said[-1]}",
                fix=f"git -C {self.quoted} status    # shows what is wrong",
            )  # fmt: skip
        return done.stdout

    def require(self) -> None:
        """Raises: UsageError where it is no work tree."""
        inside = self.git("rev-parse", "--is-inside-work-tree", allowed=(128,))
        if inside.strip() != "true":
            raise UsageError(
                "no-repository", str(self.folder), "is no work tree of git",
                fix=f"git -C {self.quoted} status    # says why",
            )  # fmt: skip

    def commit(self, name: str) -> str:
        """The full name.  Raises: UsageError where there is none."""
        found = self.git("rev-parse", "-q", "--verify", f"{name}^{{commit}}", allowed=(1, 128))
        if _COMMIT.fullmatch(found.strip()) is None:
            raise UsageError(
                "no-commit", name, f"is no commit of {self.folder}",
                fix=f"git -C {self.quoted} log --oneline -5    # shows some",
            )  # fmt: skip
        return found.strip()

    def head(self) -> tuple[str, ...]:
        """What is checked out, as checkout takes it: a branch, or a commit without one."""
        branch = self.git("symbolic-ref", "-q", "--short", "HEAD", allowed=(1,)).strip()
        return (branch,) if branch else ("--detach", self.commit("HEAD"))

    def title(self, commit: str) -> str:
        """Short name and subject."""
        return self.git("log", "-1", "--pretty=%h %s", commit).strip()

    def check(self, good: str, bad: str) -> int:
        """How many commits are between the two, the bad one included.

        Raises: UsageError, SetupError where nothing can be bisected here.
        """
        where = str(self.folder)
        if self.git("status", "--porcelain", "--untracked-files=no"):
            raise UsageError(
                "changed-files", where, "has changes that are not committed",
                fix=f"git -C {self.quoted} stash    # then again; git stash pop puts them back",
            )  # fmt: skip
        started = self.git("rev-parse", "--git-path", "BISECT_START").strip()
        if (self.folder / started).exists():
            raise UsageError(
                "bisecting", where, "is in a bisection already",
                fix=f"git -C {self.quoted} bisect reset",
            )  # fmt: skip
        if self.git("rev-list", "-1", good, f"^{bad}").strip():
            raise UsageError(
                "not-before", good, f"is no ancestor of {bad}",
                fix=f"git -C {self.quoted} merge-base {good[:12]} {bad[:12]}    # names one",
            )  # fmt: skip
        count = int(self.git("rev-list", "--count", f"{good}..{bad}"))
        if count == 0:
            raise UsageError(
                "same-commit", good, "is the bad commit, too",
                fix=f"git -C {self.quoted} log --oneline    # names older ones",
            )  # fmt: skip
        return count

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Whatever happens in it, the same branch is checked out afterwards."""
        before = self.head()
        with Interrupts() as self._interrupts:
            try:
                yield
            finally:
                self._interrupts.hold()
                # Where no bisection goes on, the first does nothing.
                self.git("bisect", "reset", before[-1])
                self.git("checkout", "-q", *before)


@dataclass
class Builds:
    """Kernels by commit, built in the work tree and copied, so that runs can be made in turns."""

    repository: Repository
    command: str
    kernel: Kernel
    folder: Path
    told: Callable[[str], None]
    grace_seconds: float = _GRACE_SECONDS

    def of(self, commit: str) -> Kernel:
        """Raises: Broken where it does not build, SetupError where nothing would."""
        kept = self.folder / commit
        if not kept.is_dir():
            self._build(commit, kept)
        return _moved(self.kernel, kept)

    def _build(self, commit: str, kept: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.repository.head()
        is_there = self.repository.commit("HEAD") == commit
        if not is_there:
            self.repository.git("checkout", "-q", "--detach", commit)
        try:
            self.told(f"building {self.repository.title(commit)}")
            log = self.folder / f"{commit}.log"
            code = self._run(log)
            if code in _NO_PROGRAM or code < 0:
                raise SetupError(
                    "no-build", self.command, f"ended with {code}, which is no fault of a commit",
                    at=str(log),
                    fix=f"cd {self.repository.quoted} && {self.command}    # until it builds",
                )  # fmt: skip
            if code:
                raise Broken(f"the build ended with {code}: see {log}")
            _keep(self.kernel, kept)
        finally:
            if not is_there:
                self.repository.git("checkout", "-q", *before)

    def _run(self, log: Path) -> int:
        """Its exit code; on a signal all that it started ends first."""
        with log.open("wb") as said:
            build = subprocess.Popen(
                ["sh", "-c", self.command], cwd=self.repository.folder, stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=dying_with_us(),
            )  # fmt: skip
        try:
            return build.wait()
        except BaseException:
            _end_group(build, self.grace_seconds)
            raise


def _end_group(leader: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Nothing of it may write to the work tree when the next commit is checked out."""
    deadline = time.monotonic() + grace_seconds
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGTERM)
        # make takes away what is half made; who began it all may be gone before.
        while time.monotonic() < deadline:
            leader.poll()
            os.killpg(leader.pid, 0)
            time.sleep(_LOOK_SECONDS)
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()


def git_search(
    repository: Repository, judge: Judge[str], told: Callable[[Test[str]], None]
) -> Found[str]:
    """From the judge's good end to its bad one.

    Raises: SetupError; no commit is named then.
    """
    tests: list[Test[str]] = []
    last_good, first_bad = judge.good, judge.bad
    ends = None

    def end(status: Status, why: str, border: Confirmed | None = None) -> Found[str]:
        return Found(status, last_good, first_bad, tuple(tests), judge.counted, ends, border, why)

    try:
        ends = judge.ends()
        if not ends.is_worse:
            return end(no_series(ends), ends.why)
        said = repository.git("bisect", "start", judge.bad, judge.good)
        while (found := _FIRST_BAD.search(said)) is None:
            if _ONLY_SKIPPED in said:
                left = len(_COMMIT.findall(said))
                return end(*ending(judge, last_good, first_bad, left - 1))
            if not judge.may_test:
                return end("range", "too many commits could not be judged")
            test = judge.test(repository.commit("HEAD"))
            tests.append(test)
            told(test)
            last_good = test.point if test.verdict == "good" else last_good
            first_bad = test.point if test.verdict == "bad" else first_bad
            # 2: only skipped ones are left.
            said = repository.git("bisect", test.verdict, allowed=(2,))
        first_bad = found[1]
        last_good = repository.commit(f"{first_bad}^")
        return end(*ending(judge, last_good, first_bad, 0))
    except Spent as spent:
        return end("spent", str(spent))


def _keep(kernel: Kernel, kept: Path) -> None:
    """Copies what was built; whole or not at all."""
    with private_folder(kept) as work:
        made = work / "kernel"
        made.mkdir()
        try:
            if kernel.folder is not None:
                shutil.copytree(kernel.folder, made / "folder", symlinks=True)
            if kernel.image is not None:
                shutil.copy(kernel.image, made / "image")
            if kernel.modules is not None:
                shutil.copytree(kernel.modules, made / "modules", symlinks=True)
        except FileNotFoundError as error:
            raise Broken(f"the build made no {error.filename}") from error
        os.replace(made, kept)


def _moved(kernel: Kernel, kept: Path) -> Kernel:
    return replace(
        kernel,
        folder=None if kernel.folder is None else str(kept / "folder"),
        image=None if kernel.image is None else str(kept / "image"),
        modules=None if kernel.modules is None else str(kept / "modules"),
    )
