# SPDX-License-Identifier: Apache-2.0
"""Baselines: the numbers of runs in a small file, one line for each metric, fit for git."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wbscope.base.errors import InputError, UsageError, WbscopeError
from wbscope.base.result import Notice
from wbscope.base.system import read_small
from wbscope.base.version import __version__
from wbscope.compare.comparison import metrics_of, other_meaning
from wbscope.compare.rundata import Fact, RunData, Session
from wbscope.compare.sameness import copies_within
from wbscope.measure.metric import Metric, Scalars, Spread, better_of, is_sane
from wbscope.source.plain_files import first_bytes

BASELINE_SCHEMA = "wbscope.baseline/1"

_START_BYTES = 200
_MOST_BYTES = 64 << 20
_FIX = "wbscope baseline save RUN... -o baseline.json"


def is_baseline(path: Path) -> bool:
    """By its first line; a database or a trace never begins so."""
    start = first_bytes(path, _START_BYTES)
    return start.lstrip().startswith(b"{") and b'"wbscope.baseline/' in start


def baseline_text(runs: Sequence[RunData], more: Mapping[str, Any] | None = None) -> str:
    """The file: what all runs have in common once, each metric with its values on a line.

    `more` are entries that others read.
    """
    common = _common([run.fingerprint for run in runs])
    definitions = _definitions(runs)
    _check_meanings(runs)
    document: dict[str, Any] = {
        "schema": BASELINE_SCHEMA,
        "wbscope_version": __version__,
        "fingerprint": common,
        "definitions": definitions,
        "zeros": {name: value for run in runs for name, value in run.zeros.items()},
        **(more or {}),
    }
    lines = [f"{json.dumps(key)}: {_json(value)}," for key, value in document.items()]
    lines += [
        '"runs": [',
        *_comma(_json(_run_entry(run, common, definitions)) for run in runs),
        "],",
    ]
    lines += ['"metrics": {']
    lines += _comma(
        f"{json.dumps(metric.name)}: {_json(_metric_entry(metric, runs))}"
        for metric in metrics_of(runs)
    )
    return "\n".join(["{", *lines, "}", "}"]) + "\n"


def read_baseline(path: Path) -> tuple[RunData, ...]:
    """The runs of a file; InputError when it is damaged or of another version."""
    try:
        text = read_small(path, _MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        told = f"byte {error.object[error.start]:#04x} at offset {error.start} is no text"
        raise _damaged(path, f"is no JSON: {told}") from error
    except OSError as error:
        shown = shlex.quote(str(path))
        is_missing = isinstance(error, FileNotFoundError)
        raise InputError(
            "cannot-read",
            str(path),
            f"cannot be read: {error.strerror or error}",
            fix=f"wbscope baseline save RUN... -o {shown}" if is_missing else f"ls -ld {shown}",
        ) from error
    return runs_of_text(text, path)


def runs_of_text(text: str, path: Path) -> tuple[RunData, ...]:
    """The runs of what baseline_text() gave; InputError, about `path`, for anything else."""
    try:
        document = json.loads(text)
        # Half a surrogate pair is JSON, and no text that could be written or printed; but a byte
        # of a name of a file (PEP 383).
        if r"\ud" in text.lower():
            json.dumps(document, ensure_ascii=False).encode(errors="surrogateescape")
            names = document.get("metrics") if isinstance(document, dict) else None
            json.dumps(list(names or ()), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise _damaged(path, f"has {half!r} in a text, half of a character") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, f"is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != BASELINE_SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise InputError(
            "baseline-version",
            str(path),
            f"has schema {found!r}, this wbscope reads {BASELINE_SCHEMA!r}",
            fix=_FIX,
        )
    try:
        return _runs(document)
    except (KeyError, TypeError, ValueError, AttributeError, WbscopeError) as error:
        raise _damaged(path, f"is not as it was written: {error}") from error


def merged(baselines: Sequence[tuple[str, Sequence[RunData]]]) -> tuple[RunData, ...]:
    """The runs of several files as those of one; a recording is never there twice."""
    runs = [run for _, more in baselines for run in more]
    file_of = {id(run): file for file, more in baselines for run in more}
    for first, *others in copies_within(runs):
        for run in others:
            # Results of one file may be alike: nobody copied them.
            if file_of[id(run)] == file_of[id(first)] and run.source_id != first.source_id:
                continue
            raise UsageError(
                "same-recording",
                f"{file_of[id(run)]}: {run.name}",
                f"is the same recording as {file_of[id(first)]}: {first.name}",
                fix="leave one of the two files out",
            )
    _definitions(runs)
    _check_meanings(runs)
    return tuple(runs)


def _runs(document: Mapping[str, Any]) -> tuple[RunData, ...]:
    common = _facts(document["fingerprint"])
    definitions = {k: str(v) for k, v in _table(document["definitions"]).items()}
    zeros = {name: _number(value) for name, value in _table(document["zeros"]).items()}
    entries = [_table(entry) for entry in document["runs"]]
    columns = [(name, _table(entry)) for name, entry in _table(document["metrics"]).items()]
    for name, entry in columns:
        if len(entry["values"]) != len(entries):
            raise ValueError(f"{name} has {len(entry['values'])} values of {len(entries)} runs")
    runs = []
    for index, entry in enumerate(entries):
        scalars = Scalars()
        for name, column in columns:
            value = column["values"][index]
            if value is None and entry.get("is_sample") is True:
                continue
            spread = _spread(column["spreads"][index]) if "spreads" in column else None
            scalars.add(_metric(name, column), None if value is None else _number(value), spread)
        lacking = {k: str(v) for k, v in _table(entry.get("lacking", {})).items()}
        # A run that was never asked has no 0 for an answer.
        not_asked = {str(query) for query in entry.get("not_asked", [])}
        runs.append(
            RunData(
                name=str(entry["name"]),
                source_id=str(entry["source_id"]),
                scalars=scalars,
                zeros={
                    name: value
                    for name, value in zeros.items()
                    if name.partition(".")[0] not in {*lacking, *not_asked}
                },
                lacking=lacking,
                fingerprint=common | _facts(entry.get("fingerprint", {})),
                definitions={q: d for q, d in definitions.items() if q not in not_asked},
                warnings=tuple(Notice(str(s), str(m)) for s, m in entry.get("warnings", [])),
                checked=_texts(entry["checked"]) if "checked" in entry else None,
                is_sample=entry.get("is_sample") is True,
                session=_session(entry["session"]) if "session" in entry else None,
                findings=_titles(entry["findings"]) if "findings" in entry else None,
            )
        )
    return tuple(runs)


def _spread(value: Any) -> Spread | None:
    if value is None:
        return None
    sd, n = value
    if _number(sd) < 0 or _number(n) < 2:
        raise ValueError(f"found the spread {value!r}, wanted [s.d., n]")
    return Spread(_number(sd), int(n))


def _metric(name: str, entry: Mapping[str, Any]) -> Metric:
    return Metric(
        name=str(name),
        unit=str(entry["unit"]),
        better=better_of(str(entry["better"]), str(name)),
        meaning=str(entry["meaning"]),
        source=str(entry["source"]),
        not_across=str(entry.get("not_across", "")),
    )


def _titles(value: Any) -> dict[str, str]:
    return {str(rule): str(title) for rule, title in _table(value).items()}


def _session(value: Any) -> Session:
    entry = _table(value)
    unix_s = entry.get("unix_s")
    return Session(str(entry["name"]), None if unix_s is None else int(_number(unix_s)))


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__}, wanted an object")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"found {type(value).__name__}, wanted a list")
    return tuple(str(text) for text in value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_sane(value):
        raise ValueError(f"found {str(value)[:60]}, wanted a number")
    return float(value)


def _facts(value: Any) -> dict[str, Fact]:
    facts = _table(value)
    for name, fact in facts.items():
        if fact is not None and not isinstance(fact, str | int | float):
            raise ValueError(f"{name} is {fact!r}")
    return facts


def _metric_entry(metric: Metric, runs: Sequence[RunData]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "unit": metric.unit,
        "better": metric.better,
        "meaning": metric.meaning,
        "source": metric.source,
        "values": [_short(run.value(metric.name)) for run in runs],
    }
    spreads = [run.scalars.spreads.get(metric.name) for run in runs]
    if any(spreads):
        entry["spreads"] = [None if one is None else [one.sd, one.n] for one in spreads]
    return entry | ({"not_across": metric.not_across} if metric.not_across else {})


def _run_entry(
    run: RunData, common: Mapping[str, Fact], definitions: Mapping[str, str]
) -> dict[str, Any]:
    own = {name: fact for name, fact in run.fingerprint.items() if name not in common}
    entry: dict[str, Any] = {"name": run.name, "source_id": run.source_id}
    entry |= {"fingerprint": own} if own else {}
    entry |= {"lacking": dict(run.lacking)} if run.lacking else {}
    not_asked = [query for query in definitions if query not in run.definitions]
    entry |= {"not_asked": not_asked} if not_asked else {}
    entry |= {"is_sample": True} if run.is_sample else {}
    entry |= {"checked": list(run.checked)} if run.checked is not None else {}
    if run.session is not None:
        entry["session"] = {"name": run.session.name, "unix_s": run.session.unix_s}
    entry |= {"findings": dict(run.findings)} if run.findings is not None else {}
    told = [[notice.slug, notice.message] for notice in run.warnings]
    return entry | ({"warnings": told} if told else {})


def _common(fingerprints: Sequence[Mapping[str, Fact]]) -> dict[str, Fact]:
    """Facts that are the same in all runs."""
    first = fingerprints[0] if fingerprints else {}
    return {
        name: fact
        for name, fact in first.items()
        if all(name in other and other[name] == fact for other in fingerprints)
    }


def _definitions(runs: Sequence[RunData]) -> dict[str, str]:
    """One definition for each query; a file cannot hold numbers of two."""
    found: dict[str, str] = {}
    for run in runs:
        for query, definition in run.definitions.items():
            if found.setdefault(query, definition) != definition:
                raise UsageError(
                    "other-definition",
                    f"{run.name}: {query}",
                    "was measured with another version of its SQL than the runs before",
                    fix="save all of them again with one wbscope",
                )
    return found


def _check_meanings(runs: Sequence[RunData]) -> None:
    """A metric has one unit and one direction in a file, and so in all of its runs."""
    for metric in metrics_of(runs):
        if (why := other_meaning(metric, runs)) is not None:
            raise UsageError(
                "other-meaning",
                metric.name,
                why,
                fix="save in one file what one version of the benchmark measured",
            )


def _short(value: float | None) -> float | int | None:
    """Whole numbers without a fraction: half of the file."""
    return int(value) if value is not None and value.is_integer() else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _comma(lines: Any) -> list[str]:
    listed = list(lines)
    return [f"{line}," for line in listed[:-1]] + listed[-1:]


def _damaged(path: Path, message: str) -> InputError:
    return InputError("damaged-baseline", str(path), message, fix=_FIX)
