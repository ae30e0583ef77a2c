#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make pages of the manual from the help: wbscope.1, and wbscope-VERB.1 for each verb.

usage: make_man.py -o FOLDER [--date YYYY-MM-DD]    by a Python that has typer and rich
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # Of these sources, unless a build names others.
    sys.path.append(str(ROOT / "analyzers"))
    os.environ["COLUMNS"] = "80"

EXIT_CODES = {
    "0": "Done; of gate, passed.",
    "1": "The gate says no, and nothing else ever.",
    "2": "The command line asks for what cannot be done.",
    "3": "A trace, run folder or database is missing or damaged.",
    "4": "There is not enough evidence to answer.",
    "5": "This machine: a program, a permission or room is missing.",
    "70": "A bug in wbscope.",
    "130": "Interrupted.",
}
VARIABLES = {
    "WBSCOPE_CACHE_DIR": "Where databases made of traces are kept; else ~/.cache.",
    "WBSCOPE_PAGER, PAGER": "For text that is longer than the screen; cat or empty: none.",
    "COLUMNS": "The width of tables.",
    "WBSCOPE_TIMEOUT, WBSCOPE_MEMORY_LIMIT, WBSCOPE_TEMP_LIMIT": "What one question may take.",
    "WBSCOPE_DEBUG": "Print where an error of wbscope itself was.",
}
# In roff these are other characters, or end a word.
_CHARACTERS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--date", default=datetime.now(UTC).strftime("%Y-%m-%d"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, text in pages(arguments.date).items():
        (arguments.output / f"{name}.1").write_text(text, encoding="utf-8")
    return 0


def pages(date: str) -> dict[str, str]:
    """Each page by its name without the section."""
    from typer.main import get_command
    from wbscope.base.version import __version__
    from wbscope.cli.main import program

    whole: Any = get_command(program())
    verbs: Mapping[str, Any] = whole.commands
    found = {"wbscope": _page("wbscope", whole, date, __version__, _ends(verbs))}
    for name, command in verbs.items():
        more = [line for one in getattr(command, "commands", {}).items()
                for line in _inner(f"wbscope {name} {one[0]}", one[1])]  # fmt: skip
        more += section("SEE ALSO", [".BR wbscope (1)"])
        found[f"wbscope-{name}"] = _page(f"wbscope {name}", command, date, __version__, more)
    return found


def section(title: str, lines: list[str]) -> list[str]:
    """A heading and what is below it; nothing for nothing."""
    return [f".SH {title}", *lines] if lines else []


def escaped(text: str) -> str:
    """As roff prints it character by character; no line is a request."""
    plain = "".join(_CHARACTERS.get(one, one) for one in text)
    return f"\\&{plain}" if plain.startswith(".") else plain


def verbatim(text: str) -> list[str]:
    """Line by line."""
    lines = [escaped(line) if line.strip() else ".sp" for line in text.splitlines()]
    return [".nf", *lines, ".fi"]


def _page(name: str, command: Any, date: str, version: str, more: list[str]) -> str:
    title = name.replace(" ", "-")
    summary, text, examples = _parts(command.help)
    lines = [
        f'.TH {title.upper()} 1 "{date}" "wbscope {version}" "User Commands"',
        *section("NAME", [f"{escaped(title)} \\- {escaped(summary.rstrip('.'))}"]),
        *section("SYNOPSIS", _usage(name, command)),
        *section("DESCRIPTION", text or [escaped(summary)]),
        *section("OPTIONS", _options(name, command)),
        *section("EXAMPLES", examples),
        *more,
    ]
    return "\n".join(lines) + "\n"


def _inner(name: str, command: Any) -> Iterator[str]:
    """A verb of a group, on the page of the group."""
    summary, text, examples = _parts(command.help)
    yield from section(escaped(name.upper()), [escaped(summary), *_break(text), *text])
    yield from (".PP", *_usage(name, command), *_options(name, command))
    if examples:
        yield from (".PP", "Examples:", ".PP", *examples)


def _parts(text: str) -> tuple[str, list[str], list[str]]:
    """First line, paragraphs and examples of a docstring; those stand line by line behind \\b."""
    summary, _, rest = text.partition("\n")
    body: list[str] = []
    examples: list[str] = []
    for part in re.split(r"\n\s*\n", rest.strip()):
        if part.startswith("\b\nExamples:"):
            examples += verbatim(re.sub(r"(?m)^  ", "", part.partition("Examples:\n")[2]))
        elif part.startswith("\b"):
            body += [*_break(body), *verbatim(part.lstrip("\b\n"))]
        elif part:
            body += [*_break(body), *(escaped(line.strip()) for line in part.splitlines())]
    return summary, body, examples


def _break(body: list[str]) -> list[str]:
    """Between paragraphs."""
    return [".PP"] if body else []


def _usage(name: str, command: Any) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    words = " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(context))
    return [f".B {escaped(name)}", escaped(words.replace("}...", "..."))]


def _options(name: str, command: Any) -> list[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    lines: list[str] = []
    for one in [*command.params, command.get_help_option(context)]:
        record = one.get_help_record(context)
        if record is None:
            continue
        is_argument = one.param_type_name == "argument"  # whose type says nothing new
        named = re.sub(r" <[\w\[\]|]+>$", "", record[0]) if is_argument else record[0]
        lines += [".TP", f".B {escaped(named)}", *(escaped(record[1]).splitlines() or ["\\&"])]
    return lines


def _ends(verbs: Mapping[str, Any]) -> list[str]:
    """What only the first page has: the verbs, exit codes, variables."""
    listed = []
    for name, command in verbs.items():
        told = escaped(_parts(command.help)[0])
        listed += [".TP", f".BR wbscope\\-{escaped(name)} (1)", told]
    codes = [line for code, told in EXIT_CODES.items() for line in (".TP", f".B {code}", told)]
    variables = [
        line
        for name, told in VARIABLES.items()
        for line in (".TP", f".B {escaped(name)}", escaped(told))
    ]
    also = [".BR trace\\-cmd (1),", ".BR perf (1),", ".BR sqlite3 (1)"]
    return [
        *section("COMMANDS", listed),
        *section("EXIT STATUS", codes),
        *section("ENVIRONMENT", variables),
        *section("SEE ALSO", also),
    ]


if __name__ == "__main__":
    sys.exit(main())
