# SPDX-License-Identifier: Apache-2.0
"""Output files: refused before any work, whole or not there; names of any bytes; runs that stay."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.tools import wbscope_path
from wbscope.base.errors import Argument, InputError, Phrase, SetupError, UsageError
from wbscope.base.outputs import (
    check_folder,
    check_output,
    check_parent,
    is_private_name,
    private_folder,
    private_name,
    private_output,
    write_whole,
)
from wbscope.base.system import as_utf8, join, pasteable

# Output files: refused before any work, whole or not there.


def test_existing_output_needs_force(tmp_path: Path) -> None:
    output = tmp_path / "x.db"
    output.write_text("earlier")
    with pytest.raises(UsageError) as caught:
        check_output(output, False, [])
    assert (caught.value.slug, caught.value.message) == (
        "output-exists",
        "exists already (7 bytes)",
    )
    check_output(output, True, [])


def test_what_a_killed_writer_of_a_folder_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".package.wbscope-abcd1234"
    (left / "package" / "views").mkdir(parents=True)
    (left / "package" / "views" / "half.sql").write_text("half")
    (left / ".writer.lock").write_text("")
    with private_output(tmp_path / "package") as private:
        assert not left.exists()
        private.mkdir()
        (private / "whole.sql").write_text("whole")
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "package",
        "package/whole.sql",
    ]


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".x.db.wbscope-*"))


@pytest.mark.parametrize("step", ["open", "unlink", "rmdir"])
def test_a_kill_at_any_step_leaves_what_the_next_writer_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    output = tmp_path / "x.db"
    others = tmp_path / ".x.db.wbscope-theirs01"
    others.mkdir()
    (others / "keep").write_text("no lock, and not empty: no writer's")

    real = getattr(os, step)

    def killed(path: str | Path, *given: object, **named: object) -> object:
        if path == "part" if step == "rmdir" else path != ".writer.lock":
            return real(path, *given, **named)  # not of the private folder itself
        os._exit(9)

    child = os.fork()
    if child == 0:  # dies where a step begins: each leaves the folder as a kill there does
        if step == "open":
            others.rename(tmp_path / "others")  # its lock would be opened first
            monkeypatch.setattr(os, step, killed)
        with private_folder(output) as folder:
            (folder / "part").mkdir()
            (folder / "part" / "half").write_text("half")
            monkeypatch.setattr(os, step, killed)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    if step == "open":
        (tmp_path / "others").rename(others)
    assert len(_left(tmp_path)) == 2
    write_whole(output, "whole")
    assert _left(tmp_path) == [others.name]


def test_input_is_never_replaced(tmp_path: Path) -> None:
    trace = tmp_path / "trace.dat"
    trace.write_text("trace")
    link = tmp_path / "link"
    link.symlink_to(trace)
    with pytest.raises(UsageError) as caught:
        check_output(link, True, [trace])
    assert caught.value.slug == "output-is-input"


def test_folder_device_and_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder") as folder:
        check_output(tmp_path, True, [])
    assert folder.value.fix == f"output='{tmp_path}/run.db'"
    (tmp_path / "run.db").write_text("")
    with pytest.raises(UsageError, match="is a folder") as folder:
        check_output(tmp_path, True, [])
    assert folder.value.fix == f"output='{tmp_path}/run-2.db'"
    with pytest.raises(UsageError, match="is no regular file") as device:
        check_output(Path("/dev/null"), True, [], "answer.txt")
    assert device.value.fix == "output='answer.txt'"
    with pytest.raises(UsageError, match="is stdout") as stdout:
        check_output(Path("-"), True, [], "run.pftrace")
    assert stdout.value.fix == "output='run.pftrace'"
    with pytest.raises(SetupError, match="does not exist") as caught:
        check_output(tmp_path / "a b" / "x.db", True, [])
    assert caught.value.fix == f"mkdir -p '{tmp_path / 'a b'}'"


def test_failed_writer_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "x.db"
    output.write_text("earlier")

    def write_half() -> None:
        with private_output(output) as private:
            private.write_text("half")
            private.with_suffix(".tmp").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert output.read_text() == "earlier"
    assert os.listdir(tmp_path) == ["x.db"]


def test_error_names_the_file_that_the_user_named(tmp_path: Path) -> None:
    output = tmp_path / "x.db"
    with pytest.raises(InputError) as caught, private_output(output) as private:
        raise InputError("slug", str(private), f"{private} is bad", fix=f"rm {private}")
    assert (caught.value.subject, caught.value.fix) == (str(output), f"rm {output}")
    assert caught.value.message == f"{output} is bad"


def _no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("way", ["link", "rename", "look"])
def test_what_another_command_wrote_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    output = tmp_path / "x.db"
    if way != "link":
        monkeypatch.setattr(os, "link", _no_links)
    if way == "look":
        monkeypatch.setitem(sys.modules, "ctypes", None)

    def write_both() -> None:
        with private_output(output, force=False) as private:
            private.write_text("mine")
            output.write_text("theirs")

    with pytest.raises(UsageError) as caught:
        write_both()
    assert (caught.value.slug, caught.value.subject) == ("output-exists", str(output))
    assert caught.value.fix == "add force=True to replace it, or choose another name with output"
    assert (output.read_text(), os.listdir(tmp_path)) == ("theirs", ["x.db"])
    with private_output(output) as private:
        private.write_text("mine")
    assert output.read_text() == "mine"
    output.unlink()
    write_whole(output, "new", force=False)
    assert (output.read_text(), os.listdir(tmp_path)) == ("new", ["x.db"])
    assert output.stat().st_nlink == 1


def test_writer_that_wrote_nothing(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be written"), private_output(tmp_path / "x"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("length", [100, 101, 240, 255])
def test_long_names_are_names(tmp_path: Path, length: int) -> None:
    output = tmp_path / ("é" * 10 + "x" * (length - 20))
    check_output(output, False, [])
    check_folder(output)
    with private_output(output) as private:
        # SQLite and the ingester put files of longer names beside it.
        (private.with_name(f"{private.name}-journal")).touch()
        private.write_text("whole")
        assert is_private_name(os.path.basename(os.path.realpath(private.parent)), output.name)
    assert os.listdir(tmp_path) == [output.name]
    assert is_private_name(private_name(output.name), output.name)
    assert not is_private_name(private_name(output.name), f"{output.name[:-1]}y")


def test_what_a_killed_writer_of_a_long_name_left_is_removed(tmp_path: Path) -> None:
    output = tmp_path / ("x" * 250)
    with private_folder(output) as folder:
        left = folder.name
    (tmp_path / left).mkdir()
    (tmp_path / left / ".writer.lock").touch()
    write_whole(output, "whole")
    assert os.listdir(tmp_path) == [output.name]


@pytest.mark.parametrize("name", ["x" * 256, "x" * 5000, "x/" * 2500])
def test_names_that_are_too_long(tmp_path: Path, name: str) -> None:
    def check(output: Path) -> None:
        check_output(output, False, [])

    for refuse in (check, check_parent, check_folder, lambda path: write_whole(path, "")):
        with pytest.raises(SetupError, match="File name too long") as caught:
            refuse(tmp_path / name)
        assert caught.value.slug == "cannot-write"
        assert caught.value.fix == "choose a shorter name with output"
    with pytest.raises(SetupError) as caught:
        check_output(tmp_path / name, False, [], "junit.xml", "junit")
    assert caught.value.fix == Phrase("choose a shorter name with ", Argument("junit"))


def test_a_parent_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere")
    for name in ("file", "loop", "dangling"):
        for output in (Path(name, "x.html"), Path(name, "deep/x.html")):
            with pytest.raises(SetupError, match=f"{name} is no folder") as caught:
                check_parent(output, "save")
            assert caught.value.slug == "no-output-folder"
            assert caught.value.fix == "save='x.html'"


def test_a_folder_that_nothing_can_be_put_in(tmp_path: Path) -> None:
    for folder in (Path("/proc"), Path("/proc/new")):
        with pytest.raises(SetupError) as caught:
            check_folder(folder)
        assert (caught.value.slug, caught.value.subject) == ("cannot-write", str(folder))
    for folder in (tmp_path, tmp_path / "new"):
        check_folder(folder)
    assert os.listdir(tmp_path) == []


def test_folder_that_cannot_be_written() -> None:
    with pytest.raises(SetupError) as caught:
        write_whole(Path("/proc/x.txt"), "text")
    assert caught.value.slug == "cannot-write"


def test_write_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "x.txt", "a name: \udcff\n")
    assert (tmp_path / "x.txt").read_text() == "a name: \\udcff\n"
    write_whole(tmp_path / "x.txt", "tëxt\n")
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == "tëxt\n"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_commands_say_whether_they_may_replace() -> None:
    """Whoever has --force hands it on, or what came in the meantime would be replaced."""
    writes = re.compile(r"(?:write_whole|private_output)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
    seen: Counter[str] = Counter()
    for path in sorted((REPOSITORY / "analyzers/wbscope/cli").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for arguments in writes.findall(text) if "force" in text else ():
            assert "force=" in arguments, f"{path.name}: {arguments}"
            seen[path.name] += 1
    assert seen == {"baseline.py": 2, "formats.py": 2, "gate.py": 1, "lab.py": 2, "plot.py": 1}


def _folder(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text(name)
    return path


@pytest.mark.parametrize(
    "name",
    ["trace.dat", "vmstat.before", "meta.json", "fio.json", "sysctls", "wb.samples", "meminfo"],
)
def test_what_a_run_is_read_from_is_never_replaced(tmp_path: Path, name: str) -> None:
    run = _folder(tmp_path / "runs" / "1", "trace.dat", name)
    for given in (run, tmp_path / "runs", Path(os.path.relpath(run))):
        with pytest.raises(UsageError) as caught:
            check_output(run / name, True, [given])
        assert caught.value.slug == "output-is-input"
    link = tmp_path / "link"
    link.symlink_to(run / name)
    with pytest.raises(UsageError) as caught:
        check_output(link, True, [run])
    assert caught.value.slug == "output-is-input"


@pytest.mark.parametrize(
    ("inside", "name"),
    [
        (["trace.txt"], "trace.txt"),
        (["trace.dat.xz"], "trace.dat.xz"),
        (["trace.pftrace"], "trace.pftrace"),
        (["trace.perfetto-trace.gz"], "trace.perfetto-trace.gz"),
        (["run.db"], "run.db"),
        (["1.db", "2.db"], "2.db"),
        (["vmstat.before", "vmstat.after"], "vmstat.after"),
    ],
)
def test_other_traces_and_databases_are_inputs_alone(
    tmp_path: Path, inside: list[str], name: str
) -> None:
    run = _folder(tmp_path / "run", *inside)
    with pytest.raises(UsageError) as caught:
        check_output(run / name, True, [run])
    assert caught.value.slug == "output-is-input"


@pytest.mark.parametrize("name", ["report.html", "run.db", "trace.pftrace", "report.json", "x.csv"])
def test_what_is_made_of_a_run_may_be_made_again_in_its_folder(tmp_path: Path, name: str) -> None:
    run = _folder(tmp_path / "runs" / "1", "trace.dat", name)
    check_output(run / name, True, [run])
    check_output(run / name, True, [tmp_path / "runs"])
    check_output(_folder(tmp_path / "other", "trace.dat") / "trace.dat", True, [run])


def test_a_name_with_a_slash_at_its_end_is_that_of_a_folder(tmp_path: Path) -> None:
    for there in ("new/", "nowhere/new/"):
        with pytest.raises(UsageError) as caught:
            check_output(f"{tmp_path}/{there}", False, [])
        assert (caught.value.slug, caught.value.message) == (
            "output-is-folder",
            "names a folder, wanted a file name",
        )
    assert list(tmp_path.iterdir()) == []


# Every verb that writes a file leaves the trace of a run folder, and what is beside it.

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "RUN", "-o", "FILE"),
        ("report", "RUN", "-o", "FILE"),
        ("query", "fairness", "RUN", "-o", "FILE"),
        ("query", "fairness", "RUN", "--parquet", "FILE"),
        ("sql", "RUN", "SELECT 1", "-o", "FILE"),
        ("sql", "RUN", "SELECT 1", "--parquet", "FILE"),
        ("check", "RUN", "-o", "FILE"),
        ("timeline", "RUN", "-o", "FILE"),
        ("timeline", "OTHER", "--against", "RUN", "-o", "FILE"),
        ("compare", "RUN", "--against", "OTHER", "-o", "FILE"),
        ("compare", "OTHER", "--against", "RUNS", "--html", "FILE"),
        ("gate", "RUN", "--budget", "throttle_summary.pauses_count <= 1", "-o", "FILE"),
        ("gate", "RUN", "--budget", "throttle_summary.pauses_count <= 1", "--junit", "FILE"),
        ("baseline", "save", "RUNS", "-o", "FILE"),
    ],
    ids=lambda words: f"{words[0]} {words[-2]}",
)
@pytest.mark.parametrize("name", ["trace.dat", "vmstat.before"])
def test_each_verb(cli: Cli, tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    runs = tmp_path / "runs"
    for one in ("1", "2"):
        (runs / one).mkdir(parents=True)
        for file in ("trace.dat", "vmstat.before"):
            (runs / one / file).write_bytes(b"kept")
    places = {"RUN": runs / "1", "OTHER": runs / "2", "RUNS": runs, "FILE": runs / "1" / name}
    ran = cli(*(places.get(word, word) for word in words), "--force")
    assert ran.code == 2, ran.err
    assert "output-is-input" in ran.err + ran.out
    assert [path.read_bytes() for path in sorted(runs.glob("*/*"))] == [b"kept"] * 4


# Names of files that are no UTF-8: the work is done, what is shown of them can be pasted.

STRANGE = os.fsdecode(b"\xff.dat")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wbscope:
    """The real command, with the real library."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    monkeypatch.delenv("WBSCOPE_INGEST", raising=False)
    (tmp_path / "cache").mkdir(mode=0o700)
    return Wbscope(tmp_path / "cache", process=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    made.mkdir()
    trace = example("four-equal-writers").folder / "trace.dat"
    shutil.copy(trace, made / STRANGE)
    shutil.copy(trace, made / "plain.dat")
    return made


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "a b",
        "it's",
        "a\\b c",
        STRANGE,
        os.fsdecode(b"it's \xffe\\"),
        "tab\there",
        "\u00a0",
    ],
)
def test_a_shell_reads_back_the_name(name: str) -> None:
    shown = join(["printf", "%s", name])
    assert shown.isprintable()
    said = subprocess.run(["bash", "-c", shown], check=True, capture_output=True).stdout
    assert said == os.fsencode(name)


