#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the lists of what is installed: every version with the hashes of its files.

usage: make_locks.py [NAME...]     after a change of pyproject.toml; without a name all of them

uv, installed in build/locks, asks the package index. Versions that a list has stay, unless
pyproject.toml wants others; remove the file to have the newest. Exit code 5: it cannot be done.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build/locks"
BUILD = "scikit-build-core>=0.10"  # as pyproject.toml has it
OPTIONS = (
    "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header",
    "--no-annotate", "--no-emit-index-url", "--quiet",
)  # fmt: skip


@dataclass(frozen=True)
class Lock:
    """A list: what it is for, extras of pyproject.toml, and what is wanted besides.

    Without extras (None) it has nothing of pyproject.toml, not even what the base install needs.
    """

    path: str
    purpose: str
    extras: tuple[str, ...] | None
    others: tuple[str, ...] = (BUILD,)
    within: tuple[str, ...] = ()  # lists that it has to agree with


LOCKS = {
    "build": Lock("tools/locks/build.txt", "What builds the package for Debian", None),
    "base": Lock("tools/locks/base.txt", "What comes along in the package for Debian", (), ()),
    "setup": Lock("tools/locks/setup.txt", "What make setup installs besides wbscope", ("all",),
                  within=("tools/locks/base.txt",)),
    "test": Lock(
        "tools/locks/test.txt", "What the tests need", ("test",), within=("tools/locks/setup.txt",)
    ),
    "fleet": Lock(
        "tools/locks/fleet.txt",
        "What tests/fleet needs: Spark, and schemas of Kubernetes",
        ("spark",),
        ("kubernetes-validate>=1.37",),
        ("tools/locks/setup.txt", "tools/locks/test.txt"),
    ),
    "s3": Lock(  # botocore wants an older python-dateutil than the others
        "tools/locks/s3.txt",
        "What serves S3 to tests/fleet, in a place of its own",
        None,
        ("flask", "flask-cors", "moto[s3]>=5.2.5", "waitress>=3"),
    ),
    "release": Lock(
        "tools/locks/release.txt",
        "What builds the wheel, its manual and the sdist",
        (),
        (
            "auditwheel==6.8.2", "build", BUILD, "cyclonedx-python-lib", "wheel==0.47.0",
            "ziglang==0.17.1",
        ),
        ("tools/locks/base.txt", "tools/locks/test.txt"),
    ),
    "ci": Lock(
        "examples/ci/requirements.txt",
        "What examples/ci/install.sh installs besides wbscope",
        ("gate", "plots"),
    ),
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="*", help=f"of {', '.join(LOCKS)}")
    names = parser.parse_args().name or list(LOCKS)
    try:
        install_uv()
        for name in names:
            write(LOCKS[name])
    except (KeyError, OSError, subprocess.CalledProcessError) as error:
        print(f"make_locks: {error}", file=sys.stderr)
        return 5
    return 0


def install_uv() -> None:
    if not (WORK / "bin/uv").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(WORK)], check=True)
        subprocess.run([str(WORK / "bin/pip"), "install", "--quiet", "uv"], check=True)


def write(lock: Lock) -> None:
    """The list, and above it how it was made."""
    path = ROOT / lock.path
    words = [*OPTIONS, *(word for extra in lock.extras or () for word in ("--extra", extra))]
    words += [word for other in lock.within for word in ("--constraint", other)]
    words += ["pyproject.toml"] if lock.extras is not None else []
    subprocess.run(
        [str(WORK / "bin/uv"), "pip", "compile", *words, "-", "-o", lock.path],
        cwd=ROOT, input="\n".join(lock.others), text=True, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    head = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        f"# {lock.purpose}:\n"
        "# every version with its hashes, for Python 3.11 and newer. `make locks` made it with\n"
        f"# uv pip compile {shlex.join(words)}\n"
    )
    listed = "".join(
        f"{line}\n"
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    path.write_text(head + listed, encoding="utf-8")
    print(f"wrote {lock.path}")


if __name__ == "__main__":
    sys.exit(main())
