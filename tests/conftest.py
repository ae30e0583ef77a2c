# SPDX-License-Identifier: Apache-2.0
"""Options shared by all tests. Test modules import the helpers as `support.<module>`."""

from __future__ import annotations

import signal

import pytest
from support.cli import Wbscope
from support.tools import wbscope_path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected files of tests/golden from this run; review the diff",
    )
    parser.addoption(
        "--update-docs",
        action="store_true",
        help="write the output of the commands in README and docs from this run; review the diff",
    )
    parser.addoption(
        "--update-pictures",
        action="store_true",
        help="write docs/*.png from the Perfetto UI in the browser; look at them",
    )


def pytest_configure() -> None:
    """All that a job in the background or of nohup starts would ignore Ctrl-C as it does."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # not inherited


@pytest.fixture(scope="session")
def wbscope(tmp_path_factory: pytest.TempPathFactory) -> Wbscope:
    """The command under test, with an empty cache."""
    return Wbscope(wbscope_path(), tmp_path_factory.mktemp("cache"))
