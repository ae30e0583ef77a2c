# SPDX-License-Identifier: Apache-2.0
"""wbscope doctor here, as another user, and where tracefs is not mounted or cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.live import Recorder
from support.tools import wbscope_path

_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# debugfs mounts it once more, below itself, as soon as somebody looks there.
_WITHOUT_TRACEFS = "mount --make-rprivate / && umount -l -a -t tracefs && umount -l -a -t debugfs"
_WITHOUT_CGROUPS = "umount -l -a -t cgroup,cgroup2 && { umount -l /sys/fs/cgroup || :; }"
_POWERLESS = "setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin"


def _checks(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def test_as_root(recorder: Recorder) -> None:
    done = recorder.wbscope("doctor", "--json")
    assert done.returncode == 0, done.stderr
    checks = _checks(done)
    assert checks["tracefs"]["status"] == "ok"
    assert checks["trace instance"]["status"] == "ok"
    assert all(row["fix"] for row in checks.values() if row["status"] != "ok")


def test_a_trace_cmd_that_cannot_be_run(recorder: Recorder, tmp_path: Path) -> None:
    broken = tmp_path / "trace-cmd"
    broken.write_bytes(b"\x7fELF of another machine")
    broken.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = recorder.run(wbscope_path(), "doctor", "--json", env=recorder.env | {"PATH": path})
    assert done.returncode == 0, done.stderr
    told = _checks(done)["trace-cmd"]
    assert told["status"] == "missing"
    assert told["found"].startswith("of unknown version, cannot record: ")


def _as_nobody(recorder: Recorder, *words: str) -> subprocess.CompletedProcess[str]:
    if recorder.run(*_NOBODY, wbscope_path(), "--version", cwd=None).returncode:
        pytest.skip("the program cannot be run by another user here")
    env = recorder.env | {"WBSCOPE_CACHE_DIR": "/nonexistent", "HOME": "/nonexistent"}
    return recorder.run(*_NOBODY, wbscope_path(), *words, cwd=None, env=env)


def test_as_another_user(recorder: Recorder) -> None:
    done = _as_nobody(recorder, "doctor", "--json")
    assert done.returncode == 5, done.stderr
    tracefs = _checks(done)["tracefs"]
    assert (tracefs["status"], "not writable" in tracefs["found"]) == ("fails", True)
    assert "sudo wbscope" in tracefs["fix"]


@pytest.mark.parametrize("words", [("record", "--recover"), ("record", "-o", "/tmp/run")])
def test_record_as_another_user(recorder: Recorder, words: tuple[str, ...]) -> None:
    done = _as_nobody(recorder, *words)
    assert done.returncode == 5, done.stderr
    assert "error[tracefs-not-writable]" in done.stderr
    assert "sudo wbscope" in done.stderr


def test_events_as_another_user(recorder: Recorder) -> None:
    """What cannot be seen is not missing."""
    done = _as_nobody(recorder, "doctor", "--events")
    if done.returncode == 0:  # this kernel lets everybody read
        assert " ok\n" in done.stdout
        return
    assert done.returncode == 5, done.stderr
    assert "error[tracefs-not-readable]" in done.stderr
    assert "missing" not in done.stdout


def test_tracefs_is_mounted_first(recorder: Recorder) -> None:
    done = recorder.apart(_WITHOUT_TRACEFS, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    assert _checks(done)["trace instance"]["status"] == "ok"
    assert recorder.instances() == []


@pytest.mark.parametrize("words", [("doctor", "--json"), ("doctor", "--events")])
def test_tracefs_that_cannot_be_mounted(recorder: Recorder, words: tuple[str, ...]) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    done = recorder.apart(f'{_WITHOUT_TRACEFS}; set -- {_POWERLESS} "$@"', *words)
    assert done.returncode == 5, done.stdout + done.stderr
    if words[-1] == "--events":
        assert "error[no-tracefs]" in done.stderr
        assert done.stdout == ""
        return
    tracefs = _checks(done)["tracefs"]
    assert tracefs["status"] == "fails"
    assert "not checked" in tracefs["found"]


def test_cgroup_2_that_is_mounted_nowhere(recorder: Recorder) -> None:
    """Only a free place is advised, and what is advised works and hides nothing."""
    done = recorder.apart(_WITHOUT_CGROUPS, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    told = _checks(done)["cgroup 2"]
    if told["status"] == "ok":
        pytest.skip("the cgroup mounts of this machine cannot be taken away in a mount namespace")
    if "mount -t cgroup2" not in told["fix"]:
        assert "version 1" in told["found"]  # as /proc/cgroups says, whatever is mounted
        return
    again = recorder.apart(f"{_WITHOUT_CGROUPS}; {told['fix']}", "doctor", "--json")
    assert "mount" not in (_checks(again)["cgroup 2"]["fix"] or "")
