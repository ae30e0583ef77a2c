#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that each folder keeps to its part: who may name, read and convert what.

usage: check_layout.py     prints "path:line: what is wrong; how to put it right"
                           for each finding and exits 1 when there is any

Allowed on purpose: `alias.*` inside a CTE, where the one before it names its columns.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "analyzers"), str(ROOT / "tools")]

from gen_docs import words_by_hand  # noqa: E402
from wbscope.library.catalog import read_catalog, sqlite_adapters  # noqa: E402
from wbscope.library.library import load_library  # noqa: E402
from wbscope.library.sqlfile import SqlFile, read_sql_file  # noqa: E402
from wbscope.library.statements import Select, read_macros  # noqa: E402

# Where numbers that convert units may stand.
UNIT_HOMES = {
    "sql/views/params.sql",
    "analyzers/wbscope/base/units.py",
}
UNIT_NUMBERS = {1024, 4096, 1_000_000, 1_000_000_000}

# The packages whose texts Python's users read, too: they name arguments, and cli/output.py makes
# options of them.
LIBRARY = (
    "base", "stats", "plot", "library", "run", "ingest", "perfetto", "timeline", "measure",
    "compare", "record", "doctor", "source", "lab", "viewer", "explain", "fleet",
)  # fmt: skip
# An option that stands behind one of these in a text is a part of a command.
PROGRAM = re.compile(
    r"\b(?:wbscope|fio|mount|perf|perfetto|time|trace-cmd|trace_processor_shell)\b"
)
OPTION = re.compile(r"(?<![\w-])(?:--[a-z][a-z-]*|-o)(?![\w-])")
TOLD = re.compile(r"(?:Error|Notice|Check|Refusal|Phrase)$")
PRINTERS = {"print", "sys.stdout.write", "sys.stderr.write"}
MAX_LINES = {".py": 500, ".cc": 500, ".h": 500}
MAX_SQL_COLUMNS = 80
MACROS = "sql/macros.sql"
SUBJECTS = ("sql/views/", "sql/warnings/", "sql/timelines/")
SQL_FOLDERS = (*SUBJECTS, "sql/queries/", "sql/findings/")
MAX_SUBJECT_LINES = 800  # of a file of sql/views
MAX_SELECT_LINES = 150  # of an object
MAX_DEPTH = 13  # views on views, steps counted; wanted: 10
# Numbers of the kernel itself, by file.
KERNEL_NUMBERS = {
    # Per cent and sizes, and 500 and 1000 as in the catalog: ingest makes an index of them.
    MACROS: {100, 500, 1000, 1024, 1048576},
    "sql/views/call.sql": {1000},  # HZ, in ms: balance_dirty_pages() starts anew behind -HZ
    "sql/views/reclaim.sql": {32},  # SWAP_CLUSTER_MAX
    "sql/views/task.sql": {100},  # MAX_RT_PRIO
    "sql/views/throttle.sql": {1000},
}
# Where thresholds stand; elsewhere SQL compares with a column of it.
RULES = "wb_rule"
CODE = {".py", ".cc", ".h", ".sql", ".toml", ".mjs", ".js", ".sh", ".css", ".html", ".j2"}
# As others wrote them, unchanged: a test knows their checksums.
VENDORED = ("analyzers/wbscope/render/assets/uPlot.",)
CODE_NAMES = {"CMakeLists.txt", "Makefile", "demo", "install-debs"}

