# SPDX-License-Identifier: Apache-2.0
"""From what the user calls the runs of a side to their numbers."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from wbscope.base.errors import (
    Argument,
    EvidenceError,
    InputError,
    Phrase,
    UsageError,
    WbscopeError,
)
from wbscope.compare.baseline import is_baseline, read_baseline
from wbscope.compare.comparison import Side
from wbscope.compare.measure import Wanted, findings_of, measure, measure_folder, wanted_of
from wbscope.compare.metrics import Catalog, load_catalog
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import FACTS
from wbscope.ingest.program import Observer
from wbscope.library.library import Library, load_library
from wbscope.measure.files import NAMES, is_measurements, read_measurements, runs_of_part
from wbscope.measure.metric import FileRun, Scalars, split_name
from wbscope.run.agreement import agreement_of
from wbscope.run.labels import short_names
from wbscope.run.run import Run, open_run
from wbscope.source.archives import is_archive, unpacked
from wbscope.source.source import DATABASE_NAME, find_source

_HASH_DIGITS = 12


def is_file_of_runs(text: str) -> bool:
    """True for a file of measurements, with or without a part."""
    return is_measurements(_split(text)[0])


def runs_of_file(text: str, name: str, catalog: Catalog, wanted: Wanted) -> list[RunData]:
    """The runs in it; NAME:RUN each where there are several.

    Raises: InputError, UsageError as read_measurements() and runs_of_part() do.
    """
    path, part = _split(text)
    found = read_measurements(path)
    runs = runs_of_part(found, part, str(path))
    facts = dict.fromkeys(fact for fact in FACTS if fact != "sysctl")
    place = f"{path.resolve()} {path.stat().st_mtime_ns} {part or ''}"
    notices = found.notices if part is None else ()
    return [
        RunData(
            name=f"{name}:{run.name}" if len(runs) > 1 else name,
            source_id=f"{_hash(_told(run))}.{_hash(f'{place} {number}')}",
            scalars=wanted_of(run.scalars, wanted, catalog.rows),
            fingerprint=facts,
            warnings=notices if number == 0 else (),
            is_sample=run.is_sample,
            path=text,
        )
        for number, run in enumerate(runs)
    ]


def _split(text: str) -> tuple[Path, str | None]:
    """A # may also be in the name of the file."""
    path, sign, part = text.rpartition("#")
    if not sign or os.path.exists(text):
        return Path(text), None
    if not os.path.exists(path):
        path, _, part = text.partition("#")
    return Path(path), part


def _told(run: FileRun) -> str:
    spreads = run.scalars.spreads
    return repr([(name, value, spreads.get(name)) for name, (_, value) in run.scalars.items()])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


_NOT_A_TRACE = "not-a-trace"
_TOOLS = ("fio", "hyperfine", "mmtests", "vmstat")

Watch = Callable[[str], AbstractContextManager[Observer | None]]


def _unwatched(_run: str) -> AbstractContextManager[Observer | None]:
    return nullcontext()


