# SPDX-License-Identifier: Apache-2.0
"""What record refuses before it records, and how it says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.waits import GUARD_SECONDS
from wbscope.base.errors import SetupError
from wbscope.record import choose, remote

Cli = Callable[..., Any]
_FACTS = {
    "profile": "custom", "command": "[]", "clock": "boot", "buffer_kib": "1", "started": "1",
    "ended": "9",
}  # fmt: skip


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


def test_archive_that_is_not_there(cli: Cli, tmp_path: Path) -> None:
    ran = cli("record", "--unpack", tmp_path / "none", "-o", tmp_path / "run")
    assert ran.code == 3
    assert ran.err.startswith("error[cannot-read]: ")


@pytest.mark.parametrize(
    "option",
    [
        ("--", "true"), ("--profile", "deep"), ("-e", "block"), ("--duration", "1s"),
        ("--sysctl", "vm.swappiness=1"), ("--buffer-size", "1M"), ("--clock", "mono"),
        ("--sample", "5s"), ("--backend", "tracefs"), ("--print", "--duration", "1s"),
    ],
)  # fmt: skip
def test_options_that_an_archive_has_no_use_for(
    cli: Cli, tmp_path: Path, option: tuple[str, ...]
) -> None:
    (tmp_path / "run.tar").touch()
    ran = cli("record", "--unpack", tmp_path / "run.tar", "-o", tmp_path / "run", *option)
    assert ran.code == 2
    assert "error[not-with-unpack]: " in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    "option",
    [
        ("--profile", "deep"), ("-e", "block"), ("--duration", "1s"), ("--sync",),
        ("--sysctl", "vm.swappiness=1"), ("--buffer-size", "1M"), ("--clock", "mono"),
        ("--sample", "5s"), ("--backend", "tracefs"), ("--probe", "off"), ("-o", "x"),
        ("--print",), ("--remote", "host"), ("--unpack", "x.tar"), ("--no-report",), ("--force",),
        ("--json",),
    ],
)  # fmt: skip
def test_options_that_recover_has_no_use_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...]
) -> None:
    """It does not go on: what a killed recorder has left is still there."""
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(tmp_path))
    left = tmp_path / "wbscope-1-aa.json"
    left.touch()
    ran = cli("record", "--recover", *option)
    assert ran.code == 2
    assert "not-with-recover" in ran.err
    assert ran.out == ""
    assert left.exists()


def test_script_is_no_document(cli: Cli) -> None:
    ran = cli("record", "--print", "--json", "--duration", "1s")
    assert ran.code == 2
    assert json.loads(ran.err)["error"]["slug"] == "not-with-print"
    assert ran.out == ""


@pytest.mark.parametrize(
    ("code", "exit_code", "number"),
    [(0, 0, None), (3, 3, None), (127, 127, None), (137, None, 9), (255, 255, None)],
)
def test_signal_of_a_command_elsewhere(
    tmp_path: Path, code: int, exit_code: int | None, number: int | None
) -> None:
    """Of the two one is null, as in a run of this machine."""
    (tmp_path / "uname").write_text("Linux board 6.1.0\n")
    told = _FACTS | {"exit_code": str(code)}
    meta = remote._meta(told, [], [], tmp_path)
    assert (meta["command_exit_code"], meta["command_signal"]) == (exit_code, number)
    assert (meta["ended"], meta["problems"]) == ("complete", [])
    meta = remote._meta(told | {"left": "7"}, [], [], tmp_path)
    assert (meta["ended"], meta["problems"]) == ("pages not copied", ["7 events were not read"])


def test_command_of_any_bytes(tmp_path: Path, start: Callable[..., Any]) -> None:
    """A file name need not be text: --print prints it as it is, --remote sends it so."""
    name = b"a\xffb"
    options = ("--profile", "custom", "-e", "block", "-o", tmp_path / "run")
    words = (*options, "--", "dd", os.fsdecode(b"of=" + name))
    printed, said = start("record", "--print", *words).communicate(timeout=GUARD_SECONDS)
    assert said == b""
    assert b"of=" + name in printed
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\nwhile read -r line && [ main != \"${{line%%;*}}\" ]; do"
                   f" printf '%s\\n' \"$line\"; done > {tmp_path}/sent\nexit 7\n")  # fmt: skip
    ssh.chmod(0o755)
    env = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}")
    _, said = start("record", "--remote", "board", *words, env=env).communicate(
        timeout=GUARD_SECONDS
    )
    assert b"error[remote-failed]: --remote board: the script ended with 7" in said
    assert b"of=" + name in (tmp_path / "sent").read_bytes()


def test_tracefs_that_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not another user that helps."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    flags = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _: flags)
    with pytest.raises(SetupError, match="is mounted read-only") as caught:
        choose.require_writable(Path("/t"))
    assert str(caught.value.fix).startswith("mount -o remount,rw /t")


def test_reason_of_mount_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount, mounts = tmp_path / "mount", tmp_path / "mounts"
    mount.write_text("#!/bin/sh\nprintf 'mount: denied.\\n       dmesg may tell\\n' >&2\nexit 32\n")
    mount.chmod(0o755)
    mounts.touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError) as caught:
        choose.mount_tracefs()
    assert caught.value.message.endswith("cannot be: mount: denied. / dmesg may tell")
    assert str(choose.mount_debugfs(mounts)).endswith("mount: denied. / dmesg may tell")