KERNEL_EVENT = re.compile(
    r"\b(balance_dirty_pages|global_dirty_state|bdi_dirty_ratelimit|wbc_writepage|"
    r"folio_wait_writeback|writeback_\w+|mm_vmscan\w*|mm_shrink_\w+)"
)
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:work|root|tmp)/")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E)\b")  # brackets: this line is none
NOT_NEUTRAL = re.compile(
    r"\b(?:CREATE\s+(?:OR\s+REPLACE\s+)?PERFETTO|INCLUDE|EXTRACT_ARG|PRAGMA|ATTACH|"
    r"json_(?!each\b|group_object\b)\w+)\b"
    r"|\bSELECT\s+(?:DISTINCT\s+)?\*",
    re.IGNORECASE,
)
COMMENT_OR_STRING = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
CTE_BODY = re.compile(  # no WINDOW
    r"\b(\w+)(?:\s*\([^()]*\))?\s+AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\(\s*(?:SELECT|VALUES|WITH)\b"
)
ARGUMENT = re.compile(r"\bAS\s+(arg_\w+)")
SQL_NUMBER = re.compile(r"(?<![\w.])(\d+)(?:\.0+)?(?![\w.])")
# A comparison with a fraction or with a number of two digits, a division by one, a number of ms and
# the like, a number of whole ms in ns. Kernel versions and powers of two (1 << 32) are none.
THRESHOLD = re.compile(
    r"[<>]=?\s*\d*\.\d*[1-9]\d*\b"
    r"|(?<![<>])(?<!version )(?<!version, 6002\) )[<>]=?\s*-?\d{2,}\b(?!\s*(?:<<|\*))|/\s*\d{2,}\b"
    r"|(?<![\w.])(?:[2-9]|[1-9]\d+) \* \w+\.(?:second|ms|us)_ns\b"
    r"|(?<![\w.-])[1-9]\d{0,8}000000\b"
)
OLD_TAGS = {
    "needs": "take it out: the statement says what it reads",
    "better": "write @metric COLUMN lower: why",
}
TAG = re.compile(r"--\s+@(\w+)\s*(.*)")
OBJECT = re.compile(r"^--\s+@(?:view|query|timeline|finding|warning)\s+(\w+)\s*$", re.MULTILINE)

Finding = tuple[int, str, str]  # line, what, fix


