# SPDX-License-Identifier: Apache-2.0
"""time.txt, ops.txt, vmstat: numbers, refusals; all files of a run together."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import wbscope
from hypothesis import strategies as st
from support.archives import unpacked
from support.properties import for_all
from wbscope.base.errors import InputError
from wbscope.measure import files_of_folder, files_of_run, measurements
from wbscope.measure.fio import fio_document, parse_fio
from wbscope.measure.metric import Scalars
from wbscope.measure.perf import parse_perf_stat
from wbscope.measure.tables import parse_ops
from wbscope.measure.time import parse_time
from wbscope.measure.vmstat import (
    parse_procps,
    parse_samples,
    parse_vmstat,
    vmstat_gains,
    vmstat_levels,
)

ROOT = Path(__file__).parents[3]
DATA = unpacked("data") / "measure"


def values(scalars: Scalars) -> dict[str, float | None]:
    return {name: value for name, (_, value) in scalars.items()}


# time.txt


def test_gnu_time() -> None:
    found = values(parse_time((DATA / "time-gnu.txt").read_text()))
    assert found == {
        "time.user_ns": 0,
        "time.sys_ns": 40_000_000,
        "time.cpu_ratio": 0.24,
        "time.elapsed_ns": 190_000_000,
        "time.max_rss_bytes": 1924 * 1024,
        "time.major_faults_count": 0,
        "time.minor_faults_count": 120,
        "time.voluntary_switches_count": 1,
        "time.involuntary_switches_count": 13,
        "time.swaps_count": 0,
        "time.fs_in_bytes": 0,
        "time.fs_out_bytes": 39296 * 512,
    }


def test_busybox_time() -> None:
    found = values(parse_time((DATA / "time-busybox.txt").read_text()))
    assert found["time.elapsed_ns"] == 4_650_000_000
    assert found["time.max_rss_bytes"] == 119_872 * 1024


def test_a_command_with_a_newline() -> None:
    assert parse_time((DATA / "time-gnu-newline.txt").read_text())


@pytest.mark.parametrize(
    ("clock", "ns"),
    [
        ("0:00.19", 190_000_000),
        ("15:12.60", 912_600_000_000),
        ("1:02:03", 3_723_000_000_000),
        ("27:00:01", 97_201_000_000_000),
        ("0m 4.65s", 4_650_000_000),
        ("1h 2m 03s", 3_723_000_000_000),
        ("0:00,19", None),
        ("1:75:03", None),
        ("1:02:60", None),
        ("0:60.00", None),
        ("4.65", None),
        ("0:7", None),
        ("", None),
    ],
)
def test_elapsed(clock: str, ns: float | None) -> None:
    text = (DATA / "time-gnu.txt").read_text().replace("0:00.19", clock)
    if ns is None:
        with pytest.raises(InputError, match="Elapsed"):
            parse_time(text)
    else:
        assert values(parse_time(text))["time.elapsed_ns"] == ns


def test_a_command_too_short_for_a_share_of_cpu() -> None:
    text = (DATA / "time-gnu.txt").read_text().replace("24%", "?%")
    assert values(parse_time(text))["time.cpu_ratio"] is None


@pytest.mark.parametrize(
    ("name", "said"),
    [("time-gnu-status.txt", "with status 3"), ("time-gnu-signal.txt", "by signal 9")],
)
def test_a_command_that_failed_is_no_run(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_time((DATA / name).read_text())
    assert caught.value.slug == "failed-workload"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no report"),
        ((DATA / "time-gnu.txt").read_text() * 2, "holds 2 reports"),
        ((DATA / "time-gnu.txt").read_text() + "done\n", 'found "done"'),
        ((DATA / "time-gnu.txt").read_text().replace("Swaps", "Swabs"), 'no line "Swaps"'),
        ((DATA / "time-gnu.txt").read_text().replace("39296", "-1"), 'found "-1"'),
        ((DATA / "time-gnu.txt").read_text().replace("39296", "1e9"), 'found "1e9"'),
        ((DATA / "time-gnu.txt").read_text().replace(": 39296", " 39296"), "File system outputs"),
    ],
)
def test_what_is_no_report_of_time(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_time(text, "RUN/time.txt")


def test_a_cut_report() -> None:
    text = (DATA / "time-gnu.txt").read_text()
    for end in range(len(text) - len("Exit status: 0\n")):
        with pytest.raises(InputError):
            parse_time(text[:end])


# ops.txt


def test_ops() -> None:
    """The lines of memcachetest in mmtests: four loads, each five times."""
    text = "# memcachetest, by the second\n\n" + "".join(
        f"memcachetest-715M {number} ops/s\nio-duration-715M {seconds} s\n"
        for number, seconds in ((22720, 12), (22710, 11), (22730, 13))
    )
    scalars = parse_ops(text + "swapin-715M 0 pages lower\nlevel -2.5 count\n")
    assert values(scalars) == {
        "ops.memcachetest-715M": 22720,
        "ops.io-duration-715M_ns": 12 * 10**9,
        "ops.swapin-715M": 0,
        "ops.level_count": -2.5,
    }
    ways = [metric.better for metric, _ in scalars.values()]
    assert ways == ["higher", "lower", "lower", "neutral"]
    assert scalars["ops.memcachetest-715M"][0].unit == "ops/s"
    assert "mean of its lines" in scalars["ops.memcachetest-715M"][0].meaning


@pytest.mark.parametrize(
    ("line", "unit", "value", "better"),
    [
        ("a 3 ms", "ns", 3e6, "lower"),
        ("a 3 MiB/s", "bytes/s", 3 * 2**20, "higher"),
        ("a 3 MB/s", "bytes/s", 3e6, "higher"),
        ("a 3 kB", "bytes", 3000, "neutral"),
        ("a 3 KiB", "bytes", 3072, "neutral"),
        ("a 50 %", "ratio", 0.5, "neutral"),
        ("a 1.5e3 req/sec", "req/sec", 1500, "higher"),
        ("a 3 ms neutral", "ns", 3e6, "neutral"),
    ],
)
def test_units_of_ops(line: str, unit: str, value: float, better: str) -> None:
    ((metric, found),) = parse_ops(line).values()
    assert (metric.unit, found, metric.better) == (unit, value, better)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no lines"),
        ("# nothing\n", "has no lines"),
        ("a 1\n", 'found "a 1"'),
        ("a 1 s lower x\n", "found"),
        ("a 1,5 s\n", 'found "1,5", wanted a number'),
        ("a 0x10 s\n", "wanted a number"),
        ("a nan s\n", "wanted a number"),
        ("a inf s\n", "wanted a number"),
        ("a 1e999 s\n", "too large"),
        ("a 1e101 s\n", "too large"),
        ("a 1 2\n", "wanted a unit"),
        ("a[b] 1 s\n", "wanted a name"),
        ("a 1 s better\n", 'found "better"'),
        ("a 1 s\na 2 ms\n", 'a is in "ms", and in "s" before'),
        ("a 1 s\na 2 s lower\n", 'a is in "s lower"'),
        ("a 1 s\na_ns 2 s\n", "a_ns has the name of another line"),
    ],
)
def test_what_are_no_lines_of_ops(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_ops(text, "RUN/ops.txt")
    assert caught.value.subject == "RUN/ops.txt"


# vmstat


def test_gains_of_a_real_run() -> None:
    folder = ROOT / "examples/reclaim-writes"
    before, after = (
        parse_vmstat((folder / name).read_text(), name)
        for name in ("vmstat.before", "vmstat.after")
    )
    scalars = vmstat_gains(before, after, "vmstat.*")
    found = values(scalars)
    assert found["vmstat.nr_vmscan_write_count"] == 188_809
    assert found["vmstat.pswpout_count"] == 188_808
    assert "vmstat.nr_dirty_count" not in found  # a level, no counter
    assert "vmstat.allocstall_normal_count" in found  # by pattern
    assert scalars["vmstat.nr_vmscan_write_count"][0].better == "lower"
    throttled = scalars["vmstat.pgscan_direct_throttle_count"][0]
    assert "was throttled until kswapd" in throttled.meaning  # the exact name, not the pattern


def test_a_counter_that_went_back() -> None:
    with pytest.raises(InputError, match="pgfault is 7 before and 5 after"):
        vmstat_gains({"pgfault": 7}, {"pgfault": 5}, "RUN/vmstat.*")


def test_a_counter_of_one_side_only() -> None:
    assert not vmstat_gains({"pgfault": 7, "pswpin": 1}, {"oom_kill": 1}, "vmstat.*")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cut off"),
        ("\n", "is empty"),
        ("pgfault 7", "cut off"),
        ("pgfault\n", "wanted a name and a count"),
        ("pgfault -7\n", "wanted a name and a count"),
        ("pgfault 7 8\n", "wanted a name and a count"),
        ("pgfault ٣\n", "wanted a name and a count"),
        ("pgfault " + "9" * 5000 + "\n", "wanted a name and a count"),
        ("pgfault 7\npgfault 8\n", "has pgfault twice"),
    ],
)
def test_what_is_no_vmstat(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_vmstat(text, "RUN/vmstat.before")


SAMPLES = (
    "# ts=1000\nnr_dirty 10\nnr_writeback 0\n"
    "# ts=2000\nnr_dirty 30\nnr_writeback 4\n"
    "# ts=5000\nnr_dirty 30\nnr_writeback 0\n"
)


def test_levels_are_means_over_time() -> None:
    scalars = vmstat_levels(parse_samples(SAMPLES), "vmstat.samples")
    assert values(scalars) == {
        "vmstat.nr_dirty.mean_count": (20 * 1000 + 30 * 3000) / 4000,
        "vmstat.nr_dirty.max_count": 30,
        "vmstat.nr_writeback.mean_count": 2,
        "vmstat.nr_writeback.max_count": 4,
    }
    assert scalars["vmstat.nr_dirty.max_count"][0].meaning == "Dirty pages, at most."


def test_a_sample_that_a_killed_recorder_cut_is_left_out() -> None:
    assert len(parse_samples(SAMPLES)) == 3
    for cut in range(1, len("nr_dirty 30\nnr_writeback 0\n") + 1):
        assert len(parse_samples(SAMPLES[:-cut])) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no sample"),
        ("nr_dirty 10\n", "wanted # ts=NS"),
        ("# ts=x\n", "wanted # ts=NS"),
        (SAMPLES.replace("30", "3x"), "wanted a name and a count"),
    ],
)
def test_what_are_no_samples(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_samples(text)


def test_the_line_of_a_bad_sample() -> None:
    with pytest.raises(InputError) as caught:
        parse_samples(SAMPLES.replace("writeback 4", "writeback x"))
    assert caught.value.at == "line 6"


def test_samples_out_of_order() -> None:
    samples = parse_samples(SAMPLES.replace("ts=5000", "ts=2000"))
    with pytest.raises(InputError, match="a sample of 2000 ns after one of 2000 ns"):
        vmstat_levels(samples, "vmstat.samples")


# vmstat.txt


@pytest.mark.parametrize("form", ["", "-wide", "-active"])
def test_procps_vmstat(form: str) -> None:
    text = (DATA / f"procps-vmstat{form}.txt").read_text()
    heads, _, *rows = (line.split() for line in text.splitlines()[1:])
    scalars = parse_procps(text)
    found = values(scalars)
    assert len(rows) == 2

    def mean(name: str) -> float:
        return sum(int(row[heads.index(name)]) for row in rows) / len(rows)

    assert found["procps.r_count"] == mean("r")
    assert found["procps.free_bytes"] == mean("free") * 1024
    assert found["procps.bo_bytes_per_s"] == mean("bo") * 1024
    assert found["procps.us_ratio"] == pytest.approx(mean("us") / 100)
    assert found["procps.cs"] == mean("cs")
    assert ("procps.active_bytes" in found) == (form == "-active")
    assert scalars["procps.si_bytes_per_s"][0].better == "lower"


def test_headings_that_come_again_are_no_rows() -> None:
    text = (DATA / "procps-vmstat.txt").read_text()
    groups, heads, boot, *rows = text.splitlines()
    again = "\n".join([groups, heads, boot, rows[0], groups, heads, rows[1], ""])
    assert values(parse_procps(again)) == values(parse_procps(text))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [lines[0], lines[1].replace(" b ", " r ", 1), *lines[2:]], "the columns"),
        (lambda lines: [], "is empty"),
        (lambda lines: lines[:3], "no sample but the one since boot"),
        (lambda lines: lines[2:], "wanted the names of columns"),
        (lambda lines: [*lines, "1 2 3"], "wanted 17 numbers"),
        (lambda lines: [*lines, lines[-1].replace(" 0 ", " x ", 1)], "wanted 17 numbers"),
        (lambda lines: [lines[0], lines[1].replace("swpd", "swap"), *lines[2:]], "the columns"),
        (lambda lines: [*lines, "r b swpd"], "other columns"),
    ],
)
def test_what_is_no_procps_vmstat(change: Callable[[list[str]], list[str]], said: str) -> None:
    lines = (DATA / "procps-vmstat.txt").read_text().splitlines()
    with pytest.raises(InputError, match=said):
        parse_procps("\n".join(change(lines)), "RUN/vmstat.txt")


# All files of a run.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with every file of measurements."""
    run = tmp_path / "run"
    shutil.copytree(ROOT / "examples/rate-limited-writers", run)
    shutil.copy(DATA / "perf-text-r5.txt", run / "perf-stat.txt")
    shutil.copy(DATA / "time-gnu.txt", run / "time.txt")
    (run / "ops.txt").write_text("rate 7 ops/s\n")
    (run / "vmstat.samples").write_text(SAMPLES)
    return run


