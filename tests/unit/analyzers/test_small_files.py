# SPDX-License-Identifier: Apache-2.0
"""What is read whole has an end: a device in the place of a file that people write is refused."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.cli import line_of
from support.runs import example
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS
from wbscope.base.system import read_small

RUN = str(example("four-equal-writers").folder)
_MEMORY = 2 << 30


@pytest.fixture(autouse=True)
def _whole_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")


def _ask(words: Sequence[str], stdin: str = "/dev/null") -> subprocess.CompletedProcess[str]:
    """With room for a command, not for what never ends."""
    limits = (_MEMORY, _MEMORY)
    with Path(stdin).open("rb") as given:
        return subprocess.run(
            [wbscope_path(), *words],
            stdin=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
        )


@pytest.mark.parametrize(
    ("words", "slug", "most"),
    [
        (("lab", "/dev/zero", "--list"), "no-matrix", 1),
        (("gate", "--policy", "/dev/zero", RUN), "no-policy", 1),
        (("sql", RUN, "-f", "/dev/zero"), "cannot-read", 16),
        (("baseline", "show", "/dev/zero"), "cannot-read", 64),
    ],
    ids=["lab", "gate", "sql", "baseline"],
)
def test_device_is_no_file_of_text(words: Sequence[str], slug: str, most: int) -> None:
    done = _ask(words)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    line_of(done.stderr, f"error[{slug}]: /dev/zero: ", f"{most} MiB")


def test_stdin_without_an_end_is_no_statement() -> None:
    done = _ask(("sql", RUN), stdin="/dev/zero")
    assert done.returncode == 3
    line_of(done.stderr, "error[cannot-read]: stdin: ", "16 MiB")


def test_folder_of_a_lab_is_read_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "lab.json").symlink_to("/dev/zero")
    done = _ask(("lab", "report", str(tmp_path)))
    assert done.returncode == 3, done.stderr
    line_of(done.stderr, "error[", "16 MiB")


def test_as_many_bytes_as_are_allowed_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    assert len(read_small(file, 1 << 20)) == 1 << 20
    with pytest.raises(OSError, match="it has more than 0 MiB"):
        read_small(file, (1 << 20) - 1)


def test_policy_with_the_line_ends_of_windows_is_read(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_bytes(b'[metrics."throttle_summary.pause_max_ns"]\r\nbudget = "<= 1s"\r\n')
    done = _ask(("gate", "--policy", str(policy), RUN, "--json"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "PASS"
