# SPDX-License-Identifier: Apache-2.0
"""The patched kernels: `make kernel-test` runs these tests, `make test` does not.

Sources are fetched, a kernel is built and booted: about 10 minutes on 2 CPUs the first
time. WBSCOPE_KERNEL_QUICK=1 leaves out the guest and the compilation of 6.12 and 7.2.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parents[2]


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