def test_a_folder_and_its_database_say_the_same(folder: Path, tmp_path: Path) -> None:
    of_files = measurements(files_of_folder(folder))
    with wbscope.open(folder) as run:
        of_run = measurements(files_of_run(run))
        shutil.copy(run.database, tmp_path / "run.db")
    with wbscope.open(tmp_path / "run.db") as run:
        of_database = measurements(files_of_run(run))
    assert values(of_files.scalars) == values(of_run.scalars) == values(of_database.scalars)
    kinds = {name.partition(".")[0] for name in of_files.scalars}
    assert kinds == {"fio", "perf", "time", "ops", "vmstat"}
    assert "fio.write.bw_bytes_per_s[job=aggressive]" in of_files.scalars
    assert not of_files.warnings


def test_every_real_fio_document_survives_the_database(folder: Path) -> None:
    for path in (DATA / f"fio-3.33{form}.json" for form in ("", "-plus", "-group")):
        shutil.copy(path, folder / "fio.json")
        with wbscope.open(folder) as run:
            found = measurements(files_of_run(run)).scalars
        direct = parse_fio(fio_document(path.read_text()))
        assert {name: value for name, value in values(found).items() if name[:4] == "fio."} == (
            values(direct)
        )


def test_a_fio_document_that_the_ingester_refused(folder: Path) -> None:
    shutil.copy(DATA / "fio-3.33-both.json", folder / "fio.json")
    with wbscope.open(folder) as run, pytest.raises(InputError, match="not read whole") as caught:
        files_of_run(run)
    assert "--output-format=json+" in (caught.value.fix or "")


