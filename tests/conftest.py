# SPDX-License-Identifier: Apache-2.0
"""Options shared by all tests. Test modules import the helpers as `support.<module>`."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.tools import wbscope_path

_TESTS = Path(__file__).parent
# What --quick keeps of the cases of one test function, by folder: every function is run, on fewer
# recordings, examples and moments. Others keep all.
_QUICK_CASES = {
    "docs": 2,
    "faults": 1,
    "ingest": 2,
    "perfetto": 1,
    "real": 1,
    "text": 4,
    "tracedat": 4,
    "traces": 12,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="a few cases of each function, none that is marked slow",
    )
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


def pytest_configure(config: pytest.Config) -> None:
    """All that a job in the background or of nohup starts would ignore Ctrl-C as it does."""
    config.addinivalue_line("markers", "slow: left out by make check, which has three minutes")
    if config.getoption("--quick"):
        os.environ["WBSCOPE_QUICK"] = "1"  # one kill of each kind
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # not inherited


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick: of each function the first cases, and others at equal distances."""
    if not config.getoption("--quick"):
        return
    cases: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[str(item.path), item.nodeid.partition("[")[0]].append(item)
    kept: set[pytest.Item] = set()
    for (path, _), same in cases.items():
        most = _QUICK_CASES.get(Path(path).relative_to(_TESTS).parts[0], len(same))
        kept.update(same[:: -(-len(same) // most)])
    left_out = [item for item in items if item not in kept]
    items[:] = [item for item in items if item in kept]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def wbscope(tmp_path_factory: pytest.TempPathFactory) -> Wbscope:
    """The command under test, with an empty cache."""
    return Wbscope(wbscope_path(), tmp_path_factory.mktemp("cache"))
