# SPDX-License-Identifier: Apache-2.0
"""Which file of a run is its trace; packed runs and runs on stdin."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import InputError
from wbscope.source import archives
from wbscope.source.archives import Budget, unpack_tar
from wbscope.source.source import Kind, find_source

# Which file of a run is its trace, and who reads it.

PACKET = b"\x0a\x04\x08\x01\x10\x02"
_TEXT = Path(__file__).parents[2] / "data/text/perf-6.1-ns.txt"
DAT = b"\x17\x08\x44tracing6\0"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (DAT, Kind.TRACE),
        (PACKET, Kind.PERFETTO),
        (gzip.compress(PACKET, mtime=0), Kind.PERFETTO),
        (b"PK\x03\x04 and more", Kind.PACKED),
        (b"SQLite format 3\0", Kind.DATABASE),
        (b"# tracer: nop\n", Kind.TRACE),
        # A line break first, and one where a packet of that length would end.
        (b"\n#" + b"x" * 0x23 + b"\n#\n", Kind.TRACE),
        (gzip.compress(b"# tracer: nop\n", mtime=0), Kind.PACKED),
        (gzip.compress(PACKET * 9, mtime=0)[:15], Kind.PACKED),
    ],
)
def test_kind_is_told_by_content(tmp_path: Path, content: bytes, kind: Kind) -> None:
    path = tmp_path / "trace.pftrace"
    path.write_bytes(content)
    source = find_source(str(path))
    assert (source.kind, source.trace, source.folder) == (kind, path, None)


@pytest.mark.parametrize(
    ("names", "trace", "kind"),
    [
        (["trace.dat", "trace.pftrace", "trace.txt"], "trace.dat", Kind.TRACE),
        (["trace.pftrace", "trace.txt"], "trace.pftrace", Kind.PERFETTO),
        (["trace.perfetto-trace.gz", "vmstat.after"], "trace.perfetto-trace.gz", Kind.PERFETTO),
        (["trace.txt", "run.db"], "trace.txt", Kind.TRACE),
    ],
)
def test_the_trace_of_a_folder(tmp_path: Path, names: list[str], trace: str, kind: Kind) -> None:
    for name in names:
        (tmp_path / name).write_bytes({".dat": DAT, ".txt": b"text"}.get(name[-4:], PACKET))
    source = find_source(str(tmp_path))
    assert (source.trace, source.kind) == (tmp_path / trace, kind)
    assert source.folder == tmp_path
    assert source.inputs()[0] == tmp_path / trace


# The head of a section of pcapng, which begins as a packet would.
_PCAPNG = bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")


@pytest.mark.parametrize(("content", "told"), [
    (_PCAPNG, "pcapng"), (b"PERFILE2" + bytes(96), "perf.data"), (b"2ELIFREP", "perf.data"),
])  # fmt: skip
def test_files_of_other_programs(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "trace.x").write_bytes(content)
    with pytest.raises(InputError, match=told) as caught:
        find_source(str(tmp_path / "trace.x"))
    assert caught.value.slug == "not-a-run"
    with pytest.raises(InputError) as caught:  # nor is it offered
        find_source(str(tmp_path))
    assert "trace.x" not in str(caught.value.fix)


def test_a_file_of_the_kernel_has_no_size(wbscope: Wbscope, tmp_path: Path) -> None:
    """A trace as the name of a process: /proc has it in a file whose size is 0."""
    text = _TEXT.read_text()
    with subprocess.Popen([text], executable="/bin/cat", stdin=subprocess.PIPE) as process:
        path = Path(f"/proc/{process.pid}/cmdline")
        assert path.stat().st_size == 0
        ran = wbscope.run("query", "event_counts", path, "--json")
        named = find_source(str(path))
        process.communicate()
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "trace.txt").write_text(text)
    plain = wbscope.query("event_counts", tmp_path / "trace.txt")
    assert json.loads(ran.stdout)["rows"] == plain != []
    assert (named.path, named.name) == (path, "cmdline")


def test_a_file_that_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="is an empty file"):
        find_source(str(tmp_path / "x"))


def test_a_device_is_not_to_be_saved() -> None:
    """It may never end."""
    with pytest.raises(InputError) as caught:
        find_source("/dev/zero")
    told = "is no regular file and no folder; what ends by itself, save it to a file first"
    assert str(caught.value) == f"/dev/zero: {told}"
    assert caught.value.fix is None


def test_two_traces_are_an_error(tmp_path: Path) -> None:
    for name in ("trace.pftrace", "trace.pftrace.gz"):
        (tmp_path / name).write_bytes(PACKET)
    with pytest.raises(InputError) as caught:
        find_source(str(tmp_path))
    assert caught.value.slug == "two-traces"
    assert caught.value.have == "trace.pftrace, trace.pftrace.gz"


# Packed runs and runs on stdin: answers as of the plain run, errors that name what was given.

Cli = Callable[..., Any]
RUN = REPOSITORY / "examples/gate/runs/before-2"
TRACE = RUN / "trace.dat"


def zstd(data: bytes) -> bytes:
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


STREAMS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": zstd,
    "bz2": bz2.compress,
}


def tarred(pack: Callable[[bytes], bytes], *paths: Path, top: str = "run") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in paths:
            archive.add(path, f"{top}/{path.name}")
    return pack(data.getvalue())


def zipped(path: Path, *members: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.write(member, f"run/{member.name}")


def rows(cli: Cli, run: str | Path) -> Any:
    ran = cli("query", "throttle_by_task", run, "--json")
    assert ran.code == 0, ran.err
    return ran.json()["rows"]


def left(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if "scratch" in path.name]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(shared))
    return shared


@pytest.mark.parametrize("end", STREAMS)
def test_a_packed_trace(cli: Cli, cache: Path, tmp_path: Path, end: str) -> None:
    packed = tmp_path / f"t.dat.{end}"
    packed.write_bytes(STREAMS[end](TRACE.read_bytes()))
    assert rows(cli, packed) == rows(cli, TRACE) != []
    assert left(cache) == []


@pytest.mark.parametrize("end", ["tar", "zip", *(f"tar.{end}" for end in STREAMS)])
def test_a_packed_folder(cli: Cli, cache: Path, tmp_path: Path, end: str) -> None:
    packed = tmp_path / f"x.{end}"
    files = [TRACE, RUN / "vmstat.before", RUN / "vmstat.after"]
    if end == "zip":
        zipped(packed, *files)
    else:
        packed.write_bytes(tarred(STREAMS.get(end[4:], bytes), *files))
    assert rows(cli, packed) == rows(cli, TRACE)
    # The files beside the trace came along.
    statement = "SELECT name FROM sidecar_text UNION SELECT name FROM sidecar_vmstat"
    found = cli("sql", packed, "SELECT count(*) AS n FROM sidecar_vmstat", "--json")
    assert found.json()["rows"][0]["n"] > 0, statement


def test_a_second_question_unpacks_nothing(
    cli: Cli, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(TRACE.read_bytes(), 1))
    unpacked: list[int] = []

    class Counted(gzip.GzipFile):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            unpacked.append(len(data))
            return data

    monkeypatch.setattr(gzip, "GzipFile", Counted)
    first = rows(cli, packed)
    whole = TRACE.stat().st_size
    assert sum(unpacked) >= whole
    unpacked.clear()
    assert rows(cli, packed) == first
    assert sum(unpacked) < whole / 2  # a look at how it begins


def test_a_packed_trace_in_its_folder(cli: Cli, cache: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("vmstat.before", "vmstat.after"):
        shutil.copyfile(RUN / name, run / name)
    (run / "trace.dat.gz").write_bytes(gzip.compress(TRACE.read_bytes(), 1))
    assert rows(cli, run) == rows(cli, TRACE)
    assert cli("ingest", run).code == 0
    found = cli("sql", run / "run.db", "SELECT count(*) AS n FROM sidecar_vmstat", "--json")
    assert found.json()["rows"][0]["n"] > 0


def test_a_packed_database_and_text(cli: Cli, cache: Path, tmp_path: Path) -> None:
    assert cli("ingest", TRACE, "-o", tmp_path / "run.db").code == 0
    packed = tmp_path / "run.db.gz"
    packed.write_bytes(gzip.compress((tmp_path / "run.db").read_bytes(), 1))
    assert rows(cli, packed) == rows(cli, TRACE)
    for verb, slug in (("ingest", "already-a-database"), ("convert", "not-a-trace")):
        ran = cli(verb, packed, "-o", tmp_path / "x", "--json")
        assert (ran.code, ran.error()["slug"]) == (3, slug)
        assert ran.error()["object"] == str(packed)
        assert not (tmp_path / "x").exists()
    text = b"   dd-11    [000] .....  100.000001: sched_wakeup: comm=dd pid=11 prio=120\n"
    (tmp_path / "t.xz").write_bytes(lzma.compress(text))
    ran = cli("sql", tmp_path / "t.xz", "SELECT event FROM event_counts", "--json")
    assert len(ran.json()["rows"]) == 1


def test_verbs_that_read_the_trace_itself(cli: Cli, cache: Path, tmp_path: Path) -> None:
    """The recorded events ride along, and are converted, as of the plain trace."""
    packed = tmp_path / "trace.dat.gz"
    packed.write_bytes(gzip.compress(TRACE.read_bytes(), 1))
    for verb in ("timeline", "convert"):
        for number, source in enumerate((TRACE, packed)):
            assert cli(verb, source, "-o", tmp_path / f"{verb}{number}").code == 0
        one, other = (tmp_path / f"{verb}{number}" for number in (0, 1))
        assert one.read_bytes() == other.read_bytes()
    assert left(cache) == []


def test_what_is_packed_twice(cli: Cli, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "t.dat.gz").write_bytes(gzip.compress(TRACE.read_bytes(), 1))
    zipped(tmp_path / "x.zip", tmp_path / "t.dat.gz")
    error = cli("report", tmp_path / "x.zip", "--json").error()
    assert error["slug"] == "nested-archive"
    assert error["object"] == f"{tmp_path}/x.zip:t.dat.gz"
    assert left(cache) == []


def test_several_runs_in_one_archive(cli: Cli, cache: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in ("a", "b"):
            archive.write(TRACE, f"runs/{name}/trace.dat")
    error = cli("report", tmp_path / "x.zip", "--json").error()
    assert (error["slug"], error["have"]) == ("several-runs", "a, b")


def test_an_archive_without_a_run(cli: Cli, cache: Path, tmp_path: Path) -> None:
    zipped(tmp_path / "x.zip", RUN / "vmstat.before", RUN / "uname")
    ran = cli("report", tmp_path / "x.zip", "--json")
    error = ran.error()
    assert (ran.code, error["slug"], error["object"]) == (3, "no-trace", f"{tmp_path}/x.zip")
    assert str(cache) not in json.dumps(error)


@pytest.mark.parametrize("end", [*STREAMS, "tar.gz", "zip"])
def test_damage_is_told_in_one_error(cli: Cli, cache: Path, tmp_path: Path, end: str) -> None:
    packed = tmp_path / f"x.{end}"
    if end == "zip":
        zipped(packed, TRACE)
    else:
        packed.write_bytes(STREAMS[end[-3:].strip(".")](TRACE.read_bytes()))
    data = packed.read_bytes()
    packed.write_bytes(data[: len(data) // 2])
    ran = cli("report", packed, "--json")
    assert (ran.code, ran.out) == (3, "")
    assert (ran.error()["slug"], ran.error()["object"]) == ("damaged-archive", str(packed))
    assert left(cache) == []


def test_a_damaged_trace_is_called_as_it_was_given(cli: Cli, cache: Path, tmp_path: Path) -> None:
    packed = tmp_path / "t.dat.gz"
    packed.write_bytes(gzip.compress(TRACE.read_bytes()[:3000]))
    ran = cli("ingest", packed, "-o", tmp_path / "x.db")
    assert (ran.code, str(packed) in ran.err, str(cache) in ran.err) == (3, True, False), ran.err


def test_a_bomb(cli: Cli, cache: Path, tmp_path: Path) -> None:
    """65 MiB of zeros in 300 KiB; the limit can be lifted."""
    packed = tmp_path / "t.dat.gz"
    packed.write_bytes(gzip.compress(TRACE.read_bytes()[:600] + bytes(65 << 20), 1))
    ran = cli("ingest", packed, "-o", tmp_path / "x.db", "--json")
    assert (ran.code, ran.error()["slug"]) == (3, "too-large")
    ran = cli("ingest", packed, "-o", tmp_path / "x.db", "--json", "--no-unpack-limit")
    assert ran.error()["slug"] != "too-large"
    assert left(cache) == []


def test_more_than_may_be_unpacked(tmp_path: Path) -> None:
    """Whatever the ratio is."""
    data = io.BytesIO(tarred(bytes, TRACE))
    with pytest.raises(InputError) as caught:
        unpack_tar(data, tmp_path, Budget("t.tar", TRACE.stat().st_size - 1))
    assert (caught.value.slug, caught.value.subject) == ("too-large", "t.tar")


def test_xz_that_wants_gibibytes_of_memory(cli: Cli, cache: Path, tmp_path: Path) -> None:
    """Its header asks for a dictionary of 4 GiB."""
    data = bytearray(lzma.compress(TRACE.read_bytes(), preset=0))
    block = slice(12, 12 + 4 * data[12])  # the header of the first one, without its checksum
    assert data[14:16] == b"\x21\x01"  # LZMA2 and the size of what it is told
    data[16] = 40
    data[block.stop : block.stop + 4] = zlib.crc32(data[block]).to_bytes(4, "little")
    packed = tmp_path / "t.xz"
    packed.write_bytes(data)
    error = cli("report", packed, "--json").error()
    assert (error["slug"], "emory" in error["message"]) == ("damaged-archive", True)


def test_two_streams_are_one_file(tmp_path: Path) -> None:
    for end, pack in STREAMS.items():
        path = tmp_path / f"x.{end}"
        path.write_bytes(pack(b"one " * 40_000) + pack(b"two"))
        with archives.opened(path) as stream:
            assert stream.read() == b"one " * 40_000 + b"two", end


def piped(cache: Path, data: bytes, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache))
    command = [str(wbscope_path()), *map(str, words)]
    return subprocess.run(command, input=data, capture_output=True, env=env, check=False)


def test_stdin(cli: Cli, cache: Path, tmp_path: Path) -> None:
    ran = piped(cache, TRACE.read_bytes(), "query", "throttle_by_task", "-", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == rows(cli, TRACE)
    made = sorted(cache.rglob("*.db"))
    archive = tarred(STREAMS["gz"], TRACE, RUN / "vmstat.before")
    ran = piped(cache, archive, "ingest", "-", "-o", tmp_path / "x.db")
    assert ran.returncode == 0, ran.stderr
    assert rows(cli, tmp_path / "x.db") == rows(cli, TRACE)
    # The same bytes are known.
    piped(cache, TRACE.read_bytes(), "query", "throttle_by_task", "-", "--json")
    assert sorted(cache.rglob("*.db")) == made
    assert left(cache) == []


@pytest.mark.parametrize("sides", [("-", "--against", "OTHER"), ("OTHER", "--against", "-")])
def test_stdin_on_a_side(
    cache: Path, sides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # the library of these tests
    other = str(RUN.with_name("lower-2"))
    words = [other if word == "OTHER" else word for word in sides]
    ran = piped(cache, TRACE.read_bytes(), "compare", *words, "--json")
    assert ran.returncode == 0, ran.stderr
    made = [[run["name"] for run in side["runs"]] for side in json.loads(ran.stdout)["sides"]]
    assert made == [["lower-2" if word == "OTHER" else "-"] for word in (sides[2], sides[0])]


@pytest.mark.parametrize(
    ("data", "words", "code", "said"),
    [
        (b"", ("report", "-"), 3, b"error[not-a-run]: -: "),
        (b"hello\n", ("report", "-"), 3, b"error[not-a-trace]: -: "),
        (b"\x1f\x8b\x08\x00", ("report", "-"), 3, b"error[damaged-archive]: -: "),
        (b"hello\n", ("ingest", "-"), 2, b"wbscope ingest - -o stdin.db"),
    ],
)
def test_stdin_that_is_no_trace(
    cache: Path, data: bytes, words: tuple[str, ...], code: int, said: bytes
) -> None:
    ran = piped(cache, data, *words)
    assert (ran.returncode, said in ran.stderr) == (code, True), ran.stderr
    assert str(cache).encode() not in ran.stderr
    assert left(cache) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_killed_while_stdin_comes(cli: Cli, tmp_path: Path, number: int) -> None:
    env = dict(os.environ, WBSCOPE_CACHE_DIR=str(tmp_path))
    command = [str(wbscope_path()), "report", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env=env,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(TRACE.read_bytes())
        wait_until(lambda: any(path.name == "stdin" for path in tmp_path.rglob("*")), "its file")
        process.send_signal(number)
        process.wait(GUARD_SECONDS)
    if number == signal.SIGKILL:  # nobody can clean up behind it but the next one
        assert left(tmp_path) != []
        ran = piped(tmp_path, TRACE.read_bytes(), "query", "throttle_by_task", "-", "--json")
        assert ran.returncode == 0, ran.stderr
    else:
        assert process.returncode == 130
    assert left(tmp_path) == []


def test_most_runs_load_no_unpacker() -> None:
    script = (
        "import sys, wbscope.source.source as source; source.find_source(sys.argv[1]);"
        "print([name for name in ('tarfile', 'backports.zstd') if name in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(example("four-equal-writers").trace)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"y\n" * (5 << 20), b"begins with 4 MiB of what is no trace"),
        (bytes(range(256)) * (20 << 10), b"begins with 4 MiB of what is no trace"),
        (b"PERFILE2" + bytes(20 << 20), b"is a perf.data"),
    ],
    ids=["text", "binary", "perf"],
)
def test_junk_is_not_read_to_its_end(cache: Path, data: bytes, said: bytes) -> None:
    """Of `yes | wbscope explain -` 16 GiB were written to the disk first."""
    with subprocess.Popen(
        [str(wbscope_path()), "explain", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, WBSCOPE_CACHE_DIR=str(cache)),
    ) as process:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            for _ in range(64):
                process.stdin.write(data)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdin = None
        _, err = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, said in err) == (3, True), err
    assert left(cache) == []