def test_a_command_that_cannot_be_shown_is_left_out() -> None:
    assert pasteable("wbscope report 'a b'") == "wbscope report 'a b'"
    assert pasteable(f"wbscope report {STRANGE}") is None
    assert pasteable(f"don't wbscope report '{STRANGE}'") is None


def test_a_name_to_store() -> None:
    assert as_utf8("tëxt") == "tëxt"
    assert as_utf8(STRANGE) == "\\udcff.dat"


@pytest.mark.parametrize("output", ["r.html", "r.md", "r.txt", "r.json"])
def test_report(command: Wbscope, folder: Path, output: str) -> None:
    done = command.run("report", STRANGE, "-o", output, cwd=folder)
    assert (done.returncode, done.stderr) == (0, f"wrote {output}\n")
    text = (folder / output).read_text(encoding="utf-8")
    assert "\\udcff.dat" in text
    if output.endswith("json"):
        assert json.loads(text)["run"] == STRANGE
    if output.endswith("md"):
        assert "wbscope query lost_time $'\\xff.dat'\n" in text


def test_baseline(command: Wbscope, folder: Path) -> None:
    done = command.run("baseline", "save", STRANGE, "-o", "b.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = command.run("baseline", "show", "b.json", cwd=folder)
    assert shown.stdout.startswith("1 run: \\udcff.dat\n"), shown.stderr


def test_ingest_into_such_a_name(command: Wbscope, folder: Path) -> None:
    output = os.fsdecode(b"out\xff.db")
    done = command.run("ingest", "plain.dat", "-o", output, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("wrote out\\udcff.db: ")
    again = command.run("query", "lost_time", output, "--csv", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert (
        again.stdout == command.run("query", "lost_time", "plain.dat", "--csv", cwd=folder).stdout
    )


def test_history_and_dataset(command: Wbscope, folder: Path) -> None:
    place = ("--commit", "a", "--date", "2026-01-01")
    for history in ("h.db", os.fsdecode(b"\xfe.db")):
        added = command.run("history", "add", history, STRANGE, *place, cwd=folder)
        assert added.returncode == 0, added.stderr
        shown = command.run("history", "show", history, cwd=folder)
        assert shown.returncode == 0, shown.stderr
    done = command.run("export", STRANGE, "--parquet", "dataset", cwd=folder)
    assert done.returncode == 0, done.stderr
    asked = command.run("fleet", "sql", "dataset", "SELECT name FROM runs", "--csv", cwd=folder)
    assert asked.stdout == "name\n\\udcff\n", asked.stderr


def test_the_fix_can_be_pasted(command: Wbscope, folder: Path) -> None:
    (folder / "plain.dat").unlink()
    done = command.run("report", os.fsdecode(b"\xfe.dat"), cwd=folder)
    assert done.returncode == 3
    fix = done.stderr.partition("  fix: wbscope ")[2]
    assert fix == "report $'\\xff.dat'\n"
    wbscope = wbscope_path()
    words = ["bash", "-c", f"{wbscope} {fix}"]
    assert subprocess.run(words, cwd=folder, env=command.env, capture_output=True).returncode == 0
