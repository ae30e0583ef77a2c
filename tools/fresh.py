#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Try make demo and make test on a fresh Debian 12: a minimal root and a clone of HEAD.

What make wheel and make deb build there is then installed in roots that have no compiler,
the wheel in those of other systems, too.

usage: fresh.py [--quick | --packages] [--keep] [--parent FOLDER]
       fresh.py --remove FOLDER     one that --keep left behind

The root is a new folder in FOLDER (build/fresh), its mounts are in a namespace of their own.
The machine's apt, pip and npm settings are handed in. It fails when a step fails, and when a
test is skipped for a reason that tools/fresh_skips.toml does not allow.
Exit code 5: it cannot be tried here; build/fresh/refused says why. Python's library alone.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fresh_packages import PACKAGED
from fresh_settings import environment, hand_in, local_folders, mirror
from fresh_suites import BOOKWORM, ELSEWHERE, Suite

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build/fresh"
MARKER = ".wbscope-fresh"
KEPT = ".kept"
PREFIX = "wbscope-fresh-"
CLONE = "/srv/wbscope"
# What whoever cloned this has: the clone, and how to fetch it.
CLONED_WITH = ("ca-certificates", "git", "make")
# Mounts of its own, which end with it.
APART = ("unshare", "--mount", "--propagation", "private")
SKIPS = ROOT / "tools/fresh_skips.toml"
REFUSED = 75  # fresh_root.sh: a mount was
_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+?)(?::\d+)?: (.*)$", re.MULTILINE)
_ROOT_DAYS = 14
_TAIL = 60
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class CannotTryError(Exception):
    """The machine does not let it be tried; nothing is said about the project."""


class StepError(Exception):
    """A step did not end well."""


@dataclass
class Steps:
    """What was done, and how long it took."""

    took: list[tuple[str, float]] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        print(f"fresh: {name}", flush=True)
        start = time.monotonic()
        try:
            yield
        finally:
            self.took.append((name, time.monotonic() - start))

    def text(self) -> str:
        lines = [f"{seconds:7.0f} s  {name}" for name, seconds in self.took]
        total = sum(seconds for _, seconds in self.took)
        return "\n".join([*lines, f"{total:7.0f} s  in all"])


# Folders: only one's own are removed.


@contextlib.contextmanager
def own_folder(parent: Path, keep: bool) -> Iterator[Path]:
    """A new one; its marker is locked as long as it is in use."""
    folder = make_folder(parent)
    with (folder / MARKER).open("rb") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            if keep:
                (folder / KEPT).touch()


def make_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent.resolve()))
    (folder / MARKER).write_text(f"{folder}\n", encoding="utf-8")
    return folder


def remove_leftovers(parent: Path) -> None:
    """Of runs that were killed: nobody uses them, and nobody wanted to keep them."""
    for folder in sorted(parent.glob(f"{PREFIX}*")):
        if why_not_own(folder) is None and not (folder / KEPT).exists() and not in_use(folder):
            print(f"fresh: removes what a killed run left: {folder}", flush=True)
            remove_folder(folder)


def in_use(folder: Path) -> bool:
    with (folder / MARKER).open("rb") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def why_not_own(folder: Path) -> str | None:
    """None when this program made the folder and nothing is mounted in it."""
    if folder.is_symlink() or not folder.is_dir():
        return "is no folder"
    status = folder.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return f"is not a private folder of user {os.geteuid()}"
    marker = folder / MARKER
    if marker.is_symlink() or not marker.is_file():
        return f"has no {MARKER}"
    if marker.read_text(encoding="utf-8", errors="replace") != f"{folder.resolve()}\n":
        return f"has the {MARKER} of another folder"
    if below := mounts_below(folder.resolve()):
        return f"has a mount in it: {below[0]}"
    return None


def mounts_below(folder: Path, mountinfo: str | None = None) -> list[str]:
    """Mount points in the folder, or the folder itself."""
    if mountinfo is None:
        mountinfo = Path("/proc/self/mountinfo").read_text(
            encoding="utf-8", errors="surrogateescape"
        )
    places = [
        re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split(" ")[4])
        for line in mountinfo.splitlines()
    ]
    return [place for place in places if place == str(folder) or place.startswith(f"{folder}/")]


def remove_folder(folder: Path) -> None:
    """Raises StepError, and removes nothing, where it is not one's own."""
    if reason := why_not_own(folder):
        raise StepError(f"{folder} {reason}: not removed")
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


# Processes: all that was started ends with this one.


