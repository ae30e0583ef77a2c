# SPDX-License-Identifier: Apache-2.0
"""What needs a process of its own: pipes, signals, terminals, full disks, removed folders."""

from __future__ import annotations

import errno
import io
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.stdlib import ENDLESS, runs_a_statement
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import SetupError
from wbscope.base.held_folder import HeldFolder
from wbscope.base.system import absolute, current_folder
from wbscope.cli.output import ProgressBar
from wbscope.record import choose
from wbscope.source.plain_files import first_bytes

# What needs a process of its own: pipes, signals, terminals, full disks.

Start = Callable[..., subprocess.Popen[bytes]]
MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000) SELECT i FROM n"
GATE = ("gate", "nosuch", "--budget", "throttle_summary.pause_p99_ns <= 1h")


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_reader_that_leaves_early_is_no_error(
    start: Start, database: Path, form: list[str]
) -> None:
    process = start("sql", database, MANY, *form)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


def test_full_disk_behind_stdout(start: Start, database: Path) -> None:
    with open("/dev/full", "w") as full:
        process = start("sql", database, MANY, stdout=full)
        _, err = process.communicate()
    assert process.returncode == 5
    assert err == b"error[cannot-write]: stdout: cannot be written: No space left on device\n"


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["query", "-h"], ["sql", "run.db", "SELECT 1"]]
)
def test_a_few_lines_on_a_full_disk(
    start: Start, database: Path, words: list[str], buffered: str
) -> None:
    """They stay in a buffer, which must not be tried again at the end."""
    env = dict(os.environ, PYTHONUNBUFFERED=buffered)
    with open("/dev/full", "w") as full:
        process = start(*words, stdout=full, env=env, cwd=database.parent)
        _, err = process.communicate()
    assert process.returncode == 5
    assert err == b"error[cannot-write]: stdout: cannot be written: No space left on device\n"


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([*GATE], 3),
        ([*GATE, "--exit-codes", "bisect"], 131),
        (["query", "nope", "run.db"], 2),
        (["nosuchcmd"], 2),
        ([], 2),
        (["query", "throttle_by_task", "run.db"], 0),
        (["ingest", "trace.dat", "-o", "new.db"], 0),
    ],
)
@pytest.mark.usefixtures("ingester", "database", "trace")
def test_full_disk_behind_stderr(
    start: Start, tmp_path: Path, words: list[str], code: int, buffered: str
) -> None:
    """1 is a gate that says no, and nothing else."""
    env = dict(os.environ, PYTHONUNBUFFERED=buffered)
    if words[:1] == ["gate"]:
        del env["WBSCOPE_SQL_DIR"]  # which has no such metric
    with open("/dev/full", "w") as full:
        process = start(*words, stderr=full, env=env, cwd=tmp_path)
        process.communicate()
    assert process.returncode == code


def test_closed_stdout(start: Start, database: Path) -> None:
    process = start("sql", database, "SELECT 1", preexec_fn=lambda: os.close(1), stdout=None)
    _, err = process.communicate()
    assert process.returncode == 5
    assert err.startswith(b"error[no-stdout]: ")


@pytest.mark.parametrize("words", [["--help"], ["query", "--help"], ["--version"]])
def test_help_with_a_closed_stdout(start: Start, words: list[str]) -> None:
    process = start(*words, preexec_fn=lambda: os.close(1), stdout=None)
    _, err = process.communicate()
    assert process.returncode == 5
    assert err.startswith(b"error[no-stdout]: ")


@pytest.mark.parametrize("name", ["WBSCOPE_TIMEOUT", "WBSCOPE_TEMP_LIMIT"])
@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_limit_of_many_digits(start: Start, database: Path, name: str, digits: int) -> None:
    env = dict(os.environ, **{name: "9" * digits})
    process = start("query", "throttle_by_task", database, env=env)
    _, err = process.communicate()
    assert process.returncode == 2
    assert err.startswith(f"error[bad-variable]: {name}: is of {digits} characters".encode())


