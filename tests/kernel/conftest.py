# SPDX-License-Identifier: Apache-2.0
"""The patched kernels: `make kernel-test` runs these tests, `make test` does not.

Sources are fetched, a kernel is built and booted: about 10 minutes on 2 CPUs the first
time. WBSCOPE_KERNEL_BOOT="6.1 6.12 7.2" boots more than 6.1, WBSCOPE_KERNEL_QUICK=1 leaves
out the guest and the compilation of 6.12 and 7.2.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.cli import Wbscope
from support.kernelchecks import RUNS, fetched

_ROOT = Path(__file__).parents[2]
_HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def kernel_build() -> ModuleType:
    """tools/kernel_build.py"""
    spec = importlib.util.spec_from_file_location("kernel_build", _ROOT / "tools/kernel_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_build"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def full() -> None:
    """Skips what the quick mode leaves out."""
    if os.environ.get("WBSCOPE_KERNEL_QUICK") == "1":
        pytest.skip("WBSCOPE_KERNEL_QUICK=1: no guest, and only 6.1 is compiled")


@pytest.fixture(scope="session", params=os.environ.get("WBSCOPE_KERNEL_BOOT", "6.1").split())
def booted(request: pytest.FixtureRequest, full: None) -> str:
    """The series whose kernel runs the scenario."""
    return str(request.param)


@pytest.fixture(scope="session")
def runs(booted: str, kernel_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run folders, made anew but for WBSCOPE_KERNEL_AGAIN=1."""
    out = Path(kernel_build.folder(booted)) / "out"
    if os.environ.get("WBSCOPE_KERNEL_AGAIN") == "1":
        return out
    guest = kernel_build.build_image(booted)
    shutil.rmtree(out, ignore_errors=True)
    disks = tmp_path_factory.mktemp("disks")
    drives = []
    for name, limit in (("data", ",throttling.bps-write=4000000"), ("swap", ""), ("keep", "")):
        subprocess.run(["truncate", "-s", "1G", disks / name], check=True)
        drives.append(f"file={disks / name},if=virtio,format=raw,cache=unsafe{limit}")
    env = dict(os.environ, MEM="384", LIMIT="600", DRIVES=" ".join(drives),
               FILES=str(guest / "hog"))  # fmt: skip
    boot = [sys.executable, _ROOT / "tools/record-samples/boot.py", "amd64", guest,
            _HERE / "scenario.sh", out]  # fmt: skip
    done = subprocess.run(boot, env=env, capture_output=True, text=True, check=False)
    log = (out / "log").read_text() if (out / "log").exists() else ""
    assert "scenario rc=0" in log, f"{log}\n{(out / 'console').read_text()}\n{done.stderr}"
    return out


@pytest.fixture(scope="session")
def databases(
    runs: Path, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, sqlite3.Connection]:
    """Every event of each run in tables; nothing was lost."""
    found = {}
    for name in RUNS:
        path = tmp_path_factory.mktemp("db") / f"{name}.db"
        done = wbscope.run("ingest", runs / name, "-o", path, "--all")
        assert done.returncode == 0, done.stderr
        found[name] = sqlite3.connect(path)
        assert fetched(found[name], "SELECT * FROM lost_events") == []
    return found
