# SPDX-License-Identifier: Apache-2.0
"""Files of the library: headers and statements, of findings and as PerfettoSQL."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.base.errors import EvidenceError, SetupError, UsageError
from wbscope.base.result import Column
from wbscope.explain.remedy import sysctl_text, trial_of, tuned_text, undo_of
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Advice, Finding, no_label
from wbscope.library.rules import read_rule, read_template
from wbscope.library.sqlfile import Metric, SqlFile, read_sql_file
from wbscope.perfetto.package import modules, write_package
from wbscope.perfetto.perfetto_engine import create, indexes
from wbscope.perfetto.perfetto_library import perfetto_library

# Header and statement of one library file.


def test_query_header_is_read_in_full(sql_dir: Path) -> None:
    (file,) = read_sql_file(sql_dir / "queries/throttle_by_task.sql")
    assert (file.kind, file.name, file.order) == ("query", "throttle_by_task", 2)
    assert file.title == "Who was throttled"
    assert file.read == "A long pause is a wait that the kernel ordered."
    assert file.needs == ("wb_throttle",)
    assert file.events == (("writeback:balance_dirty_pages",),)
    assert file.optional == ("sched:sched_switch",)
    assert tuple(column for column in file.columns if column.type) == (
        Column("tid", "INTEGER", "thread"),
        Column("pause_total_ns", "INTEGER", "intended pauses, in total"),
    )
    assert file.select.startswith("SELECT tid")
    assert file.select.endswith("ORDER BY tid")


def test_adapter_names_its_source_and_continues_a_list(sql_dir: Path) -> None:
    (file,) = read_sql_file(sql_dir / "adapters/sqlite/raw_balance_dirty_pages.sql")
    assert file.source_view == "_ev_balance_dirty_pages"
    assert file.source_events == ("writeback:balance_dirty_pages",)
    assert file.fields == ("bdi", "pause", "wb_setpoint", "bdi_setpoint", "limit")


@pytest.mark.parametrize(
    "events", ["a:x | a:y, b:z", "a:x|a:y,b:z", "a:x|a:y b:z"], ids=["spaces", "tight", "plain"]
)
def test_alternatives_are_one_group(tmp_path: Path, events: str) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n-- @events {events}\nSELECT 1;\n")
    assert read_sql_file(path)[0].events == (("a:x", "a:y"), ("b:z",))


def test_metrics_have_a_direction_and_a_meaning(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    header = "-- @query q\n-- @column a_ns INTEGER x\n-- @column b REAL y\n"
    metrics = "-- @metric   a_ns lower: what a user\n--   waits for\n-- @metric   b neutral: fits\n"
    path.write_text(f"{header}{metrics}SELECT 1 AS a_ns, 2 AS b;\n")
    assert read_sql_file(path)[0].metrics == (
        Metric("a_ns", "lower", "what a user waits for"),
        Metric("b", "neutral", "fits"),
    )


_COLUMNS = "".join(f"-- @column {name}\n" for name in ("a TEXT x", "b TEXT x", "c_ns INTEGER x"))


@pytest.mark.parametrize(
    ("tags", "keys", "first"),
    [
        ("", ("a", "b"), ()),
        ("-- @keys a\n-- @first c_ns,\n--   b\n", ("a",), ("c_ns", "b")),
    ],
)
def test_what_tables_begin_with(
    tmp_path: Path, tags: str, keys: tuple[str, ...], first: tuple[str, ...]
) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n{tags}{_COLUMNS}SELECT 1;\n")
    assert read_sql_file(path)[0].keys == keys
    assert read_sql_file(path)[0].first == first


@pytest.mark.parametrize("tag", ["keys", "first"])
def test_a_table_begins_with_columns_only(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "q.sql"
    path.write_text(f"-- @query q\n-- @{tag} a, nothing\n{_COLUMNS}SELECT 1;\n")
    with pytest.raises(SetupError, match=f"@{tag} nothing is no @column"):
        read_sql_file(path)


def test_plain_comment_ends_a_tag(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text("-- @query q\n-- @read one\n-- a remark\n--   more of it\nSELECT 1;\n")
    assert read_sql_file(path)[0].read == "one"


def test_a_file_of_several_views(tmp_path: Path) -> None:
    path = tmp_path / "wait.sql"
    path.write_text(
        "-- SPDX-License-Identifier: Apache-2.0\n-- Waits of tasks,\n-- in two steps.\n\n"
        "-- @view v\nCREATE VIEW v AS\nSELECT s.a FROM _step AS s;\n\n"
        "-- A remark on what comes next.\n"
        "-- @view _step\nCREATE VIEW _step AS SELECT 1 AS a;\n"
    )
    public, private = read_sql_file(path)
    assert (public.name, public.needs) == ("v", ("_step",))
    assert public.select == "SELECT s.a FROM _step AS s"
    assert (private.name, private.select) == ("_step", "SELECT 1 AS a")
    assert public.subject == private.subject == "Waits of tasks, in two steps."
    assert [public.is_private(), private.is_private()] == [False, True]


def test_select_may_hold_comments(tmp_path: Path) -> None:
    path = tmp_path / "v.sql"
    path.write_text("-- @view v\n\nCREATE VIEW v AS\n-- why\nSELECT 1 AS a;\n")
    assert read_sql_file(path)[0].select == "-- why\nSELECT 1 AS a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- @query q\n", "q: has a header and no statement"),
        ("SELECT 1;\n-- @query q\nSELECT 2;\n", "'SELECT 1;' stands before the first object"),
        ("-- @view v\nCREATE VIEW v AS SELECT 1;\n-- @view w\n", "w: has a header and no"),
        (
            "-- @view v\nCREATE VIEW v AS SELECT 1;\n\nCREATE VIEW w AS SELECT 2;\n",
            "v: has two statements",
        ),
        ("", "no statement"),
        ("SELECT 1;\n", "first tag is '@'"),
        ("-- @summary s\nSELECT 1;\n", "first tag is '@summary'"),
        ("-- @query q\nSELECT 1\n", "does not end in ';'"),
        ("-- @view v\nCREATE VIEW w AS SELECT 1;\n", "wanted 'CREATE VIEW v AS ...'"),
        ("-- @view v\nSELECT 1;\n", "statement is 'SELECT 1 ...'"),
        ("-- @query q\n-- @order two\nSELECT 1;\n", "@order is 'two'"),
        ("-- @query q\n-- @column a\nSELECT 1;\n", "@column is 'a'"),
        ("-- @query q\n-- @column a REAL x\n-- @metric a\nSELECT 1;\n", "@metric is 'a'"),
        (
            "-- @query q\n-- @column a REAL x\n-- @metric a less: why\nSELECT 1;\n",
            "wanted COLUMN lower|higher|neutral",
        ),
        (
            "-- @query q\n-- @column a REAL x\n-- @metric a lower:\nSELECT 1;\n",
            "@metric is 'a lower:'",
        ),
        ("-- @query q\n-- @metric a lower: why\nSELECT 1;\n", "@metric a is no @column"),
    ],
)
def test_broken_file_says_what_was_found(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.sql"
    path.write_text(text)
    with pytest.raises(SetupError, match=r"broken\.sql") as caught:
        read_sql_file(path)
    assert message in caught.value.message
    assert caught.value.slug == "broken-sql-library"


def test_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "broken.sql"
    path.write_bytes(b"-- @query \xff\n")
    with pytest.raises(SetupError, match="cannot be read"):
        read_sql_file(path)


# Texts with holes, the headers of findings, and what is done about advice.

_HEADER = {
    "severity": ["warning"],
    "confidence": ["measured"],
    "sentence": ["{tasks} waited {cost_task_ns}."],
}
_FOUND_COLUMNS = ["cost_task_ns", "tasks", "bdi", "cgroup_ino"]


def _label(column: str, value: Any) -> str | None:
    return {"cgroup_ino": {27: "/app"}, "bdi": {"8:0": "sda (/)"}}.get(column, {}).get(value)


@pytest.mark.parametrize(
    ("text", "facts", "wanted"),
    [
        (
            "{tasks} waited {dur_ns}",
            {"tasks": "2 dd", "dur_ns": 1_500_000_000},
            "2 dd waited 1.50 s",
        ),
        ("a[ of {bdi}] b", {"bdi": "8:0"}, "a of sda (/) b"),
        ("a[ of {bdi}] b", {"bdi": None}, "a b"),
        ("a[ of {bdi} {x}] b", {"bdi": "8:0", "x": None}, "a b"),
        ("[{a:raw}][{b:raw}]", {"a": None, "b": 7}, "7"),
        ("{bdi}", {"bdi": None}, None),
        ("{bdi:raw} {bdi}", {"bdi": "8:0"}, "8:0 sda (/)"),
        ("/sys{cgroup_ino:path}/io.max", {"cgroup_ino": 27}, "/sys/app/io.max"),
        ("/sys{cgroup_ino:path}/io.max", {"cgroup_ino": 28}, None),
        ("{n:task} and {m:task}", {"n": 1, "m": 3}, "1 task and 3 tasks"),
        ("{tasks}", {"tasks": "[{dd}]"}, "[{dd}]"),
        ("", {}, ""),
    ],
)
def test_holes_are_filled(text: str, facts: dict[str, Any], wanted: str | None) -> None:
    assert read_template(text).fill(facts, _label) == wanted


def test_told_are_the_facts_that_stand_in_the_text() -> None:
    template = read_template("{a} [and {b}][, not {c} {d}]")
    assert template.names() == ["a", "b", "c", "d"]
    assert template.told({"a": 1, "b": 2, "c": 3, "d": None}) == ["a", "b"]


@pytest.mark.parametrize("text", ["[a", "a]", "[a[b]]", "{a", "a}", "{a b}", "{}"])
def test_a_text_that_is_no_template(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_template(text)


@pytest.mark.parametrize(
    ("tag", "lines", "wrong"),
    [
        ("severity", ["bad"], "@severity is 'bad'"),
        ("confidence", [], "@confidence is ''"),
        ("sentence", [], "has no @sentence"),
        ("sentence", ["{cost}"], "{cost} is no @column"),
        ("set", ["vm.dirty_bytes 7"], "sets nothing"),
        ("set", ["vm.dirty_bytes = {seven}"], "{seven} is no @column"),
        ("now", ["[vm.dirty_bytes = {seven}]"], "{seven} is no @column"),
        ("expect", ["{seven} lower"], "{seven} is no @column"),
        ("evidence", ["Lost Time"], "@evidence is 'Lost Time'"),
        ("evidence", ["lost_time: cost_task_ns"], "is no check"),
        ("evidence", ["lost_time: cost_task_ns = median(dur)"], "is no number of a query"),
        ("evidence", ["lost_time --bdi {seven}: cost_task_ns = sum(dur)"], "{seven} is no @column"),
    ],
)
def test_a_header_that_is_wrong(tag: str, lines: list[str], wrong: str) -> None:
    assert read_rule(_HEADER, _FOUND_COLUMNS).severity == "warning"
    with pytest.raises(ValueError, match=re.escape(wrong)):
        read_rule(_HEADER | {tag: lines}, _FOUND_COLUMNS)


def test_terms_of_evidence() -> None:
    line = "lost_time --bdi {bdi}: cost_task_ns = 1 - mean(share, total_ns, bdi={bdi}) / tasks"
    (evidence,) = read_rule(_HEADER | {"evidence": [line]}, _FOUND_COLUMNS).evidence
    (check,) = evidence.checks
    assert evidence.query == "lost_time"
    assert [name for name, _ in evidence.options] == ["--bdi"]
    assert (check.fact, check.first.aggregate, check.first.column) == ("cost_task_ns", "", "1")
    (_, mean), (_, fact) = check.steps
    assert (mean.aggregate, mean.column, mean.weight) == ("mean", "share", "total_ns")
    assert [name for name, _ in mean.where] == ["bdi"]
    assert (fact.aggregate, fact.column) == ("", "tasks")


def _finding(settings: dict[str, str], *now: str, severity: str = "warning") -> Finding:
    advice = Advice("Change it.", tuple(settings.items()), now, "", "")
    return Finding(
        "slow_device", "A title", severity, "measured", 1, "text", (), advice, {}, (), None, None
    )


def _verdict(*findings: Finding, run: str = "RUN") -> Verdict:
    return Verdict(run, findings, (), (), (), 0)


def test_a_trial_and_how_to_undo_it() -> None:
    one = _finding(
        {"vm.dirty_bytes": "7", "/sys/class/bdi/8:0/max_ratio": "3", "the rate": "1 MiB/s"},
        "vm.dirty_ratio = 20",
        "/sys/class/bdi/8:0/max_ratio = 100 (the default; not recorded)",
    )
    assert trial_of(one, "RUN") == (
        "echo 3 > /sys/class/bdi/8:0/max_ratio",
        "wbscope record --sysctl vm.dirty_bytes=7 -o TRIAL -- COMMAND",
        "wbscope compare TRIAL --against RUN",
    )
    assert undo_of(one) == (
        "sysctl -w vm.dirty_ratio=20",
        "echo 100 > /sys/class/bdi/8:0/max_ratio",
    )
    assert trial_of(_finding({"the rate": "1 MiB/s"}), "RUN") == ()


def test_names_of_a_stranger_are_words_of_a_command_and_no_lines_of_a_file() -> None:
    strange = "/sys/fs/cgroup/x; rm -rf ~\nvm.panic_on_oom = 1/memory.max"
    one = _finding({strange: "7; reboot", "vm.dirty_bytes": "7"}, f"{strange} = max")
    (echo, _, _), (undo,) = trial_of(one, "RUN"), undo_of(one)
    assert shlex.split(echo) == ["echo", "7; reboot", ">", strange]
    assert shlex.split(undo) == ["echo", "max", ">", strange]
    assert "rm" not in tuned_text(_verdict(one)) + sysctl_text(_verdict(one))
    idle = _finding({"/sys/fs/cgroup/a/io.max": "8:0 wbps=max"})
    assert "/sys/fs/cgroup/a/io.max=8:0 wbps=max\n" in tuned_text(_verdict(idle))


def test_files_with_the_advice() -> None:
    first = _finding({"vm.dirty_bytes": "7", "/sys/class/bdi/8:0/max_ratio": "3"})
    second = _finding({"vm.dirty_bytes": "9", "vm.swappiness": "1"})
    note = _finding({"vm.laptop_mode": "1"}, severity="note")
    sysctl = sysctl_text(_verdict(first, second, note)).splitlines()
    assert [line for line in sysctl if line[0] != "#"] == [
        "vm.dirty_bytes = 7",
        "vm.swappiness = 1",
    ]
    tuned = tuned_text(_verdict(first, note))
    assert "[sysctl]\n# slow_device: A title\nvm.dirty_bytes=7\n" in tuned
    assert "[sysfs]\n# slow_device: A title\n/sys/class/bdi/8:0/max_ratio=3\n" in tuned
    with pytest.raises(EvidenceError, match="sets a sysctl"):
        sysctl_text(_verdict(note))
    with pytest.raises(EvidenceError, match=r"a file of /sys"):
        tuned_text(_verdict(_finding({"the rate": "1"})))


def test_the_name_of_a_run_is_no_line_of_a_file() -> None:
    """A folder of a stranger may be called anything."""
    run = "nl/run\nkernel.core_pattern = |"
    verdict = _verdict(_finding({"vm.dirty_bytes": "7"}), run=run)
    for text in (sysctl_text(verdict), tuned_text(verdict)):
        assert not any(line.startswith("kernel.") for line in text.splitlines())
        assert "for $'nl/run\\x0akernel.core_pattern = |'" in text.splitlines()[0] + text
    assert sysctl_text(_verdict(*verdict.findings)).startswith(
        "# Advice of wbscope explain for RUN: try it"
    )


def test_no_label_keeps_values() -> None:
    assert read_template("{bdi}").fill({"bdi": "8:0"}, no_label) == "8:0"


# Views as PerfettoSQL: the text of the statements and of the package.

VIEW = """\
-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_small
-- @summary  A view of two columns.
-- @grain    row; order ts
-- @column   ts INTEGER ns, when
-- @column   share_ratio REAL a text that is so long that it has to be put on two
--   lines
-- @column   bdi TEXT device
{more}CREATE VIEW wb_small AS
SELECT 1 AS ts, 0.5 AS share_ratio, '8:0' AS bdi;
"""
COLUMNS = """(
  -- ns, when
  ts TIMESTAMP,
  -- a text that is so long that it has to be put on two lines
  share_ratio DOUBLE,
  -- device
  bdi STRING
) AS
SELECT 1 AS ts, 0.5 AS share_ratio, '8:0' AS bdi"""


def file_of(folder: Path, text: str) -> SqlFile:
    path = folder / "wb_small.sql"
    path.write_text(text)
    (file,) = read_sql_file(path)
    return file


def test_a_view(tmp_path: Path) -> None:
    file = file_of(tmp_path, VIEW.format(more=""))
    assert create(file) == f"CREATE PERFETTO VIEW wb_small{COLUMNS}"
    assert create(file, replace=True).startswith("CREATE OR REPLACE PERFETTO VIEW wb_small(")


def test_a_table(tmp_path: Path) -> None:
    file = file_of(tmp_path, VIEW.format(more="-- @materialize\n"))
    assert create(file) == f"CREATE PERFETTO TABLE wb_small{COLUMNS}"
    assert create(file, select="SELECT 2").endswith("\n) AS\nSELECT 2")


def test_indexes_of_a_table(tmp_path: Path) -> None:
    tags = "-- @index    ts\n-- @index    bdi ts\n"
    assert indexes(file_of(tmp_path, VIEW.format(more=tags))) == []  # a view has none
    assert indexes(file_of(tmp_path, VIEW.format(more=f"{tags}-- @materialize\n"))) == [
        "CREATE PERFETTO INDEX wb_small_ts ON wb_small(ts)",
        "CREATE PERFETTO INDEX wb_small_bdi_ts ON wb_small(bdi, ts)",
    ]


def test_a_keyword_cannot_be_listed(tmp_path: Path) -> None:
    text = VIEW.format(more="").replace("bdi TEXT", "limit TEXT").replace("AS bdi", 'AS "limit"')
    assert create(file_of(tmp_path, text)).startswith("CREATE PERFETTO VIEW wb_small AS\nSELECT 1")


def test_a_module() -> None:
    texts = modules(perfetto_library(REPOSITORY / "sql"))
    lines = texts["wbscope.queries.fairness"].splitlines()
    assert lines[0] == "-- SPDX-License-Identifier: Apache-2.0"
    assert "from sql/queries/fairness.sql; do not edit." in lines[1]
    included = [line for line in lines if line.startswith("INCLUDE")]
    # Before what it reads come deeper ones, so that no chain of includes is long.
    assert included[-4:] == [
        "INCLUDE PERFETTO MODULE wbscope.views._window_rate;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_params;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_rule;",
        "INCLUDE PERFETTO MODULE wbscope.views.wb_task_rate;",
    ]
    assert "CREATE PERFETTO VIEW wbscope_fairness(" in lines
    assert all(text.endswith("\n") and "\n\n\n" not in text for text in texts.values())


def test_an_edited_module_is_not_replaced(tmp_path: Path) -> None:
    library = perfetto_library(REPOSITORY / "sql")
    folder = tmp_path / "wbscope"
    write_package(library, folder)
    write_package(library, folder)
    module = folder / "views" / "wb_params.sql"
    made = module.read_text()
    module.write_text(made.replace("2000000000", "500000000"))
    with pytest.raises(UsageError, match="1 modules that were edited") as caught:
        write_package(library, folder)
    assert (caught.value.slug, caught.value.have) == ("output-edited", "views/wb_params.sql")
    assert "500000000" in module.read_text()
    write_package(library, folder, force=True)
    assert module.read_text() == made


def test_a_folder_whose_file_is_a_link_is_not_ours(tmp_path: Path) -> None:
    library = perfetto_library(REPOSITORY / "sql")
    folder = tmp_path / "wbscope"
    count = write_package(library, folder)
    assert count == len(list(folder.rglob("*.sql")))
    (folder / "mine.sql").symlink_to("/dev/null")
    with pytest.raises(UsageError, match="1 files"):
        write_package(library, folder)
    assert (folder / "mine.sql").is_symlink()