def adopt_orphans() -> None:
    """What the steps leave running becomes a child of this process."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children() -> None:
    """Its own, and those that they leave to it."""
    for _ in range(1000):
        for pid in _children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            # The name is in parentheses and may have some itself.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_logged(
    command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
) -> int:
    with log.open("wb") as out:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
            preexec_fn=_die_with_parent, check=False,
        ).returncode  # fmt: skip


def tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:])


# The root.


def check_apart() -> None:
    """A process can have mounts of its own here."""
    try:
        done = subprocess.run([*APART, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotTryError("there is no unshare (Debian: util-linux)") from None
    if done.returncode:
        raise CannotTryError(f"no mount namespace: {done.stderr.strip()}")


def unpack_root(root: Path, suite: Suite) -> None:
    """From the one that was made last, if that is not old; it has nothing of this machine."""
    archive = CACHE / f"{suite.name}-{machine()}.tar"
    if not archive.is_file() or time.time() - archive.stat().st_mtime > _ROOT_DAYS * 86400:
        make_archive(root.with_name("made"), archive, suite)
    root.mkdir()
    log = CACHE / "unpack.log"
    words = ["tar", "-C", str(root), "--numeric-owner", "--xattrs", "-xpf", str(archive)]
    if run_logged(words, log):
        raise CannotTryError(f"the root cannot be unpacked: {tail(log)}")


def machine() -> str:
    done = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def make_archive(root: Path, archive: Path, suite: Suite) -> None:
    if shutil.which("debootstrap") is None:
        raise CannotTryError("debootstrap is not installed")
    log = CACHE / "debootstrap.log"
    if reason := suite.why_not():
        raise CannotTryError(reason)
    options = ["--variant=minbase", f"--include={','.join(CLONED_WITH)}", *suite.words()]
    where = [suite.name, str(root), mirror(suite.name) or suite.mirror, *suite.script_words()]
    if run_logged([*APART, "debootstrap", *options, *where], log):
        subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)
        raise CannotTryError(f"debootstrap found no way: {tail(log).splitlines()[-1:]}, see {log}")
    for name in ("etc/resolv.conf", "etc/hosts", "etc/hostname", "etc/apt/sources.list"):
        (root / name).unlink(missing_ok=True)
    subprocess.run(["chroot", root, "apt-get", "clean"], check=True)
    part = archive.with_suffix(".part")
    subprocess.run(
        ["tar", "-C", root, "--numeric-owner", "--xattrs", "--one-file-system", "-cf", part, "."],
        check=True,
    )
    part.replace(archive)
    subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)


def inside(root: Path, log: Path, *words: str) -> int:
    """The exit code of a command in the clone in the root, with few variables set."""
    places = [
        ("rw", CACHE / "archives", "/var/cache/apt/archives"),
        ("rw", CACHE / "pip", "/var/cache/pip"),
    ]
    for _, folder, _ in places:
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    places += [("ro", Path(folder), folder) for folder in local_folders()]
    text = "\n".join(f"{mode} {source} {target}" for mode, source, target in places)
    command = [*APART, "sh", str(ROOT / "tools/fresh_root.sh"), str(root), text]
    env = {
        "HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8", "PIP_CACHE_DIR": "/var/cache/pip", **environment(),
    }  # fmt: skip
    given = [f"{name}={value}" for name, value in env.items()]
    script = f'cd {CLONE} && exec "$@"'
    code = run_logged([*command, "env", "-i", *given, "sh", "-c", script, "sh", *words], log)
    if code == REFUSED:
        raise CannotTryError(tail(log).splitlines()[-1])
    return code


def clone(root: Path) -> None:
    target = root / CLONE.lstrip("/")
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, target], check=True)
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(["git", "-C", target, "checkout", "--quiet", "--detach", head], check=True)
    changed = subprocess.run(
        ["git", "-C", ROOT, "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    print(f"fresh: {head[:12]}, without {len(changed)} files that are not committed", flush=True)


# What pytest said.


def bad_skips(text: str, allowed: Sequence[str]) -> list[str]:
    """Tests that were skipped for another reason than those."""
    found = []
    for count, place, reason in _SKIPPED.findall(text):
        reason = reason.removeprefix("Skipped: ").strip()
        if not any(re.fullmatch(pattern, reason) for pattern in allowed):
            found.append(f"{count} x {place}: {reason}")
    return found


def allowed_skips() -> list[str]:
    with SKIPS.open("rb") as file:
        return [entry["reason"] for entry in tomllib.load(file)["skip"]]


def failed_tests(text: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) .*$", text, re.MULTILINE)


def try_all(folder: Path, quick: bool, packages: bool, steps: Steps) -> None:
    root = folder / "root"
    with steps.step(f"a minimal root of {BOOKWORM.title} and a clone"):
        new_root(root)
        clone(root)
    if packages:
        try_packages(root, steps)
        return
    with steps.step("make demo"):
        make(root, "demo")
    with steps.step("make programs: of the package lists that make test installs"):
        make(root, "programs", "LISTS=DEBS TEST_DEBS")
    if quick:
        return
    # One may fail for what is not finished; the other two tell about packages all the same.
    said = []
    with steps.step("make test"):
        said += run_tests(root)
    with steps.step("make programs: of every package list"):
        try:
            make(root, "programs")
        except StepError as error:
            said.append(str(error))
    try:
        try_packages(root, steps)
    except StepError as error:
        said.append(str(error))
    if said:
        raise StepError("\n".join(said))


def new_root(root: Path, suite: Suite = BOOKWORM) -> None:
    """The system's minimum with this machine's way to its registries."""
    unpack_root(root, suite)
    hand_in(root, suite)


def try_packages(root: Path, steps: Steps) -> None:
    """Build the wheel and the .deb in this root; install each in one of its own."""
    for goal, pattern, script in PACKAGED:
        with steps.step(f"make {goal}"):
            make(root, goal)
        built = sorted((root / CLONE.lstrip("/") / "build/dist").glob(pattern))
        if len(built) != 1:
            raise StepError(f"make {goal} made {len(built)} files {pattern}, wanted 1")
        install(built[0], root.with_name(goal), script, steps)
        for suite in ELSEWHERE if goal == "wheel" else ():
            try:
                install(built[0], root.with_name(suite.name), script, steps, suite)
            except CannotTryError as error:
                print(f"fresh: {suite.title} was not tried: {error}", flush=True)


def install(built: Path, root: Path, script: str, steps: Steps, suite: Suite = BOOKWORM) -> None:
    """In a root without a compiler, and ask it what its users would."""
    with steps.step(f"install {built.name} on {suite.title} without a compiler, and wbscope demo"):
        new_root(root, suite)
        place = root / CLONE.lstrip("/")
        place.mkdir(parents=True)
        shutil.copy2(built, place)
        log = CACHE / f"install-{suite.name}-{built.suffix[1:]}.log"
        if code := inside(root, log, "bash", "-eux", "-c", script, "bash", built.name):
            raise StepError(f"{tail(log)}\n{built.name}: exit code {code}, see {log}")
        print(tail(log), flush=True)


def run_tests(
    root: Path, log: Path = CACHE / "test.log", run: Callable[..., object] = inside
) -> list[str]:
    """What is wrong; the tests in tests/live are run too when one before them fails."""
    run(root, log, "make", "-i", "test")
    text = log.read_text(encoding="utf-8", errors="replace")
    said = failed_tests(text)
    # "Error 1 (ignored)", and "Terminated (ignored)" of what a signal ended.
    said += re.findall(r"^make\S* .*(?:Error \d+|\(ignored\)).*$", text, re.MULTILINE)
    if " passed" not in text:
        said.append(f"{tail(log)}\nno test was run")
    if bad := bad_skips(text, allowed_skips()):
        said += ["skipped, and not for a reason that is allowed:", *bad]
    return [*said, f"see {log}"] if said else []


def make(root: Path, goal: str, *settings: str) -> Path:
    log = CACHE / f"{goal}.log"
    if code := inside(root, log, "make", goal, *settings):
        raise StepError(f"{tail(log)}\nmake {goal} ended with exit code {code}, see {log}")
    return log


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without make test")
    parser.add_argument("--packages", action="store_true", help="only the wheel and the .deb")
    parser.add_argument("--keep", action="store_true", help="do not remove the root")
    parser.add_argument("--parent", type=Path, default=CACHE, help="where the root is made")
    parser.add_argument("--remove", type=Path, metavar="FOLDER", help="one that --keep left")
    arguments = parser.parse_args()
    if arguments.remove is not None:
        try:
            remove_folder(arguments.remove)
        except StepError as error:
            print(f"fresh: {error}", file=sys.stderr)
            return 1
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    refused = CACHE / "refused"
    refused.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    steps, folder = Steps(), None
    try:
        if os.geteuid() != 0:
            raise CannotTryError(f"mounts need root, this is uid {os.geteuid()}")
        check_apart()
        with (CACHE / "lock").open("wb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CannotTryError(f"another one is running: {lock.name} is locked") from None
            adopt_orphans()
            remove_leftovers(arguments.parent)
            with own_folder(arguments.parent, arguments.keep) as folder:
                try_all(folder, arguments.quick, arguments.packages, steps)
    except CannotTryError as error:
        refused.write_text(f"{error}\n", encoding="utf-8")
        print(f"fresh: cannot be tried here: {error}", file=sys.stderr)
        return 5
    except StepError as error:
        print(f"fresh: {error}", file=sys.stderr)
        return 1
    finally:
        end_children()
        if folder is not None and not arguments.keep:
            with steps.step("remove it"):
                remove_folder(folder)
        elif folder is not None:
            print(f"fresh: kept; remove it by: tools/fresh.py --remove {folder}")
        print(steps.text(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
