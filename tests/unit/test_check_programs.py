# SPDX-License-Identifier: Apache-2.0
"""Every program that something starts is found, and comes from a package of the Makefile."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest
from support.runs import REPOSITORY

_LISTS = {"DEBS": ["cmake"], "TEST_DEBS": ["zstd"]}


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))


@pytest.fixture
def tool() -> ModuleType:
    return importlib.import_module("check_programs")


def _table(**more: Any) -> dict[str, Any]:
    return {
        "packages": {}, "base": {}, "own": {}, "elsewhere": {}, "told": [], "skip": {"paths": []},
        "scope": [{"paths": ["tools/"], "lists": ["DEBS"]}, {"paths": [""], "lists": [*_LISTS]}],
        **more,
    }  # fmt: skip


def _shell(text: str) -> set[str]:
    found: set[str] = importlib.import_module("programs_shell").programs_in_shell(text)
    return found


def _python(text: str) -> tuple[set[str], set[str]]:
    found: tuple[set[str], set[str]] = importlib.import_module(
        "programs_python"
    ).programs_in_python(text)
    return found


def test_an_unknown_program_is_told(tool: ModuleType) -> None:
    files = {"tests/a.py": 'import subprocess\nsubprocess.run(["newtool", "-x"])\n'}
    (said,) = tool.check(files, _table(), _LISTS)
    assert said.startswith("tests/a.py: starts newtool, which tools/programs.toml does not have")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/b.py", "import shutil\nshutil.which('newtool')\n"),
        ("tools/c", "#!/bin/sh\nset -e\nmkdir x && newtool --all\n"),
        ("x.sh", "newtool\n"),
        ("Makefile", "a:\n\t@$(X) newtool\n"),
    ],
)
def test_wherever_it_is(tool: ModuleType, path: str, text: str) -> None:
    table = _table(base={"mkdir": "coreutils"})
    said = " ".join(tool.check({path: text}, table, _LISTS))
    assert ("starts newtool" in said) == (path != "Makefile")  # there it is an argument


def test_a_package_that_is_in_no_list(tool: ModuleType) -> None:
    text = 'import subprocess\nsubprocess.run(["zstd"])\n'
    table = _table(packages={"zstd": "zstd"})
    assert list(tool.check({"tests/a.py": text}, table, _LISTS)) == []
    (said,) = tool.check({"tests/a.py": text}, table, {"DEBS": [], "TEST_DEBS": []})
    assert "which is not in DEBS or TEST_DEBS" in said
    (said,) = tool.check({"tools/a.py": text}, table, _LISTS)  # started before that list
    assert "which is not in DEBS;" in said


def test_what_the_text_does_not_tell(tool: ModuleType) -> None:
    files = {"tests/a.py": "import os, subprocess\nsubprocess.run([os.environ['X']])\n"}
    (said,) = tool.check(files, _table(), _LISTS)
    assert "starts os.environ['X'], and the text does not tell" in said
    told = {"file": "tests/a.py", "expression": "os.environ['X']", "programs": ["zstd"]}
    table = _table(told=[told], packages={"zstd": "zstd"})
    assert list(tool.check(files, table, _LISTS)) == []


def test_lines_of_the_table_that_nothing_needs(tool: ModuleType) -> None:
    told = {"file": "tests/a.py", "expression": "x", "programs": []}
    table = _table(packages={"zstd": "zstd"}, base={"ls": "coreutils"}, told=[told])
    said = list(tool.check({}, table, _LISTS))
    assert len(said) == 3
    assert all("take it out" in line for line in said)


def test_lists_of_the_makefile(tool: ModuleType) -> None:
    text = "DEBS := a b \\\n   c\nTEST_DEBS := d # why\nBROWSER   := e\nOTHER := f\n"
    assert tool.package_lists(text) == {
        "DEBS": ["a", "b", "c"],
        "TEST_DEBS": ["d"],
        "BROWSER": ["e"],
    }


def test_this_repository(capsys: pytest.CaptureFixture[str], tool: ModuleType) -> None:
    """Here, too: make test runs it; a clone without git cannot list its files."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("this is no clone")
    capsys.readouterr()
    assert tool.package_lists((REPOSITORY / "Makefile").read_text())["TEST_DEBS"]
    found = tool.source_files()
    assert ".ci/run" in found
    assert "tools/demo" in found


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("a; b | c && d || e & f", "a b c d e f"),
        ("# a\nb # c\n", "b"),
        ("X=1 Y=$(a b) c", "a c"),
        ("if a; then b; elif ! c; then d; else e; fi", "a b c d e"),
        ("for i in a b; do c $i; done; while d; do e; done", "c d e"),
        ('case $(a) in\n b | c) d ;;\n "e") f ;;\n *) g ;;\nesac\nh', "a d f g h"),
        ("f() { a; }\nf; g", "a g"),
        ("cat << X\na\nb $(c)\nX\nd", "cat d"),
        ("cat <<- 'X'\n\ta\n\tX\nb", "cat b"),
        ("a > b 2> c < d 2>&1 >> e; exec 4>&-", "a"),
        ("[ -f a ] && [[ b && c ]] && d", "d"),
        ("'a' \"b\" c; \"a\"'x' b", "a ax"),
        ('"$(a "$(b)")" `c d`', "a b c"),
        ("$a b; ${a:-$(c)} d; a$b c", "c"),
        ("exec nohup timeout 5 a b; env X=1 c; command -v d", "a c env nohup timeout"),
        ("a=(b c); \"${a[@]}\" d; e=(f)", "b"),
        ("a \\\n b; c", "a c"),
        ("(a; { b; }) < <(c)", "a b c"),
        ("$((1 + 2)); a $((x))", "a"),
        ("./a/b; /usr/bin/c", "./a/b /usr/bin/c"),
    ],
)  # fmt: skip
def test_commands_of_a_shell(text: str, programs: str) -> None:
    assert _shell(text) == set(programs.split())


