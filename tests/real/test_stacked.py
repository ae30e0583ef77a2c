# SPDX-License-Identifier: Apache-2.0
"""Runs of known cause as they would be on device mapper: requests are not under the bdi's number.

The corpus has disks 254:N. With their requests under 8:N each bdi has none in the trace, as a
logical volume has none; the file stacks says that it lies on the disk. What is found then has to be
what is found on the disk itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import wbscope
from support.corpus import CORPUS, unpack
from support.tools import require_program, run
from wbscope.explain.remedy import prove

# Whose first finding is told from when the disk was busy, and how fast it writes.
_CASES = (
    "6.1-low-limits",
    "6.1-new-device",
    "6.1-slow-starves-fast",
    "7.2-io-max",
    "7.2-strict-limit",
)
# What is told of a throttled task only where its disk is known.
_OF_THE_DISK = {"device_idle", "new_bdi_bandwidth", "nothing_wrong", "slow_device", "small_limit"}
_INFERRED = {"small_memcg_limit", "strict_limit"}
_REQUEST = re.compile(r"^(.* block_\w+: +)254,(\d+) ", re.MULTILINE)
_KEPT = ("meminfo", "mounts", "sysctls", "swaps", "vmstat.before", "vmstat.after", "zoneinfo")
_STACKS = "".join(f"254:{minor} 8:{minor}\n" for minor in range(0, 96, 16))
_SAMPLE = re.compile(r"^== vd([a-f])$", re.MULTILINE)
Folders = tuple[Path, Path, Path]


def _numbered(sample: re.Match[str]) -> str:
    return f"{sample[0]}\ndev 254:{16 * (ord(sample[1]) - ord('a'))}"


@pytest.fixture(params=_CASES)
def folders(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Folders:
    """The run on its disks, on device mapper with the file stacks, and without it."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    whole = unpack(CORPUS / request.param, tmp_path)
    text = run([require_program("trace-cmd"), "report", "-t", whole / "trace.dat"]).stdout
    moved, count = _REQUEST.subn(r"\g<1>8,\2 ", text)
    assert count > 20

    def folder(name: str, trace: str) -> Path:
        made = tmp_path / name / "run"
        made.mkdir(parents=True)
        (made / "trace.txt").write_text(trace)
        for file in _KEPT:
            (made / file).write_bytes((whole / file).read_bytes())
        return made

    disks, stacked, unknown = (
        folder(name, trace)
        for name, trace in (("disks", text), ("stacked", moved), ("unknown", moved))
    )
    (stacked / "stacks").write_text(_STACKS)
    # What each device itself had to do, which no request tells.
    samples = (whole / "block.samples").read_text()
    (stacked / "block.samples").write_text(_SAMPLE.sub(_numbered, samples))
    return disks, stacked, unknown


def test_the_same_is_found_on_a_stack(folders: Folders) -> None:
    disks, stacked, _ = folders
    with wbscope.open(disks) as one, wbscope.open(stacked) as other:
        expected, found = one.findings(), other.findings()
        assert [f.text for f in found] == [f.text for f in expected]
        assert [f.advice for f in found] == [f.advice for f in expected]
        assert [f.confidence for f in found] == [f.confidence for f in expected]
        assert all(proven.holds for f in found for proven in prove(other, f))
        assert other.query("stalls_by_task").rows == one.query("stalls_by_task").rows


def test_nothing_is_said_of_a_disk_that_nobody_knows(folders: Folders) -> None:
    unknown = folders[2]
    with wbscope.open(unknown) as one:
        found = one.findings()
        assert {f.id for f in found} & {"disk_unknown", *_INFERRED}
        assert not {f.id for f in found} & _OF_THE_DISK
        assert all(f.confidence == "inferred" for f in found if f.id in _INFERRED)
        assert all(proven.holds for f in found for proven in prove(one, f))
        warnings = {w.slug: w.message for w in one.query("lost_time").warnings}
        assert "254:" in warnings["disk-unknown"]
        assert " 8:" in warnings["disk-unknown"]
