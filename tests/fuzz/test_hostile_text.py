# SPDX-License-Identifier: Apache-2.0
"""Texts made to cost much more time or memory than their size."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.tools import ingester_path
from wbscope.ingest.program import reference_formats

# Ends a hang: these texts cost 3 s, and minutes of processor time without a bound.
_CPU_SECONDS = 60
_MEBIBYTES = 256
_HEAD = "dd-12 [001] ..... 1.000001: "
_TWO_TEXTS = """\
# kernel 1.0
# system hostile
name: two_texts
ID: 1
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char a[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:char b[16];\toffset:24;\tsize:16;\tsigned:0;

print fmt: "%s: %s end", REC->a, REC->b
"""


def _empty_lines() -> Iterator[str]:
    for _ in range(50_000):
        yield "\n" * 999


def _cpus_that_lost() -> Iterator[str]:
    yield _HEAD + "event: a=1"
    for cpu in range(4_000_000):
        yield f"CPU:{cpu} [LOST 1 EVENTS]"


def _late_columns() -> Iterator[str]:
    for field in [0] * 32 + [*range(1, 9)]:
        for event in range(2000):
            yield f"{_HEAD}event{event}: field{field}=1"


def _long_names() -> Iterator[str]:
    for number in range(6000):
        yield f"{_HEAD}event{number}: field{number}{'y' * 60_000}=1"
        yield f"{_HEAD}event{number}{'y' * 30_000}: a=1"


def _many_places() -> Iterator[str]:
    for _ in range(50):
        yield f"{_HEAD}two_texts: {': ' * 32_000}"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_empty_lines, 3),
        (_cpus_that_lost, 0),
        (_late_columns, 0),
        (_long_names, 0),
        (_many_places, 0),
    ],
)
def test_time_and_memory_have_a_bound(
    make: Callable[[], Iterator[str]], code: int, tmp_path: Path
) -> None:
    source, formats = tmp_path / "trace.txt", tmp_path / "formats"
    with source.open("w") as out:
        out.writelines(line + "\n" for line in make())
    formats.write_text("".join(reference_formats()) + _TWO_TEXTS, encoding="utf-8")
    process = subprocess.Popen(
        [
            ingester_path(),
            "sqlite",
            source,
            "-o",
            tmp_path / "run.db",
            "--all",
            "--formats",
            formats,
        ],
        stderr=subprocess.DEVNULL,
        preexec_fn=_limit_time,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code  # -SIGXCPU or -SIGKILL: it hung
    assert usage.ru_maxrss < _MEBIBYTES * 1024


def _limit_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
