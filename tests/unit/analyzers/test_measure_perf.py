# SPDX-License-Identifier: Apache-2.0
"""perf-stat.txt, and meta.json of the recorder, as measurements."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.archives import unpacked
from wbscope.base.errors import InputError
from wbscope.measure.files import parse_command
from wbscope.measure.perf import parse_perf_stat

# perf-stat.txt: text, JSON, repeats; other outputs of perf stat are refused.

DATA = unpacked("data") / "measure"


def values(text: str) -> dict[str, float | None]:
    return {name: value for name, (_, value) in parse_perf_stat(text).items()}


def of_file(name: str) -> dict[str, float | None]:
    return values((DATA / name).read_text())


def with_line(line: str) -> str:
    """A result of perf stat with this line in it."""
    return (
        "\n Performance counter stats for 'true':\n\n"
        f"{line}\n\n       0.001199038 seconds time elapsed\n\n"
    )


def test_text() -> None:
    assert of_file("perf-text.txt") == {
        "perf.task-clock_ns": 16_470_000,
        "perf.context-switches_count": 6,
        "perf.cpu-migrations_count": 0,
        "perf.page-faults_count": 98,
        "perf.cycles_count": None,
        "perf.instructions_count": None,
        "perf.branches_count": None,
        "perf.branch-misses_count": None,
        "perf.time_elapsed_ns": 63_218_162,
        "perf.user_ns": 0,
        "perf.sys_ns": 17_089_000,
    }


def test_repeats_are_one_value() -> None:
    found = of_file("perf-text-r5.txt")
    assert found["perf.repeats_count"] == 5
    assert found["perf.time_elapsed_ns"] == 12_510_000
    assert found["perf.task-clock_ns"] == 3_200_000


def test_the_table_of_single_runs_is_passed_over() -> None:
    found = of_file("perf-text-table.txt")
    assert found["perf.repeats_count"] == 3
    assert found["perf.time_elapsed_ns"] == 3_260_000


@pytest.mark.parametrize("name", ["perf-json.txt", "perf-json-r5.txt"])
def test_json(name: str) -> None:
    told = [json.loads(line) for line in (DATA / name).read_text().splitlines() if "{" in line]
    found = of_file(name)
    assert len(found) == len(told) == 8
    assert found["perf.task-clock_ns"] == pytest.approx(float(told[0]["counter-value"]) * 10**6)
    assert found["perf.page-faults_count"] == float(told[3]["counter-value"])
    assert found["perf.cycles_count"] is None


def test_tracepoints_and_modifiers() -> None:
    scalars = parse_perf_stat((DATA / "perf-tracepoints.txt").read_text())
    assert scalars["perf.task-clock:u_ns"][0].better == "lower"
    metric, value = scalars["perf.writeback:balance_dirty_pages_count"]
    assert (metric.better, value) == ("neutral", 0)
    assert scalars["perf.cache-references_count"][0].better == "lower"


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("     1,234,567      cycles        (49.87%)", "perf.cycles_count", 1_234_567),
        ("     1,234.56 msec task-clock  #  0.9 CPUs utilized", "perf.task-clock_ns", 1234.56e6),
        (
            "  3,131,111  cpu_core/cycles/  # 1.2 GHz (99.5%)",
            "perf.cpu_core/cycles/_count",
            3_131_111,
        ),
        ("   12.50 Joules power/energy-pkg/", "perf.power/energy-pkg/", 12.5),
        ("    2.00 MiB  uncore_imc/data_reads/", "perf.uncore_imc/data_reads/_bytes", 2 << 20),
        ("   <not counted>   cycles   (0.00%)", "perf.cycles_count", None),
        ("   97   page-faults   ( +-  0.20% )  (49.87%)", "perf.page-faults_count", 97),
    ],
)
def test_lines_of_other_machines(line: str, name: str, value: float | None) -> None:
    assert values(with_line(line))[name] == value


def test_metrics_below_an_event_and_hints_are_passed_over() -> None:
    text = with_line(
        "   7   cycles\n                 #     0.3 %  tma_frontend_bound\n"
        "Some events weren't counted. Try disabling the NMI watchdog:\n"
        "\techo 0 > /proc/sys/kernel/nmi_watchdog\n\tperf stat ...\n"
        "\techo 1 > /proc/sys/kernel/nmi_watchdog"
    )
    assert values(text)["perf.cycles_count"] == 7


def test_what_the_command_printed_goes_before() -> None:
    text = "97+0 records in\n97+0 records out\n" + with_line("   7   cycles")
    assert values(text)["perf.cycles_count"] == 7


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("perf-interval.txt", "is of perf stat -I"),
        ("perf-csv-interval.txt", "prints each interval"),
        ("perf-csv-by-cpu.txt", 'counts by parts: begins with "CPU0"'),
        ("perf-csv-by-socket.txt", 'counts by parts: begins with "S0"'),
        ("perf-append.txt", "holds 3 results"),
        ("perf-by-cpu.txt", "each CPU or thread by itself"),
        ("perf-by-socket.txt", "each CPU or thread by itself"),
        ("perf-by-thread.txt", "each CPU or thread by itself"),
        ("perf-json-by-cpu.txt", "counts by cpu"),
        ("perf-json-interval.txt", "counts by interval"),
        ("time-gnu.txt", "has no line"),
    ],
)
def test_other_outputs_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_perf_stat((DATA / name).read_text(), "RUN/perf-stat.txt")
    assert caught.value.slug == "bad-measurement"
    assert caught.value.subject == "RUN/perf-stat.txt"


@pytest.mark.parametrize(
    "line",
    [
        "   1.234   cycles",  # 1234 where a point groups digits
        "   12,34   cycles",
        "   0,62 msec task-clock",
        "   1'234   cycles",
        "   1.234,56 msec task-clock",
        "   7   cycles   something else",
        "   -7   cycles",
        "   cycles",
        "   " + "9" * 400 + "   cycles",
        "   ٣   cycles",
    ],
)
def test_numbers_that_cannot_be_told(line: str) -> None:
    with pytest.raises(InputError) as caught:
        values(with_line(line))
    assert caught.value.at == "line 4"


def test_an_event_that_stands_twice() -> None:
    with pytest.raises(InputError, match='counts "cycles" twice'):
        values(with_line("   7   cycles\n   8   cycles"))


def test_an_event_that_stands_twice_in_json() -> None:
    lines = (DATA / "perf-json.txt").read_text().splitlines(keepends=True)
    twice = next(index for index, line in enumerate(lines) if "page-faults" in line)
    lines.insert(twice, lines[twice])
    with pytest.raises(InputError, match='counts "page-faults" twice') as caught:
        values("".join(lines))
    assert caught.value.at == f"line {twice + 2}"


def test_a_time_that_stands_twice() -> None:
    with pytest.raises(InputError, match='says "time elapsed" twice') as caught:
        values(with_line("   0.5 seconds time elapsed"))
    assert caught.value.subject == "perf-stat.txt"
    assert caught.value.at == "line 6"


def test_an_event_with_signs_that_are_not_shown() -> None:
    assert "perf.a_b_count" in values(with_line("   7   a\u202eb"))


def test_results_appended_to_one_file() -> None:
    with pytest.raises(InputError, match="holds 2 results"):
        values(with_line("   7   cycles") * 2)


def test_cut_text() -> None:
    text = (DATA / "perf-text.txt").read_text()
    for end in range(text.index("seconds time")):
        with pytest.raises(InputError):
            values(text[:end])


def test_cut_json() -> None:
    lines = (DATA / "perf-json.txt").read_text().splitlines(keepends=True)
    last = len("".join(lines[:-1]))
    text = "".join(lines)
    for end in range(last + 1, len(text) - 1, 7):
        with pytest.raises(InputError):
            values(text[:end])


@pytest.mark.parametrize(
    "line",
    [
        '{"event" : "cycles"}',
        '{"counter-value" : 7, "unit" : "", "event" : "cycles"}',
        '{"counter-value" : "7", "unit" : "", "event" : 1}',
        '{"counter-value" : "-7", "unit" : "", "event" : "cycles"}',
        '{"counter-value" : "1e99", "unit" : "", "event" : "cycles"}',
        '{"counter-value" : "7", "unit" : "", "event" : "cycles"} {}',
        "{}",
        "# nothing",
    ],
)
def test_bad_json_lines(line: str) -> None:
    with pytest.raises(InputError):
        values(f"{line}\n" if line.startswith("{") else "{\n")


# meta.json of the recorder as measurements: numbers, refusals, files of others.

_META: dict[str, Any] = {
    "schema": "wbscope.record/1",
    "command": ["dd"],
    "command_duration_ns": 1_500_000_000,
    "command_user_s": 0.25,
    "command_system_s": 1.125,
    "command_max_rss_bytes": 2048 * 1024,
    "command_major_faults_count": 3,
    "command_exit_code": 0,
    "sync_duration_ns": 7,
}


def _values(**more: Any) -> dict[str, float | None]:
    scalars = parse_command(json.dumps(_META | more))
    return {name: value for name, (_, value) in scalars.items()}


def test_numbers_and_units() -> None:
    assert _values() == {
        "command.duration_ns": 1_500_000_000,
        "command.user_ns": 250_000_000,
        "command.sys_ns": 1_125_000_000,
        "command.max_rss_bytes": 2 << 20,
        "command.major_faults_count": 3,
        "command.sync_ns": 7,
    }


def test_what_is_not_known_is_no_metric() -> None:
    assert "command.sync_ns" not in _values(sync_duration_ns=None)
    assert _values(command=[]) == {}


def test_anybody_elses_file() -> None:
    assert not parse_command('{"name": "x", "command": "y", "command_exit_code": 1}')
    assert not parse_command("[1]")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"command_duration_ns": -1}, "command_duration_ns: found -1"),
        ({"command_user_s": "1"}, "command_user_s: found '1'"),
        ({"command_user_s": True}, "command_user_s: found True"),
    ],
)
def test_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _values(**more)


def test_damaged() -> None:
    with pytest.raises(InputError, match="is no JSON"):
        parse_command('{"schema": "wbscope.rec')


def test_nested_without_end() -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        parse_command('{"schema": ' + "[" * 100_000)
