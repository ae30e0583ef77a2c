# SPDX-License-Identifier: Apache-2.0
"""ui/perfetto-stdlib: the events for Perfetto's list, and the page that tells how to send all."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from support.stdlib import FTRACE_EVENTS, HOME, OBJECTS, SOURCES, TRACES, code_of, load_file

FORMATS = REPOSITORY / "kernel-tracepoints" / "formats"
GENERATOR: Any = load_file(HOME / "gen_ftrace_protos.py")


def test_generated_files_are_current(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gen_ftrace_protos.py", "--check"])
    assert GENERATOR.main() == 0, capsys.readouterr().out


def newest_formats() -> dict[str, str]:
    """Texts of system/event of the newest kernel that has been captured."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(map(int, path.name.split("-")[0].split(".")))

    newest = max(FORMATS.glob("*-x86_64.formats"), key=version)
    assert newest.stem == GENERATOR.NEWEST
    system = ""
    found: dict[str, str] = {}
    name = ""
    for line in newest.read_text().splitlines():
        if line.startswith("# system "):
            system = line.split()[2]
        elif line.startswith("name: "):
            name = f"{system}/{line.split()[1]}"
            found[name] = ""
        elif name:
            found[name] += line + "\n"
    return found


# Gone since, and still in kernels that Perfetto records: event or event.field, and until when.
GONE = {
    "vmscan/mm_vmscan_writepage": "5.17",
    "writeback/balance_dirty_pages.bdi_setpoint": "6.14",
    "writeback/balance_dirty_pages.bdi_dirty": "6.14",
    "writeback/global_dirty_state.nr_unstable": "5.7",
    "vmscan/mm_vmscan_lru_shrink_inactive.zid": "4.7",
    "vmscan/mm_vmscan_memcg_softlimit_reclaim_begin.may_writepage": "5.1",
}
GONE_OF_ALL = {"cgroup": "4.5"}


def test_each_event_and_field_is_in_the_newest_kernel() -> None:
    """By the text of its formats, which the generator reads in another way."""
    formats = newest_formats()
    protos = "".join(path.read_text() for path in sorted((HOME / "protos").rglob("*.proto*")))
    messages = dict(re.findall(r"message (\w+)FtraceEvent \{\n(.*?)\}", protos, re.DOTALL))
    events = FTRACE_EVENTS.read_text().split()
    assert len(set(events)) == len(events) == len(messages)
    for event in events:
        title = event.partition("/")[2].title().replace("_", "")
        numbered = re.findall(r"  optional (\w+) (\w+) = (\d+);\n", messages[title])
        assert [int(number) for _, _, number in numbered] == list(range(1, len(numbered) + 1))
        if event in GONE:
            assert event not in formats
            continue
        text = formats[event]
        for kind, name, _ in numbered:
            line = re.search(rf"\tfield:(.*\b){name}(\[\d+\])?;.*size:(\d+);\tsigned:(\d)", text)
            if line is None:
                assert f"{event}.{name}" in GONE or name in GONE_OF_ALL, f"{event}.{name}"
                continue
            wanted = "string" if "char" in line[1] else f"int{64 if int(line[3]) > 4 else 32}"
            if line[1].strip() == "dev_t":
                wanted = "int64"
            assert kind.removeprefix("u") == wanted
            assert kind == "string" or kind.startswith("u") == (line[4] == "0")
        ours = set(re.findall(r"(\w+)(?:\[\d+\])?;\toffset", text))
        common = {name for name in ours if name.startswith("common_")}
        assert ours - common <= {name for _, name, _ in numbered}


def test_each_event_and_argument_that_a_module_reads_is_listed() -> None:
    """A typed event has the fields of its message alone."""
    # Perfetto has messages of these.
    there = {f"mm_vmscan_{name}" for name in (
        "kswapd_wake", "direct_reclaim_begin", "direct_reclaim_end", "memcg_reclaim_begin",
        "memcg_reclaim_end",
    )}  # fmt: skip
    listed = FTRACE_EVENTS.read_text()
    protos = "".join(path.read_text() for path in sorted((HOME / "protos").rglob("*.proto*")))
    for module, sql in SOURCES.items():
        code = code_of(sql)
        for table in re.split(r"(?=CREATE PERFETTO)", code):
            if "FROM ftrace_event" not in table:
                continue
            where = table[table.index("FROM ftrace_event") :]
            for event in re.findall(r"'(\w+)'", where):
                assert event in there or f"/{event}\n" in listed, (module, event)
        for argument in re.findall(r"extract_arg\(arg_set_id, '(\w+)'\)", code):
            assert re.search(rf"\b{argument} = \d+;", protos), (module, argument)


# The page that tells how to send it.


def test_the_page_names_every_file() -> None:
    page = (HOME / "README.md").read_text()
    for module, found in OBJECTS.items():
        if any(made.is_public for made in found):
            assert f"'{module}': ['linux', 'memory']" in page, module
        for made in found:
            assert not made.is_public or f"`{made.name}`" in page, made.name
    for path in TRACES.iterdir():
        assert path.name in page
    for name in re.findall(r"^\| `([\w./-]+)`", page, re.MULTILINE):
        assert (HOME / name).exists() or name in SOURCES, name
