# SPDX-License-Identifier: Apache-2.0
"""On a real HDFS, without Spark: a run is there once and whole, whoever dies or stands still."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from support.hdfs import Hdfs
from support.spark import needs_spark
from wbscope.base.errors import Argument, InputError, SetupError, UsageError
from wbscope.fleet.cluster.hadoop_dataset import make_dataset_at, open_dataset_at
from wbscope.fleet.cluster.hadoop_files import HadoopFiles, sources_at
from wbscope.fleet.cluster.hadoop_publish import Publisher
from wbscope.fleet.layout import Partition
from wbscope.fleet.runfiles import FileFacts, RunFiles

pytestmark = [needs_spark]
RUN = "0123456789abcdef" * 2
TABLES = ("check", "findings", "stalls", "runs")
# A writer's renames: its claim, its files, its manifest, its claim away.
CLAIM, FIRST, MANIFEST, AWAY = 1, 2, len(TABLES) + 2, len(TABLES) + 3


class Killed(BaseException):
    """As by SIGKILL: nothing of the process runs any more."""


@dataclass
class Writer:
    """One that does `then()` before its rename number `at`, and one that is `killed` by it."""

    store: Hdfs
    place: str
    folder: Path
    source: str = "one"
    at: int = 0
    then: Callable[[], None] | None = None
    wait_seconds: float = 0.2
    tables: tuple[str, ...] = TABLES
    moves: int = 0
    is_dead: bool = field(default=False)

    def publish(self) -> bool:
        made, folder = run_of(self.source, self.folder, self.tables)
        return Publisher(_Watched(self), self.place, self.wait_seconds).publish(made, folder)

    def die(self) -> None:
        self.is_dead = True
        raise Killed


class _Watched(HadoopFiles):
    """Counts renames; the dead do nothing."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer.store.gateway, writer.store.conf)
        self._writer = writer

    def move(self, source: str, target: str) -> None:
        writer = self._writer
        writer.moves += 1
        if writer.moves == writer.at and writer.then is not None:
            writer.then()
        super().move(source, target)

    def delete(self, uri: str, *, whole: bool = False) -> None:
        if self._writer.is_dead:
            raise Killed
        super().delete(uri, whole=whole)


def run_of(source: str, folder: Path, tables: tuple[str, ...]) -> tuple[RunFiles, Path]:
    """The same run from this source, which `runs` tells, in a folder of its own."""
    own = folder / f"{source}-{len(list(folder.iterdir()))}"
    own.mkdir()
    files = {}
    for table in tables:
        columns = {"run": [RUN], "source": [source if table == "runs" else ""]}
        made_of = pyarrow.table(columns).replace_schema_metadata({"table": table})
        pyarrow.parquet.write_table(made_of, own / f"{table}.parquet")
        data = (own / f"{table}.parquet").read_bytes()
        files[table] = FileFacts(1, len(data), hashlib.sha256(data).hexdigest())
    made = RunFiles(RUN, Partition("2026-11-24", "db7", "6.1"), files, {})
    named = {made.paths()[t]: {"table": t, "sha256": files[t].sha256} for t in tables}
    made.manifest.update({"run": RUN, "source": source, "files": named})
    return made, own


@pytest.fixture
def files(store: Hdfs, monkeypatch: pytest.MonkeyPatch) -> HadoopFiles:
    from py4j.protocol import get_return_value

    # A session that was in this process left PySpark's own, which asks that session's JVM.
    monkeypatch.setattr("py4j.java_gateway.get_return_value", get_return_value)
    return HadoopFiles(store.gateway, store.conf)


@pytest.fixture
def place(store: Hdfs, files: HadoopFiles, tmp_path: Path) -> str:
    """A new dataset, and what somebody else has put into its folders."""
    uri = f"{store.uri}/{tmp_path.name}"
    make_dataset_at(files, uri, None)
    for name in THEIRS:
        theirs = tmp_path / "theirs"
        theirs.write_bytes(name.encode())
        files.make_folder(f"{uri}/{name}".rpartition("/")[0])
        files.put(theirs, f"{uri}/{name}")
    return uri


THEIRS = (
    "notes.txt",
    "_work/notes",
    "_work/mine/notes",
    "_intent/notes.json",
    "_manifest/notes.txt",
    f"stalls/date=2026-11-24/host=db7/kernel=6.1/{'f' * 32}.parquet",
    f"stalls/{RUN}.parquet",
)


