# SPDX-License-Identifier: Apache-2.0
"""One document a verb: each format says the same, and a file is what its name says."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from pyarrow import parquet
from support.cli import Wbscope, check_error
from support.verdicts import faults
from wbscope.base.result import Amount, Result
from wbscope.render.blocks import (
    Commands,
    Figure,
    Heading,
    Items,
    Table,
    Text,
    blocks_html,
    blocks_markdown,
    blocks_text,
    table_of,
)

_EXAMPLES = Path(__file__).parents[3] / "examples"
_RUN = str(_EXAMPLES / "four-equal-writers")
_GATE = _EXAMPLES / "gate"
_SIDES = [str(_GATE / "lower-limit.json"), "--against", str(_GATE / "before.json")]
_LAB = str(_EXAMPLES / "lab" / "smoothness" / "results.json")
# Words of each, and whether its document has a table.
_VERBS = {
    "check": (["check", _RUN], True),
    "explain": (["explain", _RUN], True),
    "stall": (["explain", _RUN, "--stall", "61024"], False),
    "report": (["report", _RUN], False),
    "query": (["query", "fairness", _RUN], True),
    "sql": (["sql", _RUN, "SELECT comm, tid FROM task ORDER BY tid LIMIT 3"], True),
    "compare": (["compare", *_SIDES], True),
    "gate": (["gate", "--policy", str(_GATE / "gate.toml"), *_SIDES], True),
    "lab": (["lab", "report", _LAB], True),
    "baseline": (["baseline", "show", str(_GATE / "before.json")], True),
}


def _words(text: str) -> list[str]:
    """Words and numbers, without what markup puts around them."""
    return re.findall(r"[A-Za-z0-9]+", unescape(re.sub(r"<[^>]*>", " ", text)))


@pytest.mark.parametrize("verb", _VERBS)
def test_each_format_by_the_end_of_a_name(wbscope: Wbscope, tmp_path: Path, verb: str) -> None:
    words, has_table = _VERBS[verb]
    said = {}
    for ending in (".txt", ".md", ".html", ".json"):
        ran = wbscope.run(*words, "-o", f"answer{ending}", cwd=tmp_path)
        assert f"wrote answer{ending}" in ran.stderr
        said[ending] = (tmp_path / f"answer{ending}").read_text()
    assert said[".html"].startswith("<!DOCTYPE html>")
    assert "<script" not in said[".html"] or verb in ("report", "compare")
    assert f"<caption>{words[0]}<" not in said[".html"] or verb == "sql"
    document = json.loads(said[".json"])
    assert faults(document) == []
    if verb not in ("query", "sql"):  # there a file of text is the table alone
        first = said[".txt"].split("\n\n")[0].splitlines()[0]
        for ending in (".md", ".html"):
            assert set(_words(first)) <= set(_words(said[ending])), (first, ending)
    if has_table:
        wbscope.run(*words, "-o", "answer.csv", cwd=tmp_path)
        wbscope.run(*words, "-o", "answer.parquet", cwd=tmp_path)
        with (tmp_path / "answer.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1
        table = parquet.read_table(tmp_path / "answer.parquet")
        assert (table.column_names, table.num_rows) == (rows[0], len(rows) - 1)
        assert table.num_rows >= 1
    else:
        ran = wbscope.run(*words, "--csv", cwd=tmp_path)
        assert ran.returncode == 2
        noun = {"report": "report", "stall": "explanation"}.get(verb)
        fix = f"-o {noun}.html"
        check_error(ran.stderr, "unknown-format", "--csv", ".html", fix=fix)
        assert ("--csv" in wbscope.run(words[0], "--help").stdout) == (verb != "report")


@pytest.mark.parametrize("verb", _VERBS)
def test_a_name_that_says_another_format(wbscope: Wbscope, tmp_path: Path, verb: str) -> None:
    """No work is done for it, and no file is there."""
    words, _ = _VERBS[verb]
    ran = wbscope.run(*words, "--markdown", "-o", "answer.html", cwd=tmp_path)
    assert ran.returncode == 2
    check_error(ran.stderr, "two-formats", "answer.html", fix="-o answer.html")
    ran = wbscope.run(*words, "-o", "answer.xlsx", cwd=tmp_path)
    assert ran.returncode == 2
    check_error(ran.stderr, "unknown-format", ".xlsx", fix="-o answer.html")
    assert list(tmp_path.iterdir()) == []


def test_the_fix_of_a_format_is_one_that_there_is(wbscope: Wbscope, tmp_path: Path) -> None:
    ran = wbscope.run("explain", _RUN, "--short", "-o", "a.html", cwd=tmp_path)
    check_error(ran.stderr, "unknown-format", "a.html", fix="-o a.txt")
    assert wbscope.run("explain", _RUN, "--short", "-o", "a.txt", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "slug", "found", "fix"),
    [
        ("--html a.json", "two-formats", "--html a.json", "-o a.json"),
        ("--csv -o a.md", "two-formats", "--csv -o a.md", "-o a.md"),
        ("--parquet a.xlsx", "unknown-format", "--parquet a.xlsx", "-o a.parquet"),
        ("--markdown -o a.pdf", "unknown-format", "-o a.pdf", "-o a.md"),
        ("-o a.pdf", "unknown-format", "-o a.pdf", "-o a.html"),
        ("-o a.cvs", "unknown-format", "-o a.cvs", "-o a.csv"),
        ("-o a.tsv", "unknown-format", "-o a.tsv", "-o a.csv"),
        ("-o a.htlm", "unknown-format", "-o a.htlm", "-o a.html"),
        ("-o /dev/stdout --force", "output-is-special", "/dev/stdout", "-o answer.txt"),
        ("--html a.html -o b.html", "two-outputs", "b.html", "--html b.html"),
    ],
)
def test_a_format_and_a_name_that_differ(
    wbscope: Wbscope, tmp_path: Path, words: str, slug: str, found: str, fix: str
) -> None:
    ran = wbscope.run("query", "fairness", _RUN, *words.split(), cwd=tmp_path)
    assert ran.returncode == 2
    check_error(ran.stderr, slug, found, fix=fix)
    assert wbscope.run("query", "fairness", _RUN, *fix.split(), cwd=tmp_path).returncode == 0


def test_a_dataset_is_no_stream(wbscope: Wbscope, tmp_path: Path) -> None:
    ran = wbscope.run("fleet", "ingest", _RUN, "-o", "-", cwd=tmp_path)
    check_error(ran.stderr, "output-is-stdout", "a folder", fix="-o dataset")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_an_open_file_stays(wbscope: Wbscope, tmp_path: Path) -> None:
    """As /dev/stdout is one, which root can replace."""
    (tmp_path / "out").symlink_to("/proc/self/fd/1")
    ran = wbscope.run("check", _RUN, "-o", "out", "--force", cwd=tmp_path)
    check_error(ran.stderr, "output-is-special", "out", "regular file", fix="-o check.txt")
    assert (tmp_path / "out").is_symlink()


_TASK = "<b>|`evil`\x1b[31m"
_BLOCKS = (
    Heading("A device is slow", 1, "RUN"),
    Text("events were lost", is_doubt=True),
    Text("and more", is_doubt=True),
    Text("dd waited 3 s", "warning  "),
    Commands(("wbscope query stalls RUN", "wbscope report RUN"), "see: ", indent=9),
    Heading("Tasks"),
    Table(Result("t", ("comm", "rate"), {}, [(_TASK, Amount("19.3 MiB/s"))]), apart=False),
    Items(("comm: a name",)),
    Figure("<svg></svg>", "a dot is a run"),
)


def test_blocks_as_text() -> None:
    assert blocks_text(_BLOCKS, 40).splitlines() == [
        "RUN: A device is slow",
        "events were lost",
        "and more",
        "warning  dd waited 3 s",
        "         see: wbscope query stalls RUN",
        "              wbscope report RUN",
        "",
        "Tasks",
        "=====",
        "comm                      rate",
        "------------------  ----------",
        "<b>|`evil`\\x1b[31m  19.3 MiB/s",
        "* comm: a name",
    ]
    assert blocks_text(_BLOCKS[:1], 20).splitlines() == ["RUN:", "A device is slow"]


_EVIL = "a\x1b[31m<i>|"


@pytest.mark.parametrize("write", [blocks_text, blocks_markdown, lambda b: blocks_html([*b])])
def test_no_block_brings_what_steers_a_terminal_or_a_page(write: Callable[..., str]) -> None:
    table = Result("t", (_EVIL, "metric", _EVIL), {}, [(_EVIL, _EVIL, _EVIL)], keys=(_EVIL,))
    named = Result("t", ("", "metric", _EVIL, "below"), {}, [("", _EVIL, _EVIL, _EVIL)])
    said = write(
        [
            *(Heading(_EVIL, level, of) for level in (1, 2, 3) for of in ("", _EVIL)),
            Heading(_EVIL, 1, is_line=True),
            Text(_EVIL, lead=f"{_EVIL} ", command=_EVIL),
            Text(_EVIL, is_doubt=True),
            Items((_EVIL,)),
            Commands((_EVIL,), lead="see: "),
            Table(table, _EVIL),
            Table(table, _EVIL, layout="stacked"),
            Table(named, _EVIL, layout="lean", below="below"),
        ]
    )
    assert "\x1b" not in said
    assert said.count("\\x1b") >= 16
    if said.startswith("<!DOCTYPE"):
        assert "<i>" not in said


def test_blocks_as_markdown() -> None:
    assert blocks_markdown(_BLOCKS).split("\n\n") == [
        "# A device is slow",
        "`RUN`",
        "> events were lost\n>\n> and more",
        "**warning** dd waited 3 s",
        "see:",
        "```sh\nwbscope query stalls RUN\nwbscope report RUN\n```",
        "## Tasks",
        "| comm | rate |\n| --- | ---: |\n| \\<b\\>\\|\\`evil\\`\\\\x1b\\[31m | 19.3 MiB/s |",
        "- comm: a name\n",
    ]


def test_blocks_as_a_page() -> None:
    page = blocks_html(_BLOCKS)
    assert page == blocks_html(_BLOCKS)
    assert "<title>RUN: A device is slow</title>" in page
    assert "&lt;b&gt;|`evil`\\x1b[31m</td>" in page
    assert "<b>|" not in page
    assert '<article class="finding warning">' in page
    assert '<td class="n">19.3 MiB/s</td>' in page
    assert "<figcaption>a dot is a run</figcaption><svg></svg>" in page


def test_rows_of_a_document_as_a_table() -> None:
    rows = [{"metric": "m", "shift": {"low": 1.0}, "values": [1]}, {"metric": "n", "is_new": True}]
    assert table_of("compare", rows).records() == [
        {"metric": "m", "shift_low": 1.0, "is_new": None},
        {"metric": "n", "shift_low": None, "is_new": 1},
    ]