@dataclass
class Loader:
    """Opens runs one after the other; a run that is on two sides is read once.

    watch  what is told of an ingest of a run: a progress bar
    each   is called with every open run, for what is more than numbers
    checks each trace is compared with what is beside it
    findings  each run is asked what is wrong, too
    """

    wanted: Wanted = lambda _family: True
    watch: Watch = _unwatched
    allow_damaged: bool = False
    checks: bool = False
    findings: bool = False
    each: Callable[[Run, RunData], None] | None = None
    library: Library = field(default_factory=load_library)
    catalog: Catalog = field(init=False)
    _known: dict[str, RunData] = field(init=False, default_factory=dict)
    _archives: dict[str, list[RunData]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog = load_catalog(self.library)

    def side(self, name: str, given: Sequence[str]) -> Side:
        """The runs of one side: folders, traces, databases, folders of runs, baselines.

        Also files of measurements, and archives of any of these.
        """
        runs: list[RunData] = []
        together: list[str] = []
        for one in given:
            if is_archive(Path(one)):
                runs += self._loaded(together)
                runs += self._of_archive(one)
                together = []
            else:
                together += expand(one)
        runs += self._loaded(together)
        if not runs:
            raise UsageError("no-runs", name, "has no runs", fix=f"wbscope compare {name}...")
        for run in runs:
            if run.damaged and not self.allow_damaged:
                raise EvidenceError(
                    "damaged-run",
                    run.name,
                    run.damaged[0].message,
                    effect="a part of a run is not comparable with a whole one",
                    fix=Phrase("record it again, or allow it: ", Argument("allow_damaged", True)),
                )
            if run.empty:
                raise EvidenceError(
                    "run-without-events",
                    run.name,
                    "no event was recorded: none of its numbers says anything",
                    effect="it is comparable with nothing, and no budget holds for it",
                    fix="record it again, for longer and while something writes: wbscope record",
                )
            if run.untimed:
                raise EvidenceError(
                    "run-without-times",
                    run.name,
                    "its trace clock counts ticks, not ns: no time and no rate of it is known",
                    effect="it is comparable with nothing, not even with another such run",
                    fix="record it again: trace-cmd record -C mono, or wbscope record",
                )
        return Side(name, tuple(runs))

    def _loaded(self, texts: Sequence[str]) -> list[RunData]:
        """The runs of what expand() gave, in that order."""
        named = [text for text in texts if not _is_baseline(text)]
        names = dict(zip(named, short_names(named), strict=True)) if named else {}
        runs: list[RunData] = []
        for text in texts:
            if text not in names:
                runs.extend(self.chosen(run) for run in read_baseline(Path(text)))
            elif is_file_of_runs(text):
                runs += runs_of_file(text, names[text], self.catalog, self.wanted)
            else:
                try:
                    run = self._run(text)
                except InputError as error:
                    raise _named_error(error, text) from error
                runs.append(replace(run, name=names[text], path=text))
        return runs

    def _of_archive(self, text: str) -> list[RunData]:
        """The runs in an archive, which is unpacked while they are read."""
        path = Path(text)
        known = os.path.realpath(path)
        if known not in self._archives:
            stem = path.name.removesuffix(path.suffix).removesuffix(".tar")
            with unpacked(path) as folder:
                try:
                    texts = expand(str(folder))
                    if texts == [str(folder)] and not _is_run(texts[0]):
                        raise _no_runs(folder, text)
                    found = self._loaded(texts)
                except WbscopeError as error:
                    raise error.with_path(f"{folder}/", f"{text}:").with_path(
                        str(folder), text
                    ) from None
                runs = [
                    replace(run, name=f"{stem}/{run.name}", path=text)
                    for run in (found if texts != [str(folder)] else [replace(found[0], name="1")])
                ]
            self._archives[known] = runs
        return self._archives[known]

    def chosen(self, run: RunData) -> RunData:
        """A run of a baseline with only what is wanted."""
        scalars = Scalars()
        for name, (metric, value) in run.scalars.items():
            if self.wanted(split_name(name)[0]):
                scalars.add(metric, value, run.scalars.spreads.get(name))
        zeros = {family: none for family, none in run.zeros.items() if self.wanted(family)}
        return replace(run, scalars=scalars, zeros=zeros)

    def _run(self, text: str) -> RunData:
        if text not in self._known:
            if _is_folder_of_files(text):
                self._known[text] = measure_folder(Path(text), self.catalog, self.wanted)
            else:
                with (
                    self.watch(text) as observer,
                    open_run(text, library=self.library, observer=observer) as run,
                ):
                    data = measure(run, text, self.catalog, self.wanted)
                    if self.checks:
                        data = replace(data, checked=_faults(run))
                    if self.findings:
                        data = replace(data, findings=findings_of(run))
                    self._known[text] = data
                    if self.each is not None:
                        self.each(run, data)
        return self._known[text]


def _named_error(error: InputError, text: str) -> InputError:
    """A text may have been meant as measurements: what it is not, is both."""
    if error.slug != _NOT_A_TRACE or not os.path.isfile(text):
        return error
    return InputError(
        error.slug,
        text,
        f"is no trace, and no file of measurements (time, perf stat, {', '.join(_TOOLS)}, a table"
        " with a header, lines NAME VALUE UNIT)",
        at=error.at,
        effect="nothing of this file was used",
        fix="docs/measurements.md has an example of each; a trace: trace-cmd record -o trace.dat",
    )


def _faults(run: Run) -> tuple[str, ...]:
    """What speaks against the trace; that nothing could be compared does, too."""
    try:
        return agreement_of(run).faults
    except EvidenceError as error:
        return (error.message,)


def expand(text: str) -> list[str]:
    """A folder of runs as its runs, in the order of their numbers; anything else as it is.

    Without runs in folders of their own, each file of measurements is one.

    Raises: InputError for a folder inside it, or a database, that is no run.
    """
    path = Path(text)
    if not os.path.isdir(path) or _fault(text) is None:
        return [text]
    try:
        entries = sorted(path.iterdir(), key=_by_number)
    except OSError:  # opening it tells why
        return [text]
    inside = [
        _content(entry)
        for entry in entries
        if (os.path.isdir(entry) and not entry.name.startswith(".")) or entry.suffix == ".db"
    ]
    faults = {one: fault for one in inside if (fault := _fault(one)) is not None}
    if len(faults) == len(inside):
        return [str(entry) for entry in entries if is_measurements(entry)] or [text]
    for one, fault in faults.items():  # of several the first; the others are named
        more = ", ".join(Path(other).name for other in list(faults)[1:6])
        raise InputError(
            fault.slug,
            one,
            fault.message,
            have=fault.have if not more else f"as little: {more}",
            effect=f"{text} is a folder of runs, and a run that left nothing is no run less",
            fix=f"record it again, or put it elsewhere: mv {shlex.quote(one)} OTHER-FOLDER",
        ) from fault
    return inside


def _content(entry: Path) -> str:
    """A folder with no more than a run.db, or one file of measurements, is that file."""
    if not os.path.isdir(entry) or _fault(str(entry)) is None:
        return str(entry)
    if os.path.isfile(entry / DATABASE_NAME):
        return str(entry / DATABASE_NAME)
    try:
        files = [file for file in sorted(entry.iterdir()) if is_measurements(file)]
    except OSError:  # opening it tells why
        return str(entry)
    return str(files[0]) if len(files) == 1 else str(entry)


def _is_run(text: str) -> bool:
    return _fault(text) is None


def _no_runs(folder: Path, text: str) -> InputError:
    names = sorted(entry.name for entry in folder.iterdir())
    return InputError(
        "no-runs",
        text,
        "is an archive without runs, wanted folders with a trace.dat, a run.db or files of"
        " measurements",
        have=", ".join(names[:8]) or "an empty archive",
        fix="tar -czf runs.tar.gz RUNS",
    )


def _fault(text: str) -> InputError | None:
    """Why it is no run, None for one."""
    if is_measurements(Path(text)):
        return None
    try:
        find_source(text)
    except InputError as error:
        return None if _is_folder_of_files(text) else error
    return None


def _is_folder_of_files(text: str) -> bool:
    """A folder without a trace, but with what another tool measured."""
    path = Path(text)
    if not os.path.isdir(path) or not any(os.path.isfile(path / name) for name in NAMES):
        return False
    try:
        find_source(text)
    except InputError as error:
        return error.slug == "no-trace"
    return False


def _is_baseline(text: str) -> bool:
    return os.path.isfile(text) and is_baseline(Path(text))


def _by_number(path: Path) -> list[tuple[int, str]]:
    """run2 before run10."""
    parts: Iterable[str] = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
