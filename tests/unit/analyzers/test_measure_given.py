# SPDX-License-Identifier: Apache-2.0
"""Files that are given by themselves: whose they are, their parts, their runs, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from support.archives import unpacked
from wbscope.base.errors import InputError, UsageError, WbscopeError
from wbscope.measure.files import (
    is_measurements,
    parse_measurements,
    read_measurements,
    runs_of_part,
)
from wbscope.measure.fio import fio_document, parse_fio
from wbscope.measure.metric import FileRun
from wbscope.measure.perf import parse_perf_stat
from wbscope.render.compare import gain

DATA = unpacked("data") / "measure"
S = 1e9


def values(run: FileRun) -> dict[str, float | None]:
    return {name: value for name, (_, value) in run.scalars.items()}


def runs(name: str, part: str | None = None) -> tuple[FileRun, ...]:
    return runs_of_part(read_measurements(DATA / name), part, name)


def only(name: str, part: str | None = None) -> dict[str, float | None]:
    (run,) = runs(name, part)
    return values(run)


# time of shells


def test_time_of_bash_and_posix() -> None:
    assert only("time-bash.txt") == {
        "time.elapsed_ns": 0.052 * S, "time.user_ns": 0, "time.sys_ns": 0.024 * S,
    }  # fmt: skip
    assert only("time-posix.txt")["time.elapsed_ns"] == 0.06 * S


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("real\t20m43.901s\nuser\t0m8.988s\nsys\t0m58.227s\n", 1243.901),
        ("real 0m3,629s\nuser 0m0,016s\nsys 0m3,613s\n", 3.629),  # de_DE
        ("real\t1h2m3.50s\nuser\t0m0.00s\nsys\t0m0.00s\n", 3723.5),  # zsh, ksh
        ("real 3723.50\nuser 0.00\nsys 0.00\n", 3723.5),
        ("0.00user 3.61system 1:02:03elapsed 99%CPU (0avgtext+0avgdata 1076maxresident)k\n", 3723),
        ("dd if=a of=b  0.01s user 3.61s system 99% cpu 1:03.500 total\n", 63.5),
        ("time :: fsmark 131.05 user 802.54 system 1002.61 elapsed\n", 1002.61),
    ],
)
def test_forms_of_time(text: str, seconds: float) -> None:
    (run,) = runs_of_part(parse_measurements(text, "log"), None, "log")
    assert values(run)["time.elapsed_ns"] == pytest.approx(seconds * S)


def test_each_time_in_a_log_is_a_run() -> None:
    found = runs("time-bash-6.txt")
    told = re.findall(r"real\t0m([0-9.]+)s", (DATA / "time-bash-6.txt").read_text())
    assert len(told) == 6
    assert [values(run)["time.elapsed_ns"] for run in found] == [float(one) * S for one in told]


def test_settings_and_steps_of_a_script() -> None:
    found = read_measurements(DATA / "mail-2019.txt")
    assert found.whole is None
    assert list(found.parts) == [f"vm.dirty_write_behind = {number}" for number in range(3)]
    elapsed = {
        part: tuple(
            float(values(run)[f"time.elapsed_ns[step={step}]"] or 0) / S
            for (run,) in [one]
            for step in ("COPY", "SYNC")
        )
        for part, one in found.parts.items()
    }
    assert list(elapsed.values()) == [(3.629, 31.953), (32.738, 0.427), (32.168, 0.421)]


def test_one_label_for_all_is_no_step() -> None:
    block = "real 1.00\nuser 0.50\nsys 0.25\n"
    (part,) = parse_measurements(f"COPY\n{block}COPY\n{block}", "log").parts.values()
    assert [set(values(run)) for run in part] == [
        {"time.elapsed_ns", "time.user_ns", "time.sys_ns"}
    ] * 2


def test_a_part_by_what_only_its_name_has() -> None:
    assert runs("mail-2019.txt", "= 1") == runs("mail-2019.txt", "vm.dirty_write_behind = 1")
    with pytest.raises(UsageError, match="means 3 of the 3 parts") as caught:
        runs("mail-2019.txt", "dirty_write")
    assert caught.value.have is not None
    with pytest.raises(UsageError, match="holds 3 parts, wanted one"):
        runs("mail-2019.txt")


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("real 1.00\nuser 0.50\n", "wanted the line sys", "line 3"),
        ("hello\nreal 0m1.00s\nsys 0m1.00s\n", 'found "sys 0m1.00s"', "line 3"),
        ("real 0m61.00s\nuser 0m1.00s\nsys 0m1.00s\n", "wanted a time", "line 1"),
    ],
)
def test_half_a_time(text: str, said: str, at: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        parse_measurements(text, "log")
    assert caught.value.at == at


# perf stat


def test_the_mail_of_2011_with_spread() -> None:
    (old,) = runs("mail-2011-copy.txt", "3.0")
    (new,) = runs("mail-2011-copy.txt", "3.0-per-zone-dirty")
    assert values(old)["perf.time_elapsed_ns"] == 912.625436885 * S
    assert values(old)["perf.task-clock_ns"] == 28574.255540e6
    assert values(new)["perf.cpu-migrations_count"] == 28028
    assert values(old)["vmstat.nr_vmscan_write_count"] == 667839
    assert values(new)["vmstat.nr_vmscan_write_count"] == 0
    spread = old.scalars.spreads["perf.time_elapsed_ns"]
    assert spread.n == 6
    # Of the mean, in per cent, as the mail has it.
    assert spread.sd / np.sqrt(6) / (912.625436885 * S) == pytest.approx(0.03851)


def test_time_and_counters_of_a_mail() -> None:
    assert only("mail-2011-fsmark.txt", "3.0")["time.elapsed_ns"] == 1243.901 * S
    assert only("mail-2011-fsmark.txt", "per-zone")["vmstat.nr_vmscan_write_count"] == 161


def test_a_mail_of_two_tests_is_refused_with_the_lines() -> None:
    text = (DATA / "mail-2011-copy.txt").read_text() + (DATA / "mail-2011-fsmark.txt").read_text()
    with pytest.raises(InputError, match="holds results that are no repetitions") as caught:
        parse_measurements(text, "mail")
    assert re.fullmatch("line [0-9]+", str(caught.value.at))


def test_layouts_of_old_perf() -> None:
    linux_3, linux_4 = only("perf-3.16.txt"), only("perf-4.9.txt")
    assert linux_3["perf.task-clock_ns"] == 28574.255540e6
    assert linux_3["perf.cycles_count"] == 42848633897
    assert linux_4["perf.task-clock_ns"] == 3.19912e6
    assert linux_4["perf.page-faults_count"] == 236


def test_the_spread_of_perf_is_that_of_its_runs() -> None:
    """--table prints the time of each run."""
    text = (DATA / "perf-text-table.txt").read_text()
    single = [float(one) for one in re.findall(r"^\s+([0-9.]+) \([+-]", text, re.MULTILINE)]
    assert len(single) == 3
    spread = parse_perf_stat(text).spreads["perf.time_elapsed_ns"]
    assert spread.n == 3
    assert spread.sd == pytest.approx(np.std(single, ddof=1) * S, rel=0.02)


@pytest.mark.parametrize("name", ["perf-csv.txt", "perf-csv-semicolon.txt", "perf-csv-r5.txt"])
def test_fields_of_perf(name: str) -> None:
    lines = [line for line in (DATA / name).read_text().splitlines() if line[:1] not in ("#", "")]
    separator = ";" if ";" in lines[0] else ","
    told = {line.split(separator)[2]: line.split(separator)[0] for line in lines}
    found = only(name)
    assert len(found) == len(told)
    assert found["perf.task-clock_ns"] == float(told["task-clock"]) * 1e6
    assert found["perf.page-faults_count"] == float(told["page-faults"])
    assert found.get("perf.cycles_count") is None


def test_what_a_command_printed_before_the_fields() -> None:
    assert only("perf-csv-stderr.txt")["perf.duration_time_ns"] == 7634856


def test_fields_with_a_decimal_comma() -> None:
    text = "0,48;msec;task-clock:u;475906;100,00;0,668;CPUs utilized\n"
    (run,) = runs_of_part(parse_measurements(text, "x"), None, "x")
    assert values(run) == {"perf.task-clock:u_ns": 480000}


def test_results_that_were_appended_are_runs() -> None:
    assert [values(run)["perf.task-clock_ns"] for run in runs("perf-append.txt")][:2] == [
        2.90e6,
        3.00e6,
    ]
    fields = (DATA / "perf-csv.txt").read_text()
    (part,) = parse_measurements(fields * 4, "x").parts.values()
    assert len(part) == 4


def test_results_with_other_events_are_no_repetitions() -> None:
    text = (DATA / "perf-csv.txt").read_text()
    with pytest.raises(InputError, match="twice"):
        parse_measurements(text + text.replace("page-faults", "faults,1,1\n5,,x"), "x")


# hyperfine


def test_each_time_of_hyperfine_is_a_run() -> None:
    document = json.loads((DATA / "hyperfine-1.16.json").read_text())
    found = runs("hyperfine-1.16.json")
    times = document["results"][0]["times"]
    assert [values(run) for run in found] == [
        {"hyperfine.time_ns": round(time * S, 6)} for time in times
    ]


def test_several_commands_of_hyperfine() -> None:
    document = json.loads((DATA / "hyperfine-1.19.json").read_text())
    found = read_measurements(DATA / "hyperfine-1.19.json")
    commands = [result["command"] for result in document["results"]]
    assert list(found.parts) == commands
    assert found.whole is not None
    assert len(found.whole) == sum(len(result["times"]) for result in document["results"])
    assert all(run.is_sample for run in found.whole)
    first = list(values(found.whole[0]))
    assert first[0].startswith("hyperfine.time_ns[command=dd_if_/dev/zero")
    assert [notice.slug for notice in found.notices] == ["several-commands"]
    (one,) = [part for name, part in found.parts.items() if name.startswith("cp")]
    assert list(values(one[0])) == ["hyperfine.time_ns", "hyperfine.max_rss_bytes"]


def test_a_command_that_failed_under_hyperfine() -> None:
    document = json.loads((DATA / "hyperfine-1.19.json").read_text())
    document["results"][0]["exit_codes"][3] = 1
    with pytest.raises(InputError, match=r"run 4 of .* did not end well") as caught:
        parse_measurements(json.dumps(document), "x.json")
    assert caught.value.slug == "failed-workload"
    del document["results"][0]["times"]
    with pytest.raises(InputError, match='has no "times"'):
        parse_measurements(json.dumps(document), "x.json")


# mmtests


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("mail-2013.txt", "3.10.0-rc1-vanilla", "3.10.0-rc1-lessdisrupt-v4"),
        ("mmtests-today.txt", "6.12.0-vanilla", "6.13.0-throttle-v2"),
    ],
)
def test_tables_of_mmtests_say_which_way_is_good(name: str, old: str, new: str) -> None:
    """With the way that was read, the gains are those that mmtests printed."""
    found = read_measurements(DATA / name)
    assert list(found.parts) == [old, new]
    (base,), (other,) = found.parts.values()
    text = (DATA / name).read_text()
    printed = [float(one) for one in re.findall(r"[(*]\s*(-?[0-9.]+)%\s*[)*]", text)][1::2]
    judged = [
        (metric, value, other.scalars[name][1])
        for name, (metric, value) in base.scalars.items()
        if not name.startswith(("mmtests_vmstat", "mmtests.User", "mmtests.Sys", "mmtests.Elap"))
    ]
    assert len(judged) == len(printed)
    for (metric, value, now), told in zip(judged, printed, strict=True):
        if metric.better != "neutral" and value and now:
            assert gain(metric, value, now) == pytest.approx(told, abs=0.01)


def test_rows_without_per_cent() -> None:
    old = only("mail-2013.txt", "vanilla")
    assert old["mmtests_vmstat.value[name=Page_writes_by_reclaim]"] == 1655843
    assert old["mmtests_vmstat.value[name=Kswapd_efficiency]"] == 17
    assert old["mmtests_vmstat.value[name=Kswapd_velocity]"] == 5398.371
    today = only("mmtests-today.txt", "throttle")
    assert today["mmtests.Elapsed_ns"] == pytest.approx(961.80 * S)
    assert today["mmtests_vmstat.value[name=Kswapd_efficiency]"] == 97


def test_a_row_with_another_number_of_columns() -> None:
    text = (DATA / "mmtests-today.txt").read_text() + "Ops a 1.00 (   0.00%)\n"
    with pytest.raises(InputError, match="Ops a has 1 values, wanted 2"):
        parse_measurements(text, "x")


# fio


def test_fio_of_today_with_notes_before_it() -> None:
    text = (DATA / "fio-3.41-plus.json").read_text()
    assert text.startswith("fio: this platform")
    older = parse_fio(fio_document((DATA / "fio-3.33-plus.json").read_text()))
    assert only("fio-3.41-plus.json") == {name: value for name, (_, value) in older.items()}


# Tables with a header


def test_a_line_a_number() -> None:
    found = read_measurements(DATA / "table-long.csv")
    frame = pandas.read_csv(DATA / "table-long.csv")
    assert list(found.parts) == list(frame["kernel"].unique()) == ["6.12.9", "6.13-rc1"]
    for kernel, part in found.parts.items():
        table = frame[frame["kernel"] == kernel].pivot(
            index="run", columns="metric", values="value"
        )
        assert len(part) == len(table) == 2
        for run, (_, told) in zip(part, table.iterrows(), strict=True):
            assert values(run)["ops.tps"] == told["tps"]
            assert values(run)["ops.stall_ns"] == told["stall"] * S
    metric, _ = found.parts["6.12.9"][0].scalars["ops.swapins"]
    assert (metric.unit, metric.better) == ("pages", "lower")
    assert values(found.parts["6.13-rc1"][1])["ops.swapins"] is None


def test_lines_of_a_metric_without_runs_are_repetitions() -> None:
    text = "metric,value,unit\n" + "".join(f"t,{n},s\nr,{n},ops/s\n" for n in (3, 4, 5))
    (part,) = parse_measurements(text, "x.csv").parts.values()
    assert [values(run) for run in part] == [{"ops.t_ns": n * S, "ops.r": n} for n in (3, 4, 5)]


def test_columns_that_tell_no_lines_of_a_metric_apart() -> None:
    """What is one for each metric, or for each side, is no key; and runs are told by theirs."""
    for text in (
        "side,tool,metric,value\nold,x,t,1\nold,x,t,2\nnew,y,t,3\nnew,y,t,4\n",
        "side,tool,metric,value\nold,x,t,1\nold,x,t,2\nold,z,u,2\n",
        "side,run,date,metric,value\nold,1,mon,t,1\nold,2,tue,t,2\n",
    ):
        part = parse_measurements(text, "x.csv", "x.csv").parts["old"]
        assert [values(run)["ops.t"] for run in part] == [1, 2]


def test_what_tells_lines_apart_is_said_with_its_remedy() -> None:
    """Times with 1, 8 and 64 threads were three repetitions."""
    text = "side,threads,metric,value,unit\nold,1,t,10,s\nold,8,t,2,s\nold,64,t,1,s\n"
    with pytest.raises(InputError, match="no column run") as caught:
        parse_measurements(text, "x.csv", "x.csv")
    assert caught.value.fix is not None
    assert "time_threads_8" in caught.value.fix
    assert "name the column run" in caught.value.fix


def test_a_column_a_metric() -> None:
    found = read_measurements(DATA / "table-wide.csv")
    (part,) = found.parts.values()
    assert [run.name for run in part] == ["1", "2", "3"]
    assert values(part[0]) == {
        "ops.time_ns": 12.5 * S, "ops.bw_bytes_per_s": 101.5e6, "ops.tps": 22720,
        "ops.io_bytes": 4096 * 2**10,
    }  # fmt: skip
    assert values(part[2])["ops.bw_bytes_per_s"] is None
    assert [notice.message for notice in found.notices] == ["columns without numbers: date, note"]


def test_published_means() -> None:
    (run,) = runs("table-means.csv", "+patch")
    spread = run.scalars.spreads["ops.cache-references"]
    assert (values(run)["ops.cache-references"], spread.sd, spread.n) == (620.1, 16.5, 8)


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("run,metric,value,unit\n1,t,3,s\n1,t,4,s\n", 'ops.t_ns of run "1" twice', "line 3"),
        ("run,metric,value,unit\n1,t,x,s\n", 'found "x", wanted a number', "line 2"),
        ("run,metric,value,unit\n1,t,3\n", "has 3 cells, wanted the 4", "line 2"),
        ("run,metric,value,unit\n,t,3,s\n", "has no run", "line 2"),
        ("run,metric,value,unit,better\n1,t,3,s,up\n", 'found "up"', "line 2"),
        ("metric,mean,sd,n\nt,3,-1,5\n", "s.d. -1", "line 2"),
        ("metric,mean,sd,n\nt,3,1,2.5\n", 'found n "2.5"', "line 2"),
        ("metric,mean,sd,n\nt,,1,2\n", "found no mean", "line 2"),
        ("metric,mean,sd,n\nt,1,1,2\nt,1,1,2\n", "ops.t twice", "line 3"),
        ("run,t_s,u\n1,3,4\n1,5,6\n", 'has run "1" twice', "line 3"),
        ("run,t_s,u\n1,3,4\n2,5,hi\n", 'found "hi"', "line 3"),
        ("command,mean,stddev,median,user\na,1,2,3,4\n", "hyperfine's CSV", "line 1"),
        ("threads,metric,value\n1,t,9\n8,t,2\n", 'threads "8", and "1" before, and', "line 3"),
        ("n,metric,value\n1,t,9\n8,t,2\n", 'with n "8", and "1" before', "line 3"),
        ("run,size,metric,value\n1,4k,t,9\n1,8k,t,2\n", 'of run "1" twice', "line 3"),
        ("side\trun\tt_s\nold\t1\t999\nold\t2\t1,002\n", 'found "1,002", wanted', "line 3"),
        ("run\tt_s\tu\n1\t12,5\t3\n2\t12,7\t4\n", "only where semicolons part", "line 2"),
        ('run,t_s,u\n1,"1,002",3\n2,"1,010",4\n', "only where semicolons part", "line 2"),
        ("side;run;t_s\nold;1;999\nold;2;1,002\n", "which is 1002 or 1.002", "line 3"),
        ("run;metric;value;unit\n1;t;999;s\n2;t;1,002;s\n", "1002 or 1.002", "line 3"),
        ("run;t_s;u\n1;1,002,003;12,5\n2;7;12,7\n", 'found "1,002,003"', "line 2"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(text: str, said: str, at: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        parse_measurements(text, "x.csv", "x.csv")
    assert (caught.value.at, caught.value.subject) == (at, "x.csv")
    assert caught.value.fix


def test_decimal_commas_that_are_no_thousands() -> None:
    """One that cannot part thousands tells what the others are."""
    for more in ("12,50", "0,125", "1234,567"):
        text = f"run;t_s;u_s\n1;1,002;{more}\n2;1,010;{more}\n"
        (part,) = parse_measurements(text, "x.csv", "x.csv").parts.values()
        assert values(part[0]) == {
            "ops.t_ns": 1.002 * S, "ops.u_ns": float(more.replace(",", ".")) * S,
        }  # fmt: skip


# ops.txt


def test_iterations_of_a_file_are_runs() -> None:
    text = "".join(f"tps {n} ops/s\nstall {n}.5 s\n" for n in range(5))
    (part,) = parse_measurements(text, "ops.txt").parts.values()
    assert [values(run) for run in part] == [
        {"ops.tps": n, "ops.stall_ns": (n + 0.5) * S} for n in range(5)
    ]
    with pytest.raises(InputError, match="stall stands on 5 lines and tps on 6"):
        parse_measurements(text + "tps 9 ops/s\n", "ops.txt")


# All of them


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir()))
def test_each_file_here_is_read_or_refused_in_one_way(name: str) -> None:
    path = DATA / name
    if not is_measurements(path):
        assert name == "README.md"
        return
    refused = None
    try:
        found = read_measurements(path)
    except WbscopeError as error:
        refused = error
    if refused is not None:
        assert refused.subject == str(path)
        assert refused.fix
        return
    assert all(part and all(len(run.scalars) for run in part) for part in found.parts.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello, world\nthis is prose, and more\n",
        "# tracer: nop\nreal 1.00\nuser 1.00\nsys 1.00\n",
        "dd-1 [000] .... 1.0: sched_switch: prev_comm=a, next_comm=b\n",
    ],
)
def test_other_texts_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    assert not is_measurements(path)