def check_once(files: HadoopFiles, place: str, sources: tuple[str, ...] = ("one", "two")) -> None:
    """All that the manifest names, as it says, and nothing else but what is somebody else's."""
    manifest = json.loads(files.read(f"{place}/_manifest/{RUN}.json"))
    assert manifest["source"] in sources
    for name, told in manifest["files"].items():
        data = files.read(f"{place}/{name}")
        assert hashlib.sha256(data).hexdigest() == told["sha256"], name
    ours = {"_dataset.json", f"_manifest/{RUN}.json", *manifest["files"]}
    check_theirs(files, place, ours)


def check_theirs(files: HadoopFiles, place: str, ours: set[str]) -> None:
    there = {one.uri.removeprefix(f"{place}/") for one in files.files_below(place)}
    assert there == ours | set(THEIRS)
    for name in THEIRS:
        assert files.read(f"{place}/{name}") == name.encode()


def test_a_run_is_added_once(store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path) -> None:
    writer = Writer(store, place, tmp_path)
    assert writer.publish()
    assert writer.moves == AWAY
    check_once(files, place, ("one",))
    assert not Writer(store, place, tmp_path, "two").publish()
    check_once(files, place, ("one",))


@pytest.mark.parametrize("at", [CLAIM, FIRST, FIRST + 2, AWAY, AWAY + 1])
@pytest.mark.parametrize("second", ["one", "two"])
def test_a_writer_is_killed(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path, at: int, second: str
) -> None:
    """The next one, of the same job or of another one with other files, goes on."""
    dying = Writer(store, place, tmp_path, at=at, tables=(*TABLES, "writeback"))
    dying.then = dying.die
    with pytest.raises(Killed):
        dying.publish()
    at_last = at == AWAY + 1  # it had one file more
    assert Writer(store, place, tmp_path, second).publish() is not at_last
    if at == CLAIM or at_last:  # it told nobody of its folder, or nobody has to look
        Publisher(files, place).recover(left_seconds=-60)
    check_once(files, place, ("one",) if at_last else (second,))


@pytest.mark.parametrize("at", [CLAIM, FIRST, FIRST + 2, MANIFEST, AWAY])
@pytest.mark.parametrize("second", ["one", "two"])
def test_a_writer_stands_still(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path, at: int, second: str
) -> None:
    """While another one takes over, and is done: it adds nothing to that, and takes nothing."""
    slow = Writer(store, place, tmp_path, at=at)
    other = Writer(store, place, tmp_path, second)
    slow.then = lambda: done.append(other.publish())
    done: list[bool] = []
    assert [slow.publish(), *done] == [at == AWAY, at != AWAY]
    check_once(files, place, ("one",) if at == AWAY else (second,))


@pytest.mark.parametrize("at", [FIRST, FIRST + 2, MANIFEST])
@pytest.mark.parametrize("others", [CLAIM, FIRST, FIRST + 3, MANIFEST])
def test_both_stand_still(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path, at: int, others: int
) -> None:
    """The one that took over stands still as well, and a third one is quicker than both."""
    third = Writer(store, place, tmp_path, "three")
    second = Writer(store, place, tmp_path, "two", others, lambda: done.append(third.publish()))
    first = Writer(store, place, tmp_path, "one", at, lambda: done.append(second.publish()))
    done: list[bool] = []
    done.append(first.publish())
    assert done.count(True) == 1
    check_once(files, place, ("one", "two", "three"))


def test_what_the_dead_left_is_taken_back(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path
) -> None:
    """After a day, and only what is as its claim says."""
    dying = Writer(store, place, tmp_path, at=MANIFEST)
    dying.then = dying.die
    with pytest.raises(Killed):
        dying.publish()
    made, _ = run_of("one", tmp_path, TABLES)
    changed = made.paths()["findings"]
    other = tmp_path / "other"
    other.write_bytes(b"of somebody else")
    files.delete(f"{place}/{changed}")
    files.put(other, f"{place}/{changed}")
    before = {one.uri for one in files.files_below(place)}
    dataset = make_dataset_at(files, place, None)
    dataset.recover()  # it may be at work
    assert {one.uri for one in files.files_below(place)} == before
    Publisher(files, place).recover(left_seconds=-60)
    assert files.read(f"{place}/{changed}") == b"of somebody else"
    check_theirs(files, place, {"_dataset.json", changed})
    with pytest.raises(SetupError) as refused:
        Writer(store, place, tmp_path).publish()
    assert (refused.value.slug, refused.value.subject) == ("foreign-file", f"{place}/{changed}")
    assert files.read(f"{place}/{changed}") == b"of somebody else"
    check_theirs(files, place, {"_dataset.json", changed})


