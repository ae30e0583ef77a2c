# SPDX-License-Identifier: Apache-2.0
"""Every command in the documentation is run, and prints what the page says it prints.

A ```console block holds commands, each followed by its output. A command starts with `$ ` and goes
on in lines that start with `> `. `$ wbscope` commands are run, on a copy of examples/; `$ make`
commands are left as they are. Set-up commands belong into ```sh blocks. --update-docs writes the
output into the pages; review the diff.
"""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY

_PATTERNS = ("*.md", "docs/**/*.md", "examples/**/*.md", "kernel-tracepoints/*.md", "ui/*.md")
_PAGES = sorted(
    page.relative_to(REPOSITORY)
    for pattern in _PATTERNS
    for page in REPOSITORY.glob(pattern)
    if "```console\n" in page.read_text(encoding="utf-8")
)
_BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\$ .*\n(?:> .*\n)*")
_EXAMPLES = sorted(trace.parent.name for trace in REPOSITORY.glob("examples/*/trace.dat"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the checkout, for commands to write into."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPOSITORY / "examples", root / "examples")
    return root


def _printed(wbscope: Wbscope, command: str, folder: Path) -> str:
    """What a terminal shows: stderr, where warnings are, and stdout."""
    text = command.removeprefix("$ ").replace("\n> ", "\n")
    result = wbscope.run(*shlex.split(text)[1:], cwd=folder)
    # The exit code of a gate is its verdict, which the page shows.
    good = (0, 1, 4) if command.startswith("$ wbscope gate ") else (0,)
    assert result.returncode in good, f"{command}ended with {result.returncode}: {result.stderr}"
    return result.stderr + result.stdout


def _with_output(wbscope: Wbscope, block: str, folder: Path) -> str:
    """The block with what its commands print today."""
    text = ""
    for part in filter(None, re.split(r"^(?=\$ )", block, flags=re.MULTILINE)):
        command = _COMMAND.match(part)
        assert command is not None, f"a block starts with {part!r}, wanted '$ '"
        assert command[0].startswith(("$ wbscope ", "$ make ")), (
            f"{command[0]!r} is not run; mark a block of set-up commands as ```sh"
        )
        if command[0].startswith("$ make "):
            text += part
        else:
            text += command[0] + _printed(wbscope, command[0], folder)
    return text


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_commands_print_what_the_page_says(
    wbscope: Wbscope, checkout: Path, page: Path, pytestconfig: pytest.Config
) -> None:
    # Commands of an example run in its folder, all others at the top.
    in_example = page.parts[0] == "examples" and len(page.parts) > 2
    folder = checkout / page.parent if in_example else checkout
    path = REPOSITORY / page
    text = path.read_text(encoding="utf-8")
    current = _BLOCK.sub(lambda block: _with_output(wbscope, block[0], folder), text)
    if pytestconfig.getoption("--update-docs"):
        path.write_text(current, encoding="utf-8")
        return
    lines = (text.splitlines(), current.splitlines())
    diff = difflib.unified_diff(*lines, str(page), "what the commands print", lineterm="")
    assert text == current, "pytest --update-docs writes it:\n" + "\n".join(diff)


@pytest.mark.parametrize("name", _EXAMPLES)
def test_every_example_has_a_page(name: str) -> None:
    assert Path("examples", name, "README.md") in _PAGES
    assert f"]({name}/README.md)" in (REPOSITORY / "examples/README.md").read_text()
