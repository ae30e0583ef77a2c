# SPDX-License-Identifier: Apache-2.0
"""The entry point: the one catch-all, and every exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from wbscope.base.errors import InternalError, UsageError, WbscopeError
from wbscope.base.extras import missing_library
from wbscope.base.filenames import pasteable
from wbscope.base.version import __version__
from wbscope.base.watch import watching
from wbscope.cli.completing import ASKED, complete
from wbscope.cli.exitcodes import error_code
from wbscope.cli.fixes import with_run, with_verb
from wbscope.cli.group import verb_group
from wbscope.cli.output import (
    cannot_write_stdout,
    closed_stdout,
    drop_output,
    note,
    write_stderr,
    write_stdout,
)
from wbscope.cli.typos import meant, query_first
from wbscope.cli.verbs import VERBS, add_verbs
from wbscope.cli.wording import error_in_options
from wbscope.render.jsondoc import error_document
from wbscope.render.messages import error_text

__all__ = ["main", "program"]

_OK = 0
_INTERRUPTED = 130


def _version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"wbscope {__version__}\n")
        raise typer.Exit


def program(words: Sequence[str] | None = None) -> typer.Typer:
    """The program; with the words of a command line no more than that needs."""
    app = verb_group("wbscope", add_completion=False, no_args_is_help=True)
    app.callback()(_options)
    add_verbs(app, words)
    return app


def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "-V", "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Who was throttled, why, for how long, was it fair, did reclaim write?

    RUN is a run folder or a file: a trace.dat, a Perfetto trace, the text of
    ftrace or `perf script`, or a database of `wbscope ingest`; also packed
    (gz, xz, zst, bz2, zip, tar), and - is stdin. A trace is loaded on the fly
    and kept in a cache. Pages that texts name, docs/NAME.md, are installed in
    share/doc/wbscope beside bin/.

    \b
    Examples:
      wbscope report trace.dat
      wbscope query throttle_by_task trace.dat
      wbscope timeline trace.dat -o run.pftrace
      wbscope open trace.dat
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # Ignored by who started us, it would be so in here: no child could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A plain kill ends like Ctrl-C: the ingester is stopped, nothing is left.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        if words[:1] == [ASKED]:
            return complete(program, words[1:])
        return _run(words)
    except BrokenPipeError:
        drop_output(sys.stdout)
        return _OK


def _run(words: list[str]) -> int:
    try:
        with (
            watching(lambda error: _fail(error, words)),
            get_command(program(words)).make_context("wbscope", list(words)) as context,
        ):
            context.command.invoke(context)
    except typer.Exit as end:
        if end.exit_code == _OK and sys.stdout is None:
            return _fail(closed_stdout(), words)  # Typer prints a help text to nowhere
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort):
        note("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        raise
    except WbscopeError as error:
        return _fail(error, words)
    except typer.TyperException as error:
        if not words or type(error).__name__ == "NoArgsIsHelpError":
            note(*error.format_message().split("\n"))  # the help text
            return UsageError.exit_code
        return _fail(_usage(error, words), words)
    except Exception as error:
        known = _known(error, words)
        if known is not None:
            return _fail(known, words)
        if os.environ.get("WBSCOPE_DEBUG"):
            note(*traceback.format_exc().rstrip().split("\n"))
        return _fail(_bug(error, words), words)
    return _OK


def _fail(error: WbscopeError, words: list[str]) -> int:
    options = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in options
    told = error_in_options(error)
    fix = query_first(told, options)
    fix = fix or with_verb(with_run(told.fix, options), options, told.subject)
    told.fix = None if fix is None else pasteable(fix)
    write_stderr(error_document(told).rstrip("\n") if as_json else error_text(told))
    return error_code(error.exit_code, words)


def _known(error: Exception, words: list[str]) -> WbscopeError | None:
    """What is no bug: a library that is not there, and a stdout that takes no help text.

    Typer prints that itself, and nothing else.
    """
    if isinstance(error, ImportError):
        return missing_library(error, _command(words), _whole_extra(words))
    frames = traceback.walk_tb(error.__traceback__)
    if isinstance(error, OSError) and any(one.f_code is typer.echo.__code__ for one, _ in frames):
        return cannot_write_stdout(error)
    return None


def _command(words: list[str]) -> str:
    return " ".join(["wbscope", *words[:1]])


def _whole_extra(words: list[str]) -> str | None:
    """The extra that has all libraries of a command that needs those of several."""
    if words[:1] not in (["fleet"], ["export"]):
        return None
    is_cluster = any(word.partition("=")[0] == "--master" for word in words)
    return "spark" if is_cluster else "fleet"


def _usage(error: typer.TyperException, words: list[str]) -> UsageError:
    context = getattr(error, "ctx", None)
    command = "wbscope"
    if context is not None:
        command = context.command_path
    elif words[0] in (
        verb.name for verb in VERBS
    ):  # an option without its value is told without a context
        command = f"wbscope {words[0]}"
    message = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    fix = f"{command} --help"
    if command == "wbscope record" and "--" not in words:
        # As in `record ls -l`: options of the command look like those of record.
        fix = "wbscope record -o RUN -- CMD...    # options of CMD go behind the --"
    elif "-completion" in message:  # as programs of Typer have it
        fix = "wbscope completion bash    # or zsh, fish"
    elif command_line := meant(error, words):
        fix = command_line
    return UsageError("usage", command, message, fix=fix)


def _bug(error: Exception, words: list[str]) -> InternalError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    command = shlex.join(["wbscope", *words])
    return InternalError(
        "internal",
        f"wbscope {__version__}",
        f"{type(error).__name__}: {error} (a bug, please report it)",
        at=f"{Path(frame.filename).name}:{frame.lineno}",
        fix=f"WBSCOPE_DEBUG=1 {command}    # send what it prints",
    )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