def test_a_run_without_measurements_has_none(tmp_path: Path) -> None:
    assert not measurements(files_of_folder(tmp_path)).scalars


def test_perf_stat_may_be_called_json_but_not_be_there_twice(folder: Path) -> None:
    (folder / "perf-stat.txt").unlink()
    shutil.copy(DATA / "perf-json.txt", folder / "perf-stat.json")
    assert "perf.task-clock_ns" in measurements(files_of_folder(folder)).scalars
    shutil.copy(DATA / "perf-text.txt", folder / "perf-stat.txt")
    with pytest.raises(InputError, match="perf-stat"):
        measurements(files_of_folder(folder))


def test_a_file_too_large_for_the_database_is_read_from_the_folder(folder: Path) -> None:
    sample = "".join(f"filler_{number} 7\n" for number in range(70_000))
    (folder / "vmstat.samples").write_text(
        f"# ts=1\nnr_dirty 10\n{sample}# ts=2\nnr_dirty 30\n{sample}"
    )
    with wbscope.open(folder) as run:
        found = measurements(files_of_run(run)).scalars
    assert values(found)["vmstat.nr_dirty.mean_count"] == 20


def test_half_a_pair_is_a_warning(folder: Path) -> None:
    (folder / "vmstat.after").unlink()
    (folder / "vmstat.samples").unlink()
    found = measurements(files_of_folder(folder))
    assert [notice.slug for notice in found.warnings] == ["half-a-pair"]
    assert not any(name.startswith("vmstat.") for name in found.scalars)


