# SPDX-License-Identifier: Apache-2.0
"""What record refuses before it records, and how it says so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.errors import SetupError
from wbscope.record import elsewhere, tracefs

Cli = Callable[..., Any]


@pytest.mark.parametrize("way", [("--remote", "root@board"), ("--print",)])
@pytest.mark.parametrize(
    "option", [("--clock", "mono"), ("--sample", "5s"), ("--backend", "tracefs")]
)
def test_options_that_the_script_has_not(
    cli: Cli, way: tuple[str, ...], option: tuple[str, ...]
) -> None:
    ran = cli("record", *way, *option, "--duration", "1s")
    assert ran.code == 2
    assert ran.err.startswith(f"error[not-with-remote]: {option[0]}:")


@pytest.mark.parametrize("host", ["-oProxyCommand=x", ""])
def test_host_that_ssh_would_take_for_an_option(cli: Cli, host: str) -> None:
    ran = cli("record", f"--remote={host}", "--duration", "1s")
    assert ran.code == 2
    assert ran.err.startswith("error[no-host]: ")


def test_options_of_the_command_go_behind_the_dashes(cli: Cli) -> None:
    ran = cli("record", "ls", "-l", "/")
    assert ran.code == 2
    assert "fix: wbscope record -o RUN -- CMD..." in ran.err


def test_archive_on_a_disk_without_room(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the archive that is wrong."""
    (tmp_path / "run.tar").touch()

    def full(*_: Any) -> dict[str, Any]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(elsewhere, "unpack", full)
    ran = cli("record", "--unpack", tmp_path / "run.tar", "-o", tmp_path / "run")
    assert ran.code == 5
    assert ran.err.startswith(f"error[cannot-write]: {tmp_path}/run: ")
    assert [path.name for path in tmp_path.iterdir()] == ["run.tar"]


def test_archive_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    ran = cli("record", "--unpack", tmp_path / "none", "-o", tmp_path / "run")
    assert ran.code == 3
    assert ran.err.startswith("error[cannot-read]: ")


def test_reason_of_mount_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 32, "", "mount: denied.\n       dmesg may tell\n")
    monkeypatch.setattr(tracefs.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SetupError) as caught:
        tracefs.mount_tracefs()
    assert caught.value.message.endswith("cannot be: mount: denied. / dmesg may tell")
    monkeypatch.setattr(tracefs, "_mounted", lambda _: [])
    assert str(tracefs.mount_debugfs()).endswith("mount: denied. / dmesg may tell")