def test_closed_stderr(start: Start, tmp_path: Path) -> None:
    process = start("report", tmp_path / "nowhere", preexec_fn=lambda: os.close(2), stderr=None)
    out, _ = process.communicate()
    assert (process.returncode, out) == (3, b"")


def test_stdout_that_cannot_show_a_character(start: Start, database: Path) -> None:
    env = dict(os.environ, PYTHONIOENCODING="ascii")
    out, err = start("sql", database, "SELECT 'ü' AS a", "--csv", env=env).communicate()
    assert (out, err) == (b"a\n\\xfc\n", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_a_running_ingest_and_leaves_nothing(
    start: Start,
    ingester: Any,
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("FAKE_INGESTER", "hang")
    process = start("ingest", trace, "-o", tmp_path / "run.db")
    wait_until(ingester.hanging.exists, "the ingester")
    process.send_signal(number)
    out, err = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, out, err.splitlines()[-1]) == (130, b"", b"interrupted")
    assert os.listdir(tmp_path) == ["trace.dat"]


def test_a_damaged_trace_is_one_where_sigchld_is_ignored(start: Start, tmp_path: Path) -> None:
    """The exit code of a child that nobody waited for would be 0."""
    trace = tmp_path / "trace.dat"
    trace.write_bytes(b"\x17\x08\x44tracing6\0")
    process = start(
        "ingest",
        trace,
        "-o",
        tmp_path / "run.db",
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    _, err = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 3, err
    assert err.startswith(b"error[")


# Sends itself Ctrl-C at the import of the program.
EARLY = """
import os, signal, sys

class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "wbscope.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Early())
from wbscope.cli.start import main

sys.exit(main())
"""


def test_ctrl_c_while_the_program_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY, "--version"], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    ignored = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN){EARLY}"
    done = subprocess.run([sys.executable, "-c", ignored, "--version"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_stops_a_running_statement(start: Start, database: Path) -> None:
    process = start("sql", database, ENDLESS)
    wait_until(lambda: runs_a_statement(process.pid), "rows of the statement on the disk")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def on_terminal(start: Start, *words: object, **env: str) -> bytes:
    """What a command writes to stderr when that is a terminal."""
    master, slave = pty.openpty()
    process = start(*words, stderr=slave, env={**os.environ, "TERM": "xterm", **env})
    os.close(slave)
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    process.communicate()
    assert process.returncode == 0
    os.close(master)
    return seen


@pytest.mark.usefixtures("ingester")
def test_progress_is_drawn_on_a_terminal_only(start: Start, trace: Path) -> None:
    seen = on_terminal(start, "ingest", trace, "-o", trace.parent / "a.db")
    assert b"reading trace.dat" in seen
    quiet = on_terminal(start, "ingest", trace, "-o", trace.parent / "b.db", "--quiet")
    assert b"reading" not in quiet
    assert b"reading" not in on_terminal(start, "query", "run_summary", trace, "--json")
    assert on_terminal(start, "queries") == b""
    process = start("ingest", trace, "-o", trace.parent / "c.db")
    _, err = process.communicate()
    assert err.startswith(b"wrote ")


class _Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, _text: str) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_progress_on_a_terminal_that_has_gone() -> None:
    with ProgressBar(_Gone(), "reading", enabled=True) as bar:
        for done in range(3):
            bar.advance(done, 3)


@pytest.mark.usefixtures("ingester")
def test_no_color(start: Start, trace: Path) -> None:
    color = on_terminal(start, "ingest", trace, "-o", trace.parent / "a.db")
    plain = on_terminal(start, "ingest", trace, "-o", trace.parent / "b.db", NO_COLOR="1")
    assert b"\x1b[38;5" in color or b"\x1b[3" in color
    assert b"\x1b[3" not in plain.replace(b"\x1b[?25", b"")


def test_heavy_libraries_are_left_alone_until_they_are_used() -> None:
    heavy = "{'numpy', 'pandas', 'perfetto', 'polars', 'prompt_toolkit', 'pyarrow'}"
    code = f"import sys, wbscope.cli.main; print({heavy} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    assert result.stdout == "set()\n"


# A command that does not end by itself after Ctrl-C is ended, and says so.

# A main thread that never comes back to Python's own handler, as in a call of a C library.
_STUCK = """
import sys, time
from wbscope.base.watch import watching
files = [open(path, "w") for path in sys.argv[1:]]
with watching(lambda error: 1):
    said = False
    while True:
        try:
            if not said:
                said = True
                print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def _end(process: subprocess.Popen[str]) -> str:
    """What it has told; `with` would wait for ever for one that does not end."""
    try:
        return process.communicate(timeout=GUARD_SECONDS)[1]
    finally:
        process.kill()


def test_it_says_that_it_was_interrupted() -> None:
    command = [sys.executable, "-c", _STUCK]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        told = _end(process)
    assert process.returncode == 130
    assert told == "interrupted\n"


def test_it_writes_to_no_file_that_has_the_number_of_stderr(tmp_path: Path) -> None:
    """Whoever starts it can have closed that: the next file that is opened gets it."""
    paths = [tmp_path / str(number) for number in range(8)]
    command = ["sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", _STUCK, *map(str, paths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _end(process)
    assert process.returncode == 130
    assert [path.read_text() for path in paths] == [""] * len(paths)


# The current folder has been removed: that is told, and is no bug.

Cli = Callable[..., Any]


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)  # the whole library
    monkeypatch.chdir(folder)
    folder.rmdir()
    return folder


def test_paths_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert current_folder() == tmp_path
    assert absolute(Path("a/../b")) == tmp_path / "a/../b"
    assert absolute(Path("/x")) == Path("/x")


def test_whole_paths_need_none(gone: Path) -> None:
    assert absolute(Path("/x")) == Path("/x")
    with pytest.raises(SetupError, match="has been removed"):
        absolute(Path("x"))


@pytest.mark.parametrize(
    "words",
    [
        ("report", "x"), ("query", "event_counts", "x", "y"), ("compare", "x", "--against", "y"),
        ("record", "-o", "x", "--", "true"), ("record", "--unpack", "x.tar"),
        ("sql-package", "-o", "x"),
        ("gate", "--policy", "/p.toml", "/x", "--against", "/y", "--junit", "j", "-o", "v"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("gone")
def test_relative_paths_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert "error[no-cwd]: " in ran.err
    assert ran.code == 5


@pytest.mark.usefixtures("gone")
def test_what_was_put_back_is_told(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before leftovers are looked for there."""
    monkeypatch.setattr(choose, "mounted_tracefs", lambda: None)
    register = tmp_path_factory.mktemp("register")
    (register / "wbscope-1-aa.json").touch()
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(register))
    ran = cli("record", "--recover")
    assert ran.code == 5
    first, second, *_ = ran.err.splitlines()
    assert first.startswith("wbscope-1-aa: ")
    assert second.startswith("error[no-cwd]: ")


# Descriptors: none is left open, and a process may have many.

_MANY = """
import os, resource, sys
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
from wbscope.cli.start import main
sys.exit(main())
"""


def _open_count() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_look_at_a_folder_leaves_none(tmp_path: Path) -> None:
    """A comparison looks at each of hundreds of run folders, several times."""
    (tmp_path / "sub").mkdir()
    before = _open_count()
    assert first_bytes(tmp_path, 16) == b""
    with HeldFolder(tmp_path) as held, pytest.raises(OSError, match="directory"):
        held.read_text("sub")
    assert _open_count() == before


def test_a_process_with_more_than_select_takes(database: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MANY, "sql", str(database), "SELECT 1 AS a", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