@pytest.mark.parametrize("second", ["one", "two"])
def test_a_manifest_has_gone(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path, second: str
) -> None:
    """As its remedy has it where it is damaged: the run is added again over its own files."""
    assert Writer(store, place, tmp_path).publish()
    files.delete(f"{place}/_manifest/{RUN}.json")
    assert Writer(store, place, tmp_path, second).publish()
    check_once(files, place, (second,))


def test_a_claim_that_lies(store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path) -> None:
    """It names files that are no run's of a dataset: nothing of them is touched."""
    told = {name: {"sha256": hashlib.sha256(name.encode()).hexdigest()} for name in THEIRS}
    told |= {f"../{place.rpartition('/')[2]}/notes.txt": told["notes.txt"]}
    claim = tmp_path / "claim.json"
    claim.write_text(json.dumps({"work": "mine", "files": told}))
    files.put(claim, f"{place}/_intent/{RUN}.json")
    assert Writer(store, place, tmp_path).publish()
    check_once(files, place)


def test_two_begin_a_dataset(store: Hdfs, tmp_path: Path) -> None:
    """The one that is slower has the same one, or is told that it has another key."""
    uri = f"{store.uri}/{tmp_path.name}"
    slow = Writer(store, uri, tmp_path, at=1)
    quick = HadoopFiles(store.gateway, store.conf)
    slow.then = lambda: str(make_dataset_at(quick, uri, None))
    assert make_dataset_at(_Watched(slow), uri, None).redaction is None
    slow.moves, slow.place = 0, f"{uri}-2"
    slow.then = lambda: str(make_dataset_at(quick, f"{uri}-2", None))
    with pytest.raises(UsageError) as refused:
        make_dataset_at(_Watched(slow), f"{uri}-2", "key")
    assert refused.value.slug == "other-redaction"
    assert [one.name for one in quick.inside(f"{uri}-2")] == ["_dataset.json"]


def test_remedies_are_for_a_shell(
    store: Hdfs, files: HadoopFiles, place: str, tmp_path: Path
) -> None:
    """A name full of signs is one word, a command is one that knows URIs."""
    strange = f"{store.uri}/{tmp_path.name} it's; $(x)"
    assert fix_of(lambda: open_dataset_at(files, strange, "spark://host:7077")) == [
        *("wbscope", "fleet", "ingest", "RUN...", "-o", strange, "master=spark://host:7077")
    ]
    missing = fix_of(lambda: sources_at(files, f"{strange}/none"))
    assert missing == ["hadoop", "fs", "-ls", strange]
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"{")
    files.make_folder(strange)
    files.put(theirs, f"{strange}/notes.txt")
    with pytest.raises(UsageError) as refused:
        make_dataset_at(files, strange, None)
    assert getattr(refused.value.fix, "parts", None) == (Argument("output", f"{strange}/dataset"),)
    add = ["wbscope", "fleet", "ingest", "RUN...", "-o"]
    assert fix_of(lambda: open_dataset_at(files, strange)) == [*add, f"{strange}/dataset"]
    assert fix_of(lambda: open_dataset_at(files, f"{strange}/notes.txt")) == [
        *(*add, f"{strange}/notes.txt-dataset")
    ]
    files.put(theirs, f"{strange}/_dataset.json")
    assert fix_of(lambda: open_dataset_at(files, strange)) == [*add, f"{strange}-new"]
    files.make_folder(f"{place}/_manifest")
    manifest = f"{RUN}.json"
    files.put(theirs, f"{place}/_manifest/{manifest}")
    words = fix_of(open_dataset_at(files, place).manifests)
    assert words[:5] == [
        *("hadoop", "fs", "-mv", f"{place}/_manifest/{manifest}", f"{place}-damaged-{manifest},")
    ]


def fix_of(asked: Callable[[], Any]) -> list[str]:
    """The words of the remedy, as a shell has them."""
    with pytest.raises(InputError) as told:
        asked()
    assert told.value.fix is not None
    return shlex.split(told.value.fix)
