# SPDX-License-Identifier: Apache-2.0
"""Files of any file system that Hadoop knows, by a JVM, and the runs among them.

pyarrow.fs is no substitute: hdfs:// wants libhdfs, which PySpark does not bring, s3a:// and what
Spark's configuration sets are unknown to it, and its move() goes over a file that is there.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wbscope.base.cache import scratch_folder
from wbscope.base.errors import InputError, SetupError
from wbscope.fleet.harvest import DATASET_MARK, ENDS, is_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)
# A rename is a copy there, and a file appears whole, when it is closed.
_STORES = ("cosn", "gs", "oss", "s3", "s3a", "s3n", "wasb", "wasbs")
_HADOOP = "spark.hadoop."
_WORKER_JVM = {
    "spark.driver.memory": "256m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
_of_worker: list[HadoopFiles] = []


@dataclass(frozen=True)
class Entry:
    """A file or folder that is there."""

    uri: str
    name: str
    is_folder: bool
    bytes: int
    modified_s: float


def is_uri(text: str) -> bool:
    """hdfs://..., s3a://..., file://...: what Hadoop is asked for."""
    return _URI.fullmatch(text) is not None


def is_store(uri: str) -> bool:
    """Whether this is an object store."""
    return uri.partition(":")[0].lower() in _STORES