def files() -> list[str]:
    """What git tracks or would track, without what was deleted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


@cache
def raw_names() -> set[str]:
    """The adapters that are made of the catalog."""
    return {file.name for file in sqlite_adapters(read_catalog(ROOT / "sql/catalog/events.toml"))}


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def matches(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for match in pattern.finditer(text):
        yield line_of(text, match.start()), " ".join(match[0].split())


# Rules for every source file.


def check_source(path: str, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    first = lines[1] if len(lines) > 1 and lines[0].startswith("#!") else (lines or [""])[0]
    if "SPDX-License-Identifier: " not in first:
        yield 1, "first line has no SPDX tag", "add SPDX-License-Identifier: Apache-2.0"
    most = MAX_LINES.get(Path(path).suffix)
    if most is not None and len(lines) > most:
        yield len(lines), f"{len(lines)} lines, wanted at most {most}", "split it by subject"
    for number, content in enumerate(lines, 1):
        if path.endswith(".sql") and len(content) > MAX_SQL_COLUMNS:
            yield number, f"{len(content)} columns, wanted {MAX_SQL_COLUMNS}", "wrap the line"
    for line, words in matches(text, UNFINISHED):
        yield line, f"{words} in a source file", "do it, or make it an issue"
    if path.startswith("tests/"):
        return
    for line, words in matches(text, MACHINE_PATH):
        yield line, f"path of one machine: {words}", "take it from an argument or the environment"


def check_cpp(path: str, text: str) -> Iterator[Finding]:
    for line, words in matches(text, KERNEL_EVENT):
        yield line, f"ingest names the event {words}", "move its meaning to sql/"
    if not path.startswith("ingest/src/format/"):
        for line, _ in matches(text, re.compile(r"#include\s*[<\"]traceevent/")):
            yield line, "libtraceevent outside ingest/src/format", "go through event_catalog.h"


def check_python(path: str, text: str) -> Iterator[Finding]:
    may_print = path.startswith(("analyzers/wbscope/cli/", "analyzers/wbscope/render/"))
    may_convert = path in UNIT_HOMES
    tree = ast.parse(text, path)
    yield from unread(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not may_print and ast.unparse(node.func) in PRINTERS:
            name = ast.unparse(node.func)
            yield node.lineno, f"{name}() outside cli/ and render/", "return what to print"
        elif not isinstance(node, ast.Constant):
            continue
        elif str(node.value)[:1] == "_" and node.value in views():
            what = f"names {node.value}, which is private to a file of sql/"
            yield node.lineno, what, "say what it is for in its header"
        elif not may_convert and node.value in UNIT_NUMBERS:
            yield node.lineno, f"number {node.value} converts a unit", "use base/units.py"


def unread(tree: ast.Module) -> Iterator[Finding]:
    """Private names of a module that nothing in it reads: it is the only one that may."""
    nodes = list(ast.walk(tree))
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names = {statement.name}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        else:
            continue
        for name in sorted(names - read):
            if re.match(r"_(?!_)", name):
                yield statement.lineno, f"nothing reads {name}", "take it out"


@cache
def options() -> set[str]:
    """The options of all verbs."""
    from typer.main import get_command
    from wbscope.cli.main import program

    return set(options_of(get_command(program())))


def options_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
        yield from parameter.secondary_opts
    for below in getattr(command, "commands", {}).values():
        yield from options_of(below)


def check_texts(path: str, text: str) -> Iterator[Finding]:
    """A text of the library names an option only within a whole command."""
    tree = ast.parse(text, path)
    skipped = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    told = {
        id(word)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and TOLD.search(ast.unparse(node.func))
        for word in [*node.args, *(keyword.value for keyword in node.keywords)]
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = (p.value if isinstance(p, ast.Constant) else "..." for p in node.values)
            words = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value
        else:
            continue
        # An option alone is one of a command that is run, unless somebody is told of it.
        if id(node) in skipped or (OPTION.fullmatch(words) and id(node) not in told):
            continue
        for option in loose_options(words):
            yield node.lineno, f"text names the option {option}", "name the Argument in a Phrase"


def loose_options(text: str) -> list[str]:
    """The options of wbscope in a text that are no part of a command."""
    return [
        match[0]
        for match in OPTION.finditer(text)
        # Behind a # the command has ended.
        if not PROGRAM.search(text[: match.start()].rpartition("#")[2]) and match[0] in options()
    ]


# Rules for the folders of sql/ with objects.


def objects_of(text: str) -> dict[str, str]:
    """Each object of a file by name: its header and statement where they stand, the rest blank."""
    heads = [*OBJECT.finditer(text)]
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return {
        head[1]: "\n" * text.count("\n", 0, head.start()) + text[head.start() : end]
        for head, end in zip(heads, ends, strict=True)
    }


@cache
def views() -> set[str]:
    """All objects of sql/, steps too."""
    files = (ROOT / "sql").rglob("*.sql")
    return {name for file in files for name in objects_of(file.read_text(encoding="utf-8"))}


def tags_of(text: str) -> dict[str, list[tuple[int, str]]]:
    """The header: tag -> (line, text) of each use; continuation lines are joined."""
    tags: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("--"):
            break
        if match := TAG.match(line):
            current = tags.setdefault(match[1], [])
            current.append((number, match[2].strip()))
        elif current and line.startswith("--  "):
            current[-1] = (current[-1][0], f"{current[-1][1]} {line[2:].strip()}".strip())
    return tags


def check_sql(path: str, text: str) -> Iterator[Finding]:
    objects = objects_of(text)
    names = list(objects)
    if (lines := text.count("\n")) > MAX_SUBJECT_LINES:
        yield lines, f"{lines} lines, wanted at most {MAX_SUBJECT_LINES}", "split it by subject"
    if path.startswith(SUBJECTS):
        yield from check_subject(text, names)
    elif names[:1] != [Path(path).stem] or not all(name.startswith("_") for name in names[1:]):
        what = f"defines {', '.join(names) or 'nothing'}"
        yield 1, what, f"one file defines one object, {Path(path).stem}, and its private steps"
    yield from check_privates(text, names)
    for name, part in objects.items():
        yield from check_object(path, name, part, names)


def check_subject(text: str, names: list[str]) -> Iterator[Finding]:
    """A file of views says what it is about, and has its public views first."""
    lines = text.splitlines()
    if not any(line.startswith("-- ") and "SPDX" not in line for line in lines[:2]):
        yield 1, "file does not say what it is about", "write a sentence below the first line"
    if names != sorted(names, key=lambda name: name.startswith("_")):
        yield 1, "a public view stands below a private one", "put the public views first"


def check_privates(text: str, names: list[str]) -> Iterator[Finding]:
    read = {need for part in objects_of(text).values() for need in Select(part).reads}
    for name in names:
        if name.startswith("_") and name not in read:
            yield 1, f"nothing in this file reads {name}", "take it out, or make it public"


def check_thresholds(path: str, text: str) -> Iterator[Finding]:
    code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for line, words in matches(code, THRESHOLD):
        if not set(map(int, re.findall(r"\d+$", words))) & KERNEL_NUMBERS.get(path, set()):
            yield line, f"{words!r} is a bare threshold", f"make it a column of {RULES}"


def check_object(path: str, name: str, text: str, siblings: list[str]) -> Iterator[Finding]:
    # Comments and strings blanked, so that offsets stay.
    code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for line, words in matches(code, NOT_NEUTRAL):
        yield line, f"{words!r} is not for every engine", "name columns; use plain SQL"
    if path not in UNIT_HOMES:
        for match in SQL_NUMBER.finditer(code):
            if int(match[1]) in UNIT_NUMBERS:
                line = line_of(code, match.start())
                yield line, f"number {match[0]} converts a unit", "use a column of wb_units"
    if name not in {RULES, "wb_params", "wb_units"}:
        yield from check_thresholds(path, code)
    select = Select(text)
    yield from check_reads(select, code, siblings)
    tags = tags_of(text)
    first = line_of(text, len(text) - len(text.lstrip()))
    length = sum(not line.startswith("--") for line in text.strip().splitlines())
    if length > MAX_SELECT_LINES:
        yield first, f"{name} has {length} lines", f"make steps of {MAX_SELECT_LINES} at most"
    folder = "sql/views" if name.startswith("_") else path.rpartition("/")[0]  # it is a view
    if folder == "sql/timelines":  # whose other columns are always the same
        yield from check_arguments(first, tags, code)
    elif folder != "sql/warnings":  # whose columns stand in their sentences
        yield from check_columns(first, tags, select)
    if folder == "sql/queries":
        if not re.search(r"\bORDER\s+BY\b", select.top):
            yield line_of(code, len(code.rstrip())), "query has no ORDER BY", "order its rows"
        if not any(words for _, words in tags.get("read", [])):
            yield first, "query has no @read", "say in the header how to read its rows"
    for tag, instead in OLD_TAGS.items():
        if tag in tags:
            yield tags[tag][0][0], f"@{tag} is an old tag", instead


def check_arguments(
    first: int, tags: dict[str, list[tuple[int, str]]], code: str
) -> Iterator[Finding]:
    told = {words.split()[0] for _, words in tags.get("column", [])}
    for name in sorted(told ^ set(ARGUMENT.findall(code))):
        where = "a @column" if name in told else "a column"
        yield first, f"{name} is {where} only", "say with @column what each argument is"


def check_reads(select: Select, code: str, siblings: list[str]) -> Iterator[Finding]:
    for match in CTE_BODY.finditer(code):
        if f"raw_{match[1]}" in raw_names():
            line = line_of(code, match.start(1))
            yield line, f"{match[1]} is a table, too", "name it otherwise: it is saved beside views"
    for source in select.reads:
        match = re.search(rf"\b(?:FROM|JOIN)\s+({source})\b", code)
        line = line_of(code, match.start(1)) if match else 1
        if source.startswith("raw_"):
            if source not in raw_names():
                yield line, f"reads {source}, which no adapter is", "name one of the catalog"
        elif source.startswith("_") and source not in siblings:
            yield line, f"reads {source}, which is private", "read a public view of that file"
        elif source not in views() and source not in siblings:
            yield line, f"reads {source}, which is no view", "read raw_*, wb_* or reclaim_* views"


def depths(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many views stand on each other below each, itself counted."""

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(need) for need in needs[name] if need in needs), default=0)

    return {name: depth(name) for name in needs}