def test_samples_stand_in_for_the_pair(folder: Path) -> None:
    (folder / "vmstat.after").unlink()
    (folder / "vmstat.before").unlink()
    text = SAMPLES.replace("nr_dirty 10", "nr_dirty 10\npgfault 5")
    (folder / "vmstat.samples").write_text(text.replace("nr_dirty 30", "nr_dirty 30\npgfault 9"))
    assert values(measurements(files_of_folder(folder)).scalars)["vmstat.pgfault_count"] == 4


@pytest.mark.parametrize("name", ["fio.json", "perf-stat.txt", "time.txt", "ops.txt"])
def test_a_bad_file_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("nonsense\n")
    with pytest.raises(InputError, match=name):
        measurements(files_of_folder(folder))
    with wbscope.open(folder) as run, pytest.raises(InputError, match=name):
        measurements(files_of_run(run))


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "time.txt").write_bytes(b"\tCommand\xff")
    with pytest.raises(InputError, match="found byte 0xff") as caught:
        files_of_folder(folder)
    assert caught.value.at == "file offset 8"


def test_a_file_too_large(folder: Path) -> None:
    with (folder / "time.txt").open("r+b") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(InputError, match=f"more than {16 << 20} bytes"):
        files_of_folder(folder)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "time.txt").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        files_of_folder(tmp_path)


