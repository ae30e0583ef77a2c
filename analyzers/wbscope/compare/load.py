# SPDX-License-Identifier: Apache-2.0
"""From what the user calls the runs of a side to their numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import EvidenceError, InputError, UsageError
from wbscope.compare.baseline import is_baseline, read_baseline
from wbscope.compare.comparison import Side
from wbscope.compare.measure import Wanted, measure, measure_folder
from wbscope.compare.metric_catalog import Catalog, load_catalog
from wbscope.compare.rundata import RunData
from wbscope.ingest.program import Observer
from wbscope.library.library import Library, load_library
from wbscope.measure.files import NAMES
from wbscope.measure.metric import Scalars, split_name
from wbscope.run.agreement import agreement_of
from wbscope.run.joined import short_names
from wbscope.run.run import Run, open_run
from wbscope.run.source import find_source

__all__ = ["Loader", "expand"]

Watch = Callable[[str], AbstractContextManager[Observer | None]]


def _unwatched(_run: str) -> AbstractContextManager[Observer | None]:
    return nullcontext()


@dataclass
class Loader:
    """Opens runs one after the other; a run that is on two sides is read once.

    watch  what is told of an ingest of a run: a progress bar
    each   is called with every open run, for what is more than numbers
    checks each trace is compared with what is beside it
    """

    wanted: Wanted = lambda _family: True
    watch: Watch = _unwatched
    allow_damaged: bool = False
    checks: bool = False
    each: Callable[[Run, RunData], None] | None = None
    library: Library = field(default_factory=load_library)
    catalog: Catalog = field(init=False)
    _known: dict[str, RunData] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog = load_catalog(self.library)

    def side(self, name: str, given: Sequence[str]) -> Side:
        """The runs of one side: folders, traces, databases, folders of runs, baselines."""
        texts = [text for one in given for text in expand(one)]
        if not texts:
            raise UsageError("no-runs", name, "has no runs", fix=f"wbscope compare {name}...")
        named = [text for text in texts if not _is_baseline(text)]
        names = dict(zip(named, short_names(named), strict=True)) if named else {}
        runs: list[RunData] = []
        for text in texts:
            if text in names:
                runs.append(replace(self._run(text), name=names[text], path=text))
            else:
                runs.extend(self.chosen(run) for run in read_baseline(Path(text)))
        for run in runs:
            if run.damaged and not self.allow_damaged:
                raise EvidenceError(
                    "damaged-run",
                    run.name,
                    run.damaged[0].message,
                    effect="a part of a run is not comparable with a whole one",
                    fix=Phrase("record it again, or allow it: ", Argument("allow_damaged", True)),
                )
        return Side(name, tuple(runs))

    def chosen(self, run: RunData) -> RunData:
        """A run of a baseline with only what is wanted."""
        scalars = Scalars()
        for name, (metric, value) in run.scalars.items():
            if self.wanted(split_name(name)[0]):
                scalars.add(metric, value)
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
                    self._known[text] = data
                    if self.each is not None:
                        self.each(run, data)
        return self._known[text]


def _faults(run: Run) -> tuple[str, ...]:
    """What speaks against the trace; that nothing could be compared does, too."""
    try:
        return agreement_of(run).faults
    except EvidenceError as error:
        return (error.message,)


def expand(text: str) -> list[str]:
    """A folder of runs as its runs, in the order of their numbers; anything else as it is.

    Raises: InputError for a folder inside it, or a database, that is no run.
    """
    path = Path(text)
    if not path.is_dir() or _fault(text) is None:
        return [text]
    try:
        entries = sorted(path.iterdir(), key=_by_number)
    except OSError:  # opening it tells why
        return [text]
    inside = [
        str(entry)
        for entry in entries
        if (entry.is_dir() and not entry.name.startswith(".")) or entry.suffix == ".db"
    ]
    faults = {one: fault for one in inside if (fault := _fault(one)) is not None}
    if len(faults) == len(inside):
        return [text]
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


def _fault(text: str) -> InputError | None:
    """Why it is no run, None for one."""
    try:
        find_source(text)
    except InputError as error:
        return None if _is_folder_of_files(text) else error
    return None


def _is_folder_of_files(text: str) -> bool:
    """A folder without a trace, but with what another tool measured."""
    path = Path(text)
    if not path.is_dir() or not any((path / name).is_file() for name in NAMES):
        return False
    try:
        find_source(text)
    except InputError as error:
        return error.slug == "no-trace"
    return False


def _is_baseline(text: str) -> bool:
    return Path(text).is_file() and is_baseline(Path(text))


def _by_number(path: Path) -> list[tuple[int, str]]:
    """run2 before run10."""
    parts: Iterable[str] = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
