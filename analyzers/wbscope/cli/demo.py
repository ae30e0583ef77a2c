# SPDX-License-Identifier: Apache-2.0
"""wbscope demo: a recorded run that comes with the package, its verdict, and what to ask next."""

from __future__ import annotations

import os
import shlex
import tarfile
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import free_name, private_folder
from wbscope.base.system import join
from wbscope.cli.options import QuietOption
from wbscope.cli.output import note, page_width, progress_bar, write_stdout
from wbscope.explain.verdict import verdict_of
from wbscope.render.verdict import verdict_text
from wbscope.run.run import open_run

_FOLDER = "wbscope-demo"
_TRACE = "trace.dat"
_ELSEWHERE = "wbscope demo -o DIR    # in a folder that you may write to"
_ASK = (
    ("wbscope explain {run}", "evidence and advice"),
    ("wbscope report {run} -o demo.html", "figures and tables"),
    ("wbscope query blame {run}", "whose dirty pages"),
    ("wbscope timeline {run} -o demo.pftrace", "for the Perfetto UI"),
    ("wbscope doctor", "what this machine can record"),
)


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The run folder to make.")
    ] = Path(_FOLDER),
    quiet: QuietOption = False,
) -> None:
    """Say what was wrong in a run that comes with wbscope.

    A disk of 1 MiB/s fills the machine's dirty pages while fio writes to a fast
    one; recorded on Linux 6.1, 0.7 MB. Needs no network and no root.

    \b
    Examples:
      wbscope demo
      wbscope demo -o ~/demo
    """
    _unpack(packed_run(), output)
    shown = str(output)
    with progress_bar(shown, hidden=quiet) as bar, open_run(output, observer=bar) as opened:
        verdict = verdict_text(verdict_of(opened), page_width())
    write_stdout(f"{verdict}\nAsk this run:\n{_asked(join([shown]))}", colours=True)


def packed_run() -> Path:
    """In the package, else in the checkout that it runs from."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "demo/run.tar.xz"
    if installed.is_file():
        return installed
    return package.parents[1] / "tests/corpus/6.1-slow-starves-fast/run.tar.xz"


def _asked(run: str) -> str:
    commands = [(command.format(run=run), what) for command, what in _ASK]
    width = max(len(command) for command, _ in commands)
    return "".join(f"  {command:<{width}}  # {what}\n" for command, what in commands)


def _unpack(packed: Path, folder: Path) -> None:
    """Whole or not at all; one that was unpacked before is kept."""
    try:
        with tarfile.open(packed) as archive:
            if folder.is_dir() and _is_same(archive, folder):
                return
            if not folder.name or str(folder) == "-":
                beside = Path(_FOLDER) if folder.name else folder / _FOLDER
                raise UsageError(
                    "no-new-folder",
                    str(folder),
                    "is no name for a new folder",
                    fix=join(["wbscope", "demo", "-o", str(free_name(beside))]),
                )
            if folder.is_symlink() or (folder.exists() and not _is_empty(folder)):
                raise UsageError(
                    "output-exists",
                    str(folder),
                    "is there and is no demo run",
                    fix=f"wbscope demo -o {shlex.quote(str(folder.with_name(_FOLDER + '-2')))}",
                )
            _unpack_beside(archive, folder)
    except OSError as error:
        raise SetupError(
            "cannot-write",
            str(folder),
            f"the demo run cannot be unpacked: {error.strerror or error}",
            fix=_ELSEWHERE,
        ) from error
    except SetupError as error:  # no private folder beside it
        error.fix = _ELSEWHERE
        raise
    note(f"wrote {folder}")


def _unpack_beside(archive: tarfile.TarFile, folder: Path) -> None:
    """In a private folder of the same place; then it gets the name."""
    with private_folder(folder, held=True) as private:
        run = private / _FOLDER
        run.mkdir()
        for member in archive:
            if (packed := archive.extractfile(member)) is not None:
                (run / Path(member.name).name).write_bytes(packed.read())
        os.rename(run, folder)


def _is_same(archive: tarfile.TarFile, folder: Path) -> bool:
    """It has the trace of the package, byte for byte."""
    trace = next(name for name in archive.getnames() if Path(name).name == _TRACE)
    packed, there = archive.extractfile(trace), folder / _TRACE
    return packed is not None and there.is_file() and there.read_bytes() == packed.read()


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
