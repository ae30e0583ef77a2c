# SPDX-License-Identifier: Apache-2.0
"""What `wbscope doctor` prints: whether it works, then what was looked at."""

from __future__ import annotations

from wbscope.doctor.checks import Check, Status
from wbscope.render.catalogue import checks_text

_KERNEL = Check("kernel", Status.ok, "6.1.0, x86_64")
_USER = Check("user", Status.fails, "nobody", "sudo wbscope doctor")
_TRACEFS = Check("tracefs", Status.fails, "cannot be read", "mount -t tracefs none /sys/...")
_PRESSURE = Check("pressure (PSI)", Status.missing, "not there", "boot with psi=1")


def test_the_verdict_is_first() -> None:
    lines = checks_text([_KERNEL], 80).splitlines()
    assert lines[:2] == ["wbscope record works here.", ""]
    assert lines[2].split() == ["ok", "kernel", "6.1.0,", "x86_64"]
    assert len(lines) == 3


def test_what_is_not_there_is_named_with_it() -> None:
    text = checks_text([_KERNEL, _PRESSURE], 80)
    assert text.startswith("wbscope record works here. Not all is there: pressure (PSI).\n\n")


def test_what_helps_first_is_told_with_a_failure() -> None:
    lines = checks_text([_KERNEL, _USER, _TRACEFS, _PRESSURE], 80).splitlines()
    assert lines[:3] == [
        "wbscope record does not work here: user, tracefs.",
        "To do: sudo wbscope doctor",
        "",
    ]
    assert lines[-1].strip() == "fix: boot with psi=1"