def check_whole(paths: Sequence[str], library: Mapping[str, SqlFile]) -> Iterator[str]:
    for name, depth in depths({name: file.needs for name, file in library.items()}).items():
        if depth - 1 > MAX_DEPTH:  # without the adapters, which are not written as views
            yield f"{name} stands on {depth - 1} views in a row, wanted at most {MAX_DEPTH}"

    def lines(folder: str, suffix: str) -> list[int]:
        chosen = [path for path in paths if path.startswith(folder) and path.endswith(suffix)]
        return [(ROOT / path).read_bytes().count(b"\n") for path in chosen]

    views = [file for file in library.values() if file.kind == "view"]
    python = lines("analyzers/", ".py")
    # The limits fall; the table of sizes in CONTRIBUTING.md has what is wanted.
    for most, what, count in (
        (40, "documented views", sum(file.is_public() for file in views)),
        (9, "steps that several files share", sum(file.shared for file in views)),
        (28_299, "lines of SQL", sum(lines("sql/", ".sql"))),
        (53_772, "lines of Python", sum(python)),
        (210, "files of Python", len(python)),
        (85_319, "lines of tests", sum(lines("tests/", ".py"))),
        (28_000, "words of docs by hand", words_by_hand(paths)),
        (5_800, "words of reference by hand", words_by_hand(paths, reference=True)),
        (1_727, "tracked files", len(paths)),
    ):
        if count > most:
            yield f"{count} {what}, wanted at most {most}; take others out"


