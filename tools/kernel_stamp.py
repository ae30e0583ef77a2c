#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Were these kernel patches tested?  kernel-tracepoints/tested says which ones were.

usage: kernel_stamp.py --check | --write

`make kernel-test` writes the file when all of it passed; CI runs that test when the
patches or the kernel's configuration are others than those in the file.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import sys
from pathlib import Path

_TOP = Path(__file__).resolve().parents[1] / "kernel-tracepoints"
_FOLDERS = ("series", "kconfig")
_FILE = _TOP / "tested"
_NONE = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument(
        "--check", action="store_true", help="exit code 1 when others were, 3 when none was"
    )
    choice.add_argument("--write", action="store_true", help="note that these were")
    found = patches_hash()
    if parser.parse_args().write:
        today = datetime.datetime.now(tz=datetime.UTC).date()
        _FILE.write_text(f"sha256 {found}\ndate {today}\n", encoding="utf-8")
        return 0
    noted = _noted()
    if noted.get("sha256") == found:
        print(f"the kernel patches are those that passed make kernel-test on {noted['date']}")
        return 0
    if not noted:
        print("make kernel-test did not pass in one go yet", file=sys.stderr)
        return _NONE
    print("the kernel patches changed since make kernel-test passed", file=sys.stderr)
    return 1


def patches_hash(top: Path = _TOP) -> str:
    """Of the names and contents of all patches and configurations."""
    total = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            if path.is_file():
                total.update(f"{path.relative_to(top)}\0".encode())
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _noted() -> dict[str, str]:
    if not _FILE.exists():
        return {}
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


if __name__ == "__main__":
    sys.exit(main())
