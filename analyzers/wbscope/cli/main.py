# SPDX-License-Identifier: Apache-2.0
"""The entry point: the one catch-all, every exit code, and command lines as they were meant."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from wbscope.base.errors import InternalError, UsageError, WbscopeError, missing_library
from wbscope.base.outputs import free_name
from wbscope.base.system import pasteable
from wbscope.base.version import __version__
from wbscope.base.watch import watching
from wbscope.cli.completing import ASKED, complete
from wbscope.cli.exitcodes import error_code
from wbscope.cli.output import (
    cannot_write_stdout,
    closed_stdout,
    drop_output,
    error_in_options,
    note,
    write_stderr,
    write_stdout,
)
from wbscope.cli.verbs import VERBS, add_verbs, verb_group
from wbscope.render.json import error_document
from wbscope.render.text import error_text

# What stands for a run that is read, a dataset or a history; behind -o it is one to be made.
_PLACE = re.compile(r"(?<=\s)(?<!-o )(?:RUN|DATASET|FILE\.db)(?=\s|$)")
# A run that is offered is offered to this verb; these, too, need nothing but a run.
_OFFERED = "wbscope report "
_AS_REPORT = ("check", "explain")
# What comes through a pipe is for the command that was typed, whatever it was.
_PIPED = "| wbscope report -"
_GROUPS = frozenset(verb.name for verb in VERBS if verb.is_group)


def existing(words: Sequence[str]) -> list[str]:
    """Files, folders and URIs among the words of a command line that are no value of an option."""
    verbs = 2 if words and words[0] in _GROUPS else 1
    found = [
        word
        for before, word in pairwise(words[verbs - 1 :])
        if not word.startswith("-")
        and not before.startswith("-")
        and ("://" in word or os.path.exists(word))
    ]
    return list(dict.fromkeys(found))


def with_run(fix: str | None, words: Sequence[str]) -> str | None:
    """`wbscope query fairness RUN` with what is there and is not the value of an option.

    It stays as it is where the command line has none, or more than one. The first word is a verb.
    """
    if fix is None or not fix.startswith("wbscope ") or _PLACE.search(fix) is None:
        return fix
    named = existing(words)
    if len(named) != 1:
        return fix
    return _PLACE.sub(lambda _: shlex.quote(*named), fix)


def with_verb(fix: str | None, words: Sequence[str], subject: str = "") -> str | None:
    """`wbscope report RUN` with the verb that was asked, where that needs no more.

    subject  the word that the error is about: where a run is offered in its place, all other
             words of the command line stay
    """
    verb = words[0] if words else ""
    if fix is None:
        return fix
    kept = verb and subject in words[1:]
    if kept and fix.endswith(_PIPED):
        return f"{fix.removesuffix(_PIPED)}| {_in_place(words, subject, '-')}"
    if not fix.startswith(_OFFERED):
        return fix
    offered = shlex.split(fix.removeprefix(_OFFERED), comments=True)
    if kept and len(offered) == 1 and verb in (*_AS_REPORT, "report"):
        return _in_place(words, subject, offered[0])
    if verb not in _AS_REPORT:
        return fix
    return f"wbscope {verb} {fix.removeprefix(_OFFERED)}"


def _in_place(words: Sequence[str], subject: str, other: str) -> str:
    """The command line with another word for the one that was wrong, which is not the verb."""
    verb, *rest = words
    return shlex.join(["wbscope", verb, *(other if word == subject else word for word in rest)])


# The output that a verb cannot do without, and a name for it; {} is that of the run.
_OUTPUTS = {
    "convert": ("-o", "{}.pftrace"),
    "export": ("--parquet", "answers"),
    "timeline": ("-o", "{}.pftrace"),
}
# What other programs have a name of a format for.
_FORMATS = ("--format", "--output-format", "--fmt")
_FILES = {"--html": ".html", "--parquet": ".parquet"}
_PAGES = {"html": "html", "htm": "html", "md": "md", "markdown": "md", "txt": "txt"}


def meant(error: Any, words: Sequence[str]) -> str | None:
    """The whole command that was meant, for an error of usage; None: nobody can tell.

    error  of Typer's parser, which knows the verb and its options
    """
    command = getattr(getattr(error, "ctx", None), "command", None)
    if hasattr(command, "commands") and os.path.exists(words[0]):
        return _join("report", words[0], *existing(words))
    option = str(getattr(error, "option_name", "") or "")
    if option in _FILES and words[-1] == option:  # without its value, and so without a context
        return _join(*words, str(free_name(Path(f"{words[0]}{_FILES[option]}"))))
    if command is not None and option:
        return _other_option(command, option, words)
    missing = getattr(getattr(error, "param", None), "opts", ())
    named = existing(words)
    output = _OUTPUTS.get(words[0])
    if output is None or output[0] not in missing or len(named) != 1:
        return None
    name = output[1].format(_stem(named[0]))
    return _join(*words, output[0], str(free_name(Path(name))))


def query_first(error: WbscopeError, words: Sequence[str]) -> str | None:
    """`query trace.dat fairness` with the two in their order."""
    run = error.subject
    if error.slug != "unknown-query" or run not in words or not os.path.exists(run):
        return None
    from wbscope.library.library import load_library

    known = {file.name for file in load_library().queries()}
    name = next((word for word in words[1:] if word in known), None)
    if name is None:
        return None
    rest = list(words)
    rest.remove(name)
    rest.insert(rest.index(run), name)
    return _join(*rest)


def _other_option(command: Any, option: str, words: Sequence[str]) -> str | None:
    """--htm and --format html are -o report.html, --format csv is --csv."""
    place = next((i for i, word in enumerate(words) if word.partition("=")[0] == option), None)
    if place is None:
        return None
    _, has_value, value = words[place].partition("=")
    behind = place + 1
    if not has_value and behind < len(words) and not os.path.exists(words[behind]):
        value = words[behind]
        behind += 1
    known = {name for one in command.params for name in one.opts}
    name = value.lower() if option in _FORMATS else option.removeprefix("--")
    if option not in _FORMATS and not has_value and not _is_page(value, name):
        behind = place + 1  # a word of another meaning
        value = ""
    if f"--{name}" in known and option in _FORMATS:
        instead = [f"--{name}"]
    elif name in _PAGES and words[0] == "report":
        file = value if _is_page(value, name) else str(free_name(Path(f"report.{_PAGES[name]}")))
        instead = ["-o", file]
    else:
        return None
    return _join(*words[:place], *words[behind:], *instead)


def _is_page(word: str, form: str) -> bool:
    return Path(word).suffix == f".{_PAGES.get(form, form)}"


def _stem(run: str) -> str:
    """A name for what is made of it; `-` and `.` give none."""
    return Path(run).name.partition(".")[0] or "run"


def _join(*words: str) -> str:
    return shlex.join(["wbscope", *words])


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
    """Which tasks were throttled, why, how long, fairly, and did reclaim write?

    RUN is a run folder or a file: a trace.dat, a Perfetto trace, the text of
    ftrace or `perf script`, or a database of `wbscope ingest`; also packed
    (gz, xz, zst, bz2, zip, tar), and - is stdin. A trace is loaded on the fly
    and kept in a cache. docs/NAME.md in messages is installed under
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
