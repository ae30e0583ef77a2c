# SPDX-License-Identifier: Apache-2.0
"""Runs of known cause: the first finding names it, also on device mapper."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import wbscope
from support.corpus import CORPUS, cases, unpack
from support.report import report_lines
from support.runs import REPOSITORY
from support.sidecars import Samples
from support.tools import require_program, run
from support.verdicts import BEGIN, END, RULE_OF, assert_sound, cause_of, confusion, is_healthy
from wbscope.explain.remedy import prove
from wbscope.run.run import Run

# The first finding names the injected cause, and its numbers are those of its evidence.

_PAGE = REPOSITORY / "docs/findings.md"
_SAMPLES = REPOSITORY / "tools/finding_samples.toml"
_LEAST_RIGHT = 0.9
_QUIET = {"note", "ok", "fact"}
Unpacked = Callable[[Path], Path]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unpacked]:
    """The run folder of a case, unpacked once; one cache for all tests here."""
    folder = tmp_path_factory.mktemp("corpus")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WBSCOPE_CACHE_DIR", str(folder / "cache"))
        yield cache(lambda case: unpack(case, folder))


@pytest.fixture(scope="module", params=cases(), ids=lambda case: case.name)
def corpus_run(request: pytest.FixtureRequest, unpacked: Unpacked) -> Iterator[tuple[Path, Run]]:
    with wbscope.open(unpacked(request.param)) as run:
        yield request.param, run


def test_healthy_runs_alone_get_an_all_clear(corpus_run: tuple[Path, Run]) -> None:
    case, run = corpus_run
    found = run.findings()
    assert (found[0].severity == "ok") == is_healthy(case), found[0]
    loud = [one for one in found if one.severity not in _QUIET]
    assert bool(loud) != is_healthy(case), loud


def test_every_number_is_that_of_its_evidence(corpus_run: tuple[Path, Run]) -> None:
    _, run = corpus_run
    _assert_proven(run)


def test_what_is_to_be_set_can_be_and_is_a_change(corpus_run: tuple[Path, Run]) -> None:
    assert_sound(corpus_run[1])


@pytest.mark.core
def test_the_first_finding_names_the_cause(unpacked: Unpacked, pytestconfig: pytest.Config) -> None:
    found = []
    for case in cases():
        with wbscope.open(unpacked(case)) as run:
            found.append((cause_of(case), run.findings()[0].id))
    right = sum(RULE_OF[cause] == rule for cause, rule in found)
    assert right >= _LEAST_RIGHT * len(found), found
    text = _PAGE.read_text()
    before, rest = text.split(BEGIN)
    made = f"{before}{BEGIN}\n{confusion(found)}\n{END}{rest.split(END)[1]}"
    if pytestconfig.getoption("--update-docs"):
        _PAGE.write_text(made)
    assert text == made, "run this test with --update-docs"


def test_the_samples_of_each_rule_are_what_runs_got(
    unpacked: Unpacked, pytestconfig: pytest.Config
) -> None:
    samples = Samples()
    for case in cases():
        with wbscope.open(unpacked(case)) as run:
            samples.add(case.name, run.findings(), RULE_OF[cause_of(case)])
    for trace in sorted(REPOSITORY.glob("examples/*/trace.dat")):
        with wbscope.open(trace.parent) as run:
            samples.add(str(trace.parent.relative_to(REPOSITORY)), run.findings())
    if pytestconfig.getoption("--update-docs"):
        _SAMPLES.write_text(samples.toml())
    assert _SAMPLES.read_text() == samples.toml(), "run this test with --update-docs"


@pytest.mark.parametrize("cause", ["reclaim-meets-dirty", "swap-competes"])
@pytest.mark.parametrize("kernel", ["6.1", "7.2"])
def test_a_missing_number_hides_no_cause(kernel: str, cause: str, tmp_path: Path) -> None:
    (case,) = (case for case in cases() if case.name == f"{kernel}-{cause}")
    folder = unpack(case, tmp_path)
    for file in folder.glob("vmstat.*"):
        file.unlink()
    with wbscope.open(folder) as run:
        first = run.findings()[0]
    assert (first.id, first.confidence) == (RULE_OF[cause], "measured")


@pytest.mark.parametrize("kernel", ["6.1", "7.2"])
def test_a_memory_cgroup_holds_its_burst(kernel: str, unpacked: Unpacked) -> None:
    """In the memory that is proposed, and none of its reclaim is told as the machine's."""
    (case,) = (case for case in cases() if case.name == f"{kernel}-memory-cgroup")
    folder = unpacked(case)
    with wbscope.open(folder) as run:
        by_id = {one.id: one for one in run.findings()}
    # All of its reclaim is that of the cgroup: the machine's is not in the trace.
    lines = report_lines(folder / "trace.dat")
    assert any("mm_vmscan_memcg_reclaim_begin" in line for line in lines)
    assert not any("mm_vmscan_direct_reclaim_begin" in line for line in lines)
    assert not {"reclaim_meets_dirty", "direct_reclaim"} & set(by_id)
    facts = by_id["small_memcg_limit"].facts
    # Free run ends at the mean of 20 and 10 %.
    assert float(facts["proposed_bytes"]) * 0.15 >= float(facts["burst_bytes"])
    assert float(facts["proposed_bytes"]) * 0.15 <= float(facts["burst_bytes"]) + (1 << 20)


def _assert_proven(run: Run) -> None:
    """Each fact that is told has a query that says the same."""
    told = 0
    for one in run.findings():
        proven = prove(run, one)
        wrong = [p for p in proven if not p.holds]
        assert not wrong
        known = {p.fact for p in proven}
        for name in one.told:
            value = one.facts[name]
            if isinstance(value, int | float) and not name.endswith(("cgroup_ino", "tid")):
                assert name in known, f"{one.id} tells {name} without evidence"
                told += 1
    assert told > 0


# Runs of known cause as they would be on device mapper: requests are not under the bdi's number.
#
# The corpus has disks 254:N. With their requests under 8:N each bdi has none in the trace, as a
# logical volume has none; the file stacks says that it lies on the disk. What is found then has to
# be what is found on the disk itself.

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