PARSERS: list[tuple[str, Callable[[str], object]]] = [
    *((path.name, parse_perf_stat) for path in sorted(DATA.glob("perf-*.txt"))),
    *((path.name, parse_procps) for path in sorted(DATA.glob("procps-*.txt"))),
    *((path.name, parse_time) for path in sorted(DATA.glob("time-*.txt"))),
    ("fio-3.33-plus.json", lambda text: parse_fio(fio_document(text))),
    ("fio-3.33-group.json", lambda text: parse_fio(fio_document(text))),
]


# Where, as a share of what is there; how many characters go; what comes.
_PIECES = ["", "\n", "{", "}", '"', "9" * 400, "-", "NaN", "null", "\0", "٣", "1e308", "  ", ":"]
_CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1), st.sampled_from((0, 1, 1, 7, 60)), st.sampled_from(_PIECES) | st.text()
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.dealt
@pytest.mark.parametrize(("name", "parse"), PARSERS, ids=[name for name, _ in PARSERS])
@for_all(150, changes=_CHANGES)
def test_changed_files_give_numbers_or_one_error(
    name: str, parse: Callable[[str], object], changes: list[tuple[float, int, str]]
) -> None:
    changed = (DATA / name).read_text()
    for place, gone, piece in changes:
        start = round(place * len(changed))
        changed = changed[:start] + piece + changed[start + gone :]
    with suppress(InputError):
        parse(changed)