def check_columns(
    first: int, tags: dict[str, list[tuple[int, str]]], select: Select
) -> Iterator[Finding]:
    """Each column is described, or passed through from a view that describes it."""
    documented = [(line, words.split(maxsplit=2)) for line, words in tags.get("column", [])]
    told = [words[0] for _, words in documented if words]
    found = select.columns
    for line, words in documented:
        if len(words) < 3:
            yield line, f"@column {' '.join(words)} says nothing", "write NAME TYPE and what it is"
    for name in found:
        if name not in told and not select.passed(name):
            yield first, f"column {name} has no @column", f"describe {name} in the header"
    for name in told:
        if name not in found:
            yield first, f"@column {name} is no column of the result", f"take {name} out"
    inherited = [name for name in found if name in told]
    if set(told) <= set(found) and told != inherited:
        yield first, "@column lines are in another order than the columns", "put them in that order"


def check_repeats(files: Iterable[SqlFile], library: dict[str, SqlFile]) -> Iterator[Finding]:
    """A @column that says what the column has from where it is passed through."""
    for file in files:
        select = Select(file.select)
        for column in file.columns:
            passed = {one for n in select.passed(column.name) for one in library[n].columns}
            if {one for one in passed if one.name == column.name} == {column}:
                yield 1, f"@column {column.name} of {file.name} repeats its view", "take it out"


def rules(path: str) -> list[Callable[[str, str], Iterator[Finding]]]:
    """The rules that a file has to keep."""
    name = Path(path)
    if path.startswith(VENDORED) or (name.suffix not in CODE and name.name not in CODE_NAMES):
        return []
    chosen: list[Callable[[str, str], Iterator[Finding]]] = [check_source]
    if path.startswith("ingest/src/"):
        chosen.append(check_cpp)
    if path.startswith("analyzers/") and name.suffix == ".py":
        chosen.append(check_python)
        if path.split("/")[2] in LIBRARY:
            chosen.append(check_texts)
    if path.startswith(SQL_FOLDERS) and name.suffix == ".sql":
        chosen.append(check_sql)
    if path == MACROS:
        chosen.append(check_thresholds)
    return chosen


def found() -> Iterator[str]:
    paths = files()
    for path in paths:
        text = (ROOT / path).read_text(encoding="utf-8") if rules(path) else ""
        for rule in rules(path):
            yield from (f"{path}:{line}: {what}; {fix}" for line, what, fix in rule(path, text))
    library = load_library(ROOT / "sql").files
    statements = [path for path in paths if path.startswith(SQL_FOLDERS) and path.endswith(".sql")]
    texts = "".join((ROOT / path).read_text(encoding="utf-8") for path in statements)
    for macro in read_macros((ROOT / MACROS).read_text(encoding="utf-8")):
        if f"{macro.name}!(" not in texts:
            yield f"{MACROS}:1: nothing uses {macro.name}!; take it out"
    for path in statements:
        for line, what, fix in check_repeats(read_sql_file(ROOT / path), library):
            yield f"{path}:{line}: {what}; {fix}"
    yield from check_whole(paths, library)


def main() -> int:
    told = list(found())
    print(*told, sep="\n", end="\n" if told else "")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
