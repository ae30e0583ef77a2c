# SPDX-License-Identifier: Apache-2.0
"""Tests that trace this machine. Where that cannot be, they are skipped and say why.

Every sysctl, instance, loop device and mount that a test made is gone afterwards; the
fixture `clean` fails the test otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder, state_of_machine

_REGISTER = Path("/run/wbscope")


def _why_not() -> str | None:
    """None when this machine can be traced."""
    if os.geteuid() != 0:
        return f"live tests need root, this is uid {os.geteuid()}"
    made = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, check=False
    )
    return made.stderr.strip().splitlines()[-1] if made.returncode else None


_PROBE = """
import os
from wbscope.record.tracefs import Instance, the_tracefs
instance = Instance(the_tracefs(), f"wbscope-{os.getpid()}-probe")
instance.make()
instance.remove()
"""


@pytest.fixture(scope="session", autouse=True)
def traceable() -> None:
    """Not a failure in CI either: a container may have no tracefs."""
    if reason := _why_not():
        pytest.skip(f"this machine cannot be traced: {reason}")


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small ext4 file system on a loop device."""
    folder = tmp_path_factory.mktemp("disk")
    image, mount = folder / "image", folder / "mnt"
    mount.mkdir()
    subprocess.run(["truncate", "-s", "512M", image], check=True)
    subprocess.run(["mkfs.ext4", "-qF", image], check=True)
    done = subprocess.run(
        ["mount", "-o", "loop", image, mount], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no loop mount: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)
    image.unlink()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """wbscope record, in a folder of its own; the machine is as before afterwards."""
    before = state_of_machine()
    made = Recorder(tmp_path)
    yield made
    made.end()
    assert state_of_machine() == before
