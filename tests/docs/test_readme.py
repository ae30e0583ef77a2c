# SPDX-License-Identifier: Apache-2.0
"""What the README says of its examples in words is what the queries answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import wbscope
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.runs import REPOSITORY

_EXAMPLE = REPOSITORY / "examples/four-equal-writers"
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4}


def test_the_sentence_on_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    text = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    told = re.search(
        r"Each `dd` spent (\d+) to (\d+) % of its life asleep in `balance_dirty_pages\(\)`."
        r" No single pause is longer than (\d+) ms, yet (\w+) of them had one write\(\) block for"
        r" ([\d.]+) s",
        text,
    )
    assert told is not None
    with wbscope.open(_EXAMPLE) as run:
        rows = list(run.query("throttle_by_task").records())
    ratios = sorted(row["throttled_ratio"] for row in rows)
    assert [round(100 * ratios[0]), round(100 * ratios[-1])] == [int(told[1]), int(told[2])]
    assert max(row["pause_max_ns"] for row in rows) == int(told[3]) * 10**6
    held = [row for row in rows if f"{row['call_max_ns'] / 1e9:.1f}" == told[5]]
    assert len(held) == _WORDS[told[4]]
    assert max(row["call_max_ns"] for row in rows) < (float(told[5]) + 0.1) * 1e9


def test_the_sentence_on_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    text = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    told = re.search(
        r"asleep for (\d+) % of its life: the kernel counts the dirty pages of all disks together,"
        r" and (\d+) % of them belonged to vdc.",
        text,
    )
    assert told is not None
    with wbscope.open(unpack(CORPUS / "6.1-slow-starves-fast", tmp_path)) as run:
        (fio,) = (row for row in run.query("throttle_by_task").records() if row["comm"] == "fio")
        (held,) = (
            row["share_held_ratio"]
            for row in run.query("blame").records()
            if (row["victim_comm"], row["holder_bdi"]) == ("fio", "254:32")
        )
    assert [round(100 * fio["throttled_ratio"]), round(100 * held)] == [int(told[1]), int(told[2])]


def test_the_finding_that_is_taken_apart(wbscope: Wbscope, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs/findings.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text\n(severe .*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert wbscope.run("demo", cwd=tmp_path).returncode == 0
    assert block in wbscope.run("explain", "wbscope-demo", cwd=tmp_path).stdout


def test_how_far_bytes_are_off() -> None:
    """What three pages quote of the table that tools/validate_bytes.py made."""
    table = (REPOSITORY / "tests/data/bytes.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    (_, _, coverage, *bases) = zip(*rows[1:], strict=True)
    covered = sorted(int(cell.strip(" %")) for cell in coverage)
    bound, calibrated, _, probe = (
        [float(word) for cell in cells for word in cell.split() if word != "-"] for cells in bases
    )

    def off(values: list[float], least: float) -> tuple[int, int, float]:
        """Within `least`, of how many, the worst in per cent."""
        wrong = [round(abs(value - 1), 3) for value in values]
        return sum(one <= least for one in wrong), len(wrong), round(100 * max(wrong), 1)

    good, all_probes, worst = off(probe, 0.01)
    good_calibrated, all_calibrated, worst_calibrated = off(calibrated, 0.03)
    page = _text("docs/fairness.md")
    for words in (
        f"on {all_probes} writers in {len(covered)} runs",
        f"within 1 % for {good} and {worst} % off at worst",
        f"within 3 % for {good_calibrated} of {all_calibrated} and {worst_calibrated} % off",
        f"charge {round(100 * min(bound))} to {round(100 * max(bound))} %",
        f"{covered[0]} to {covered[-1]} % in {len(covered)} others",
    ):
        assert words in page, words
    assert f"{covered[0]} to {covered[-1]} % in {len(covered)} others" in _text("README.md")
    assert f"within 1 % for {good} of {all_probes} writers, {worst} % off" in _text("README.md")
    assert f"({good} of {all_probes} writers, {worst} % off at worst" in _text("docs/record.md")


def test_the_readme_quotes_the_benchmarks() -> None:
    page = _text("docs/benchmarks.md")

    def cells(row: str) -> list[str]:
        return [cell.strip() for cell in page.partition(f"| {row} |")[2].split("|")]

    def seconds(text: str) -> float:
        return round(float(text), 1)

    quick, whole, other = map(
        cells, ("wbscope ingest (profile `writeback`)", "wbscope ingest --all", "trace-cmd report")
    )
    trace, ingested = cells("of a trace"), cells("after ingest")
    for words in (
        f"in {seconds(quick[0])} s and {quick[3]} MiB on 2 CPUs (`--all`: {seconds(whole[0])} s,"
        f" {whole[3]} MiB); `trace-cmd report` takes {seconds(other[0])} s and {other[3]} MiB",
        f"takes {trace[2]} and a query up to {trace[1].partition(' ')[2]}, in a database of"
        f" `wbscope ingest` {ingested[2].removesuffix(' s')} and {ingested[1].partition(' ')[2]}",
    ):
        assert words in _text("README.md")
    assert "the wheel alone | 4.3 MB |" in _text("docs/install.md")
    assert "makes the wheel (4.3 MB)" in _text("README.md")


def _text(page: str) -> str:
    return " ".join((REPOSITORY / page).read_text(encoding="utf-8").split())
