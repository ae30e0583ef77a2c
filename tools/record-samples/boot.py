#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boot a fetched kernel in QEMU, run a scenario in it, bring its /out back.

usage: boot.py ARCH DIR SCENARIO OUT     ARCH, DIR: as given to fetch
env:   SMP=2 MEM=768 LIMIT=280 (seconds)  MODULES="more kernel modules"  APPEND="kernel options"
       FILES="files to be found in the guest's /files"  CPU="QEMU's -cpu"
       DRIVES="words behind -drive, one for each disk"
needs: QEMU of the architecture, kmod, cpio; run it by .venv/bin/python
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from wbscope.lab.emulator import machine_of
from wbscope.lab.guest import run_scenario
from wbscope.lab.kernels import image_in

# Debian's names.
_NAMES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64el": "ppc64le"}


def main() -> int:
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    arch, folder, scenario, out = sys.argv[1], *map(Path, sys.argv[2:])
    given = [Path(name) for name in os.environ.get("FILES", "").split()]
    common = scenario.parent / "common.sh"
    text = scenario.read_text()
    if common.exists():
        given.append(common)
        text = f"ln -s /lab/common.sh /common.sh\n{text}"
    why = run_scenario(
        image_in(folder / "kernel"),
        text,
        out,
        start=folder / "root",
        machine=machine_of(_NAMES.get(arch, arch)),
        drives=os.environ.get("DRIVES", "").split(),
        modules=os.environ.get("MODULES", "").split(),
        files={path.name: path.read_bytes() for path in given},
        memory_kib=int(os.environ.get("MEM", "768")) << 10,
        cpus=os.environ.get("SMP", "2"),
        cpu=os.environ.get("CPU"),
        append=os.environ.get("APPEND", ""),
        limit_s=float(os.environ.get("LIMIT", "280")),
    )
    if why:
        print(f"boot.py: {why}", file=sys.stderr)
    return 0 if (out / "log").exists() else 1


if __name__ == "__main__":
    sys.exit(main())
