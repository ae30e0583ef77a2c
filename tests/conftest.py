# SPDX-License-Identifier: Apache-2.0
"""Options shared by all tests. Test modules import the helpers as `support.<module>`."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.archives import SHARED, unpacked
from support.choice import CASES, PARTS, Case, Commit, chosen, commit_of, pairwise
from support.cli import Wbscope
from support.costs import Costs, of_functions
from support.once import Once

_TESTS = Path(__file__).parent
# What --quick keeps of the cases of one test function, by folder: every function is run, on fewer
# recordings, examples and moments. Others keep all. A function that wants certain cases names them:
# pytest.mark.quick("reclaim-writes").
_QUICK_CASES = {
    "docs": 2,
    "faults": 1,
    "golden": 14,
    "ingest": 1,
    "perfetto": 1,
    "real": 1,
    "text": 2,
    "tracedat": 2,
    "traces": 12,
}
_SLOW_CPU_SECONDS = 0.3  # of the cases of a function that make check would run
_PR_SET_CHILD_SUBREAPER = 36
# Of cases that are recorded runs, those of the smallest one.
_QUICK_RUN = re.compile(r"\bfour-equal-writers(?!-7)")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="a few cases of each function, none where they take long by tests/costs.txt",
    )
    parser.addoption(
        "--part",
        metavar="commit|0-7",
        help="what make test runs of this commit, or of another part: see support/choice.py",
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
    # Of the terminal that pytest was started in, or of another pytest.
    for name in ("COLUMNS", "WBSCOPE_PAGER", "WBSCOPE_PART"):
        os.environ.pop(name, None)
    if config.getoption("--quick") and "WBSCOPE_QUICK" not in os.environ:
        os.environ["WBSCOPE_QUICK"] = "1"  # shorter runs, fewer examples of a property
    config.pluginmanager.register(Costs(config))
    if not hasattr(config, "workerinput"):  # workers have the PATH of who started them
        _compile_engines_once(config)
        os.environ[SHARED] = _folder(config)
    # All that a job in the background or of nohup starts would ignore Ctrl-C as it does.
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # not inherited


def _compile_engines_once(config: pytest.Config) -> None:
    """Perfetto's engine without V8's second, better compilation.

    That is 1.5 s of the 2 s of CPU that a small trace takes, and there are some hundred; all
    questions about the largest one take 45 s in place of 39 s. A browser in tests/ui has both.
    """
    if (node := shutil.which("node")) is not None:
        folder = _folder(config)
        script = Path(folder, "node")
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(node)} --liftoff-only "$@"\n')
        script.chmod(0o755)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _folder(config: pytest.Config) -> str:
    folder = tempfile.TemporaryDirectory(prefix="wbscope-tests-")
    config.add_cleanup(folder.cleanup)
    return folder.name


def _commit(config: pytest.Config) -> Commit | None:
    """The one whose part is run, if not all of them."""
    wanted = config.getoption("--part")
    if wanted is None:
        return None
    if wanted == "commit":
        return commit_of(_TESTS)
    if wanted not in map(str, range(PARTS)):
        raise pytest.UsageError(f"--part {wanted}: wants commit or a number from 0 to {PARTS - 1}")
    return Commit("any commit", int(wanted))


def pytest_report_header(config: pytest.Config) -> str:
    """What of the tests is run: it is the same again with the same option."""
    commit = _commit(config)
    if commit is None:
        return "all cases" if not config.getoption("--quick") else "a few cases of each function"
    return f"part {commit.part} of {PARTS}, which is that of {commit.name}: --part {commit.part}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --part the choice of support/choice.py; with --quick the one of _QUICK_CASES."""
    cases = {item: _case(item) for item in items}
    config.stash[CASES] = list(cases.values())
    costs = of_functions()
    if (commit := _commit(config)) is not None:
        os.environ["WBSCOPE_PART"] = str(commit.part)
        always = pairwise(path.name for path in (unpacked("data") / "traces").iterdir())
        among = chosen(cases.values(), commit.part, costs, frozenset(always))
        _keep(config, items, {item for item, case in cases.items() if case in among})
    if config.getoption("--quick"):
        functions: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            functions[item.nodeid.partition("[")[0].removeprefix("tests/")].append(item)
        kept: set[pytest.Item] = set()
        for function, all_cases in functions.items():
            few = _quick(all_cases)
            if costs.get(function, 0.0) * len(few) / len(all_cases) <= _SLOW_CPU_SECONDS:
                kept.update(few)
        _keep(config, items, kept)


def _keep(config: pytest.Config, items: list[pytest.Item], kept: set[pytest.Item]) -> None:
    left_out = [item for item in items if item not in kept]
    items[:] = [item for item in items if item in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def _case(item: pytest.Item) -> Case:
    function, _, name = item.nodeid.partition("[")
    file, _, rest = function.partition("::")
    file = (item.config.rootpath / file).relative_to(_TESTS).as_posix()
    name = name.removesuffix("]")
    # core may name the cases that it is about.
    marks = (m.name for m in item.iter_markers() if m.name != "core" or name in (m.args or [name]))
    return Case(f"{file}::{rest}", name, frozenset(marks))


def _quick(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Those that the function names; else of the quick run, the first and at equal distances."""
    marker = cases[0].get_closest_marker("quick")
    if marker is not None and len(cases) > 1:
        named = [case for case in cases if any(name in _case_id(case) for name in marker.args)]
        assert named, f"{cases[0].nodeid}: no case has any of {marker.args}"
        return named
    cases = [case for case in cases if _QUICK_RUN.search(_case_id(case))] or cases
    most = _QUICK_CASES.get(cases[0].path.relative_to(_TESTS).parts[0], len(cases))
    return cases[:: -(-len(cases) // most)]


def _case_id(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[2]


@pytest.fixture(autouse=True)
def orphans_go_elsewhere() -> Iterator[None]:
    """What a test started under a command of its own is not handed to the process of all tests.

    `record` takes in the children of its command; where a test runs that part in this process, the
    dead of later tests would stay here, and their groups would never be empty.
    """
    yield
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """What all workers share."""
    base = tmp_path_factory.getbasetemp()
    # A worker of pytest-xdist has a folder of its own in that of the run.
    return Once((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once")


@pytest.fixture(scope="session")
def wbscope(once: Once) -> Wbscope:
    """The command under test, with a cache that is empty when the tests begin."""
    return Wbscope(once.folder("cache"))
