# SPDX-License-Identifier: Apache-2.0
"""hyperfine --export-json: each time of a command is a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wbscope.base.result import Notice
from wbscope.measure.bad import bad, failed, scaled, shown
from wbscope.measure.document import Node, load
from wbscope.measure.filerun import FileRun, FileRuns
from wbscope.measure.known_metrics import known, metric
from wbscope.measure.metric import Scalars
from wbscope.measure.tool_units import unit_of_text

__all__ = ["parse_hyperfine"]

_FIX = "record it with: hyperfine --export-json FILE.json COMMAND"
_SECONDS = unit_of_text("s")[1]
# One number a run: the list of the document, and the unit of the list in the metric's.
_LISTS = {"times": ("time", _SECONDS), "memory_usage_byte": ("max_rss", 1.0)}


def parse_hyperfine(text: str, subject: str) -> FileRuns:
    """Each command is a part; all of them together have the command in the metric's name.

    Raises: InputError, also when a run ended with a status.
    """
    document, _ = load(text.strip(), subject, _FIX)
    root = Node(document, "$", subject, _FIX)
    results = list(root["results"])
    if not results:
        raise bad(subject, "has no results", _FIX, at="$.results")
    commands = [_named(result) for result in results]
    for index, name in enumerate(commands):
        if name in commands[:index]:
            raise bad(subject, f"has the command {shown(name)} twice", _FIX, at=f"$[{index}]")
    parts: dict[str, tuple[FileRun, ...]] = {}
    whole: list[FileRun] = []
    several = len(results) > 1
    for number, (name, result) in enumerate(zip(commands, results, strict=True), 1):
        parts[name] = _runs(result, subject, {}, "")
        keys = {"command": name} if several else {}
        whole += _runs(result, subject, keys, f"{number}/" if several else "")
    notices = []
    if several:
        told = f"holds {len(results)} commands, which are metrics of their own; one alone is"
        notices.append(Notice("several-commands", f"{told} named behind #: {shown(commands[0])}"))
    return FileRuns(parts, tuple(whole), "commands", tuple(notices))


def _named(result: Node) -> str:
    """The command; with its parameters where these are not all in it."""
    name = result["command"].text()
    if not result.has("parameters"):
        return name
    told = result["parameters"]
    lacking = [f"{key}={told[key].text()}" for key in told.names() if told[key].text() not in name]
    return " ".join([name, *lacking])


def _runs(result: Node, subject: str, keys: Mapping[str, str], before: str) -> tuple[FileRun, ...]:
    if not result.has("times"):
        raise bad(subject, 'has no "times" of single runs', _FIX, at=result.path)
    lists = {name: _numbers(result[name]) for name in _LISTS if result.has(name)}
    count = len(lists["times"])
    if not count:
        raise bad(subject, 'has no times in "times"', _FIX, at=result.path)
    if result.has("exit_codes"):
        for number, code in enumerate(result["exit_codes"], 1):
            if code.is_null() or code.number():
                raise failed(subject, f"run {number} of {shown(_named(result))} did not end well")
    runs = []
    for index in range(count):
        scalars = Scalars()
        for key, values in lists.items():
            if len(values) != count:
                continue  # as of versions that measured memory once
            name, scale = _LISTS[key]
            made = metric("hyperfine", name, known("hyperfine", name), subject, keys)
            scalars.add(made, scaled(values[index], scale))
        runs.append(FileRun(f"{before}{index + 1}", scalars, is_sample=bool(keys)))
    return tuple(runs)


def _numbers(node: Node) -> Sequence[float]:
    return [one.number() for one in node]