class HadoopFiles:
    """What is done with files; each URI has its file system.

    Everything raises OSError: FileNotFoundError, FileExistsError, and others with Java's words.
    """

    def __init__(self, gateway: Any, conf: Any) -> None:
        self._gateway = gateway
        self._hadoop = gateway.jvm.org.apache.hadoop.fs
        self._conf = conf
        self._contexts: dict[str, Any] = {}

    def entry(self, uri: str) -> Entry | None:
        """What is there under this name."""
        try:
            with _java(uri):
                return _entry(uri, self._system(uri).getFileStatus(self._path(uri)))
        except FileNotFoundError:
            return None

    def inside(self, uri: str) -> list[Entry]:
        """The entries of a folder by their names; none where there is no folder."""
        try:
            with _java(uri):
                found = self._system(uri).listStatus(self._path(uri))
                entries = [_entry(_below(uri, one.getPath().getName()), one) for one in found]
        except FileNotFoundError:
            return []
        return sorted(entries, key=lambda entry: entry.name)

    def files_below(self, uri: str) -> Iterator[Entry]:
        """All files at any depth."""
        for entry in self.inside(uri):
            if entry.is_folder:
                yield from self.files_below(entry.uri)
            else:
                yield entry

    def read(self, uri: str) -> bytes:
        """A small file."""
        with _java(uri):
            stream = self._system(uri).open(self._path(uri))
            try:
                return bytes(self._gateway.jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def get(self, uri: str, local: Path) -> None:
        """Copy a file, or a folder with all that is in it."""
        with _java(uri):
            target = self._local(local)
            self._system(uri).copyToLocalFile(False, self._path(uri), target, True)

    def put(self, local: Path, uri: str) -> None:
        """Copy a file to a name that nothing has. On an object store it appears whole.

        Raises: FileExistsError. Of two writers at once on an object store the last one wins there.
        """
        with _java(uri):
            system, target = self._system(uri), self._path(uri)
            if system.exists(target):
                raise FileExistsError(errno.EEXIST, "exists", uri)
            source = self._local(local)
            system.copyFromLocalFile(False, is_store(uri), source, target)

    def move(self, source: str, target: str) -> None:
        """Give a file another name that nothing has, in a folder that is there.

        FileSystem.rename() would do it over another file on a local disk.
        Raises: FileExistsError; FileNotFoundError without the file, or the folder.
        """
        with _java(target):
            none = self._gateway.new_array(self._hadoop.Options.Rename, 0)
            self._context(target).rename(self._path(source), self._path(target), none)

    def make_folder(self, uri: str) -> None:
        """And those above it."""
        with _java(uri):
            self._system(uri).mkdirs(self._path(uri))

    def delete(self, uri: str, *, whole: bool = False) -> None:
        """Remove a file, or a `whole` folder; nothing happens where there is none."""
        with _java(uri):
            self._system(uri).delete(self._path(uri), whole)

    def _local(self, path: Path) -> Any:
        """Hadoop takes a name as it is: no %XX in it."""
        return self._hadoop.Path(f"file://{path.absolute()}")

    def _path(self, uri: str) -> Any:
        return self._hadoop.Path(uri)

    def _system(self, uri: str) -> Any:
        system = self._path(uri).getFileSystem(self._conf)
        system.setWriteChecksum(False)  # no .crc files beside those on a local disk
        return system

    def _context(self, uri: str) -> Any:
        """Each has connections of its own."""
        system = uri.split("/", 3)[2] if uri.count("/") > 1 else ""
        key = f"{uri.partition(':')[0]}://{system}"
        if key not in self._contexts:
            address = self._path(uri).toUri()
            self._contexts[key] = self._hadoop.FileContext.getFileContext(address, self._conf)
        return self._contexts[key]


def files_of_session(session: SparkSession) -> HadoopFiles:
    """By the driver's own JVM."""
    context: Any = session.sparkContext
    return HadoopFiles(context._gateway, context._jsc.hadoopConfiguration())


def settings_of(session: SparkSession) -> dict[str, str]:
    """What a worker's Hadoop has to be told."""
    return {
        name.removeprefix(_HADOOP): value
        for name, value in session.sparkContext.getConf().getAll()
        if name.startswith(_HADOOP)
    }


def files_of_worker(settings: Mapping[str, str]) -> HadoopFiles:
    """On an executor, whose Python has no way to its JVM: by one more, which ends with this worker.

    Settings may be secrets: they are told inside, and stand on no command line.

    Raises: SetupError.
    """
    if _of_worker:
        return _of_worker[0]
    from pyspark import SparkConf, SparkFiles
    from pyspark.java_gateway import launch_gateway

    # What spark.jars brought to the executor, such as the client of an object store.
    jars = os.path.join(SparkFiles.getRootDirectory(), "*")
    conf = SparkConf(loadDefaults=False).setAll(
        [*_WORKER_JVM.items(), ("spark.driver.extraClassPath", jars)]
    )
    try:
        gateway = launch_gateway(conf, {"stdout": 2, "stderr": 2})
    except Exception as error:  # of pyspark, without a type of its own
        raise SetupError(
            "no-hadoop",
            "an executor",
            f"has no second JVM, which Hadoop's file systems need: {error}",
            fix="spark.executor.memoryOverhead=1g    # it needs some 400 MB",
        ) from error
    hadoop = gateway.jvm.org.apache.hadoop.conf.Configuration()
    for name, value in settings.items():
        hadoop.set(name, value)
    _of_worker.append(HadoopFiles(gateway, hadoop))
    return _of_worker[0]


def _entry(uri: str, status: Any) -> Entry:
    name = status.getPath().getName()
    seconds = status.getModificationTime() / 1000
    return Entry(uri, name, bool(status.isDirectory()), int(status.getLen()), seconds)


def _below(uri: str, name: str) -> str:
    return f"{uri.rstrip('/')}/{name}"


@contextmanager
def _java(uri: str) -> Iterator[None]:
    """What Java throws, as what Python's own files raise."""
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        kind = error.java_exception.getClass().getSimpleName()
        words = str(error.java_exception.getMessage() or kind).splitlines()[0][:300]
        if kind == "FileNotFoundException":
            raise FileNotFoundError(errno.ENOENT, words, uri) from error
        if kind == "AccessControlException":
            raise PermissionError(errno.EACCES, words, uri) from error
        if kind in ("FileAlreadyExistsException", "PathExistsException"):
            raise FileExistsError(errno.EEXIST, words, uri) from error
        raise OSError(errno.EIO, f"{words} ({kind})", uri) from error
    except Py4JError as error:  # the JVM has gone
        raise OSError(errno.EIO, f"Hadoop does not answer: {error}", uri) from error


# Only these names tell whether a folder is a run.
_TELLS = ("trace.", "meta.json")


def sources_at(files: HadoopFiles, uri: str) -> list[str]:
    """As sources_in() of a folder.

    Raises: InputError for a name that is not there.
    """
    try:
        entry = files.entry(uri)
        if entry is None:
            raise InputError(
                "no-such-file",
                uri,
                "does not exist, wanted a run folder, a trace or a .db",
                fix=f"hadoop fs -ls {shlex.quote(uri.rstrip('/').rpartition('/')[0])}",
            )
        if not entry.is_folder:
            return [uri]
        place = uri.rstrip("/")
        inside = files.inside(place)
        return (
            [place]
            if _is_run(inside)
            else list(_hadoop_sources_below(files, place, inside)) or [place]
        )
    except OSError as error:
        raise _cannot_read(uri, error) from error


@contextmanager
def fetched(files: HadoopFiles, uri: str) -> Iterator[str]:
    """The run in a local folder or file of the same name and times, as long as it is needed.

    Raises: InputError for one that is not there or closed; SetupError where the copy fails.
    """
    with scratch_folder() as scratch:
        try:
            entry = files.entry(uri)
            if entry is None:
                raise FileNotFoundError(2, "No such file or directory", uri)
            local = scratch / entry.name
            if entry.is_folder:
                local.mkdir()
                for one in files.inside(uri):
                    # A run has no folders of its own.
                    if not one.is_folder:
                        _get(files, one, local / one.name)
            else:
                _get(files, entry, local)
        except (FileNotFoundError, PermissionError) as error:
            raise _cannot_read(uri, error) from error
        except OSError as error:
            # Of the network or a machine: the next run would meet it as well.
            raise SetupError(
                "cannot-fetch",
                uri,
                f"cannot be copied: {error.strerror or error}",
                effect="runs that are in the dataset stay",
                fix="start the same command again: it goes on where it was",
            ) from error
        yield str(local)


def _get(files: HadoopFiles, entry: Entry, local: Path) -> None:
    files.get(entry.uri, local)
    os.utime(local, (entry.modified_s, entry.modified_s))


def _hadoop_sources_below(files: HadoopFiles, folder: str, inside: list[Entry]) -> Iterator[str]:
    if not inside:
        yield folder
    for entry in inside:
        if entry.name.startswith("."):
            continue
        if entry.is_folder:
            within = files.inside(entry.uri)
            if _is_run(within):
                yield entry.uri
            elif not any(one.name == DATASET_MARK for one in within):
                yield from _hadoop_sources_below(files, entry.uri, within)
        elif entry.name.endswith(ENDS):
            yield entry.uri


def _is_run(inside: list[Entry]) -> bool:
    """By the rules for local folders, which look at names: at a folder of empty files."""
    names = [one.name for one in inside if one.name.startswith(_TELLS) and not one.is_folder]
    if not names:
        return False
    with scratch_folder() as scratch:
        for name in names:
            (scratch / name).touch()
        return is_run(str(scratch))


def _cannot_read(uri: str, error: OSError) -> InputError:
    return InputError(
        "cannot-read",
        uri,
        f"cannot be read: {error.strerror or error}",
        fix=f"hadoop fs -ls {shlex.quote(uri)}    # by the same user",
    )