@pytest.mark.parametrize(
    ("text", "programs", "unknown"),
    [
        ("subprocess.run(['a', 'b'])", "a", ""),
        ("X = ('a', 'b')\nsubprocess.Popen([*X, 'c'])", "a", ""),
        ("subprocess.run(['a'] + x)", "a", ""),
        ("subprocess.run(['a'] if x else ['b'])", "a b", ""),
        ("c = ['a']\nsubprocess.run(c)", "a", ""),
        ("for n in ('a', 'b'):\n  shutil.which(n)", "a b", ""),
        ("N = ('a', 'b')\n[shutil.which(n) for n in N]", "a b", ""),
        ("subprocess.run([sys.executable, '-m', 'a'])", "", ""),
        ("from support.tools import run\nrun([require_program('a'), 'b'])", "a", ""),
        ("run('a', {})", "", ""),
        ("place.run(['a'])", "a", ""),
        ("subprocess.run([TOP / 'tools/a'])", "./tools/a", ""),
        ("record('-o', 'x', '--', 'a', 'b')", "a", ""),
        ("start('sh', '-c', f'a {x}; {y} | b')", "a b sh", ""),
        ("T = 'a && b'\nrecorder.apart(f'{T}; c')", "a b c", ""),
        ("def f(c):\n  subprocess.run(c)\nf(['a'])", "a", ""),
        ("def f(*c):\n  subprocess.run(c)\nf('a', 'b')", "a", ""),
        ("class A:\n  def f(self, c):\n    subprocess.run(c)\n  X = a.f(['a'])", "a", ""),
        ("def f(c):\n  subprocess.run(c)", "", "c"),
        ("def f(n):\n  shutil.which(n)\nf('a')\nf(x)", "a", "x"),
        ("subprocess.run([x[0]])", "", "x[0]"),
    ],
)  # fmt: skip
def test_commands_of_python(text: str, programs: str, unknown: str) -> None:
    assert _python(text) == (set(programs.split()), set(unknown.split()))
