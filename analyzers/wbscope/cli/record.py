# SPDX-License-Identifier: Apache-2.0
"""wbscope record: a run folder from a command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.result import Notice
from wbscope.base.system import current_folder
from wbscope.base.units import format_value, parse_duration, parse_kib
from wbscope.cli.options import JsonOption, QuietOption
from wbscope.cli.output import (
    note,
    page_width,
    progress_bar,
    show_warnings,
    warnings_in_options,
    write_stdout,
)
from wbscope.cli.output import option as option_text
from wbscope.explain.verdict import build_report
from wbscope.library.library import load_library
from wbscope.record.what import WHAT
from wbscope.render.blocks import TEXT, written
from wbscope.render.json import document, rows_body
from wbscope.render.report import report_document
from wbscope.run.run import open_run

if TYPE_CHECKING:
    from wbscope.record.recorder import Recording, Request


_SAMPLE = f"{WHAT['sampling']['seconds']}s"


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD...]", help="What to measure.", show_default=False),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="stalls, writeback, reclaim, deep, or custom with --event.")
    ] = "stalls",
    event: Annotated[
        list[str] | None,
        typer.Option("-e", "--event", metavar="GLOB", help="Record these too; repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="RUN", help="A new folder; default run-DATE."),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Instead of CMD, e.g. 30s.")
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Time a sync after CMD, and record it.")
    ] = False,
    sysctl: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For the time of the run; repeatable."),
    ] = None,
    buffer_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Of each CPU, e.g. 16M; default: by free memory."),
    ] = None,
    clock: Annotated[str | None, typer.Option(help="boot or mono.")] = None,
    sample: Annotated[
        str, typer.Option(metavar="TIME", help="How often /proc is read; 0s: never.")
    ] = _SAMPLE,
    backend: Annotated[str, typer.Option(help="auto, trace-cmd or tracefs.")] = "auto",
    probe: Annotated[
        str, typer.Option(help="auto or off: probes tell bytes and waits exactly.")
    ] = "auto",
    remote: Annotated[
        str | None, typer.Option(metavar="[USER@]HOST", help="Record there, over ssh.")
    ] = None,
    print_script: Annotated[
        bool, typer.Option("--print", help="Print the script for another machine.")
    ] = False,
    unpack: Annotated[
        Path | None,
        typer.Option(metavar="TAR", help="Make a run of what that script wrote."),
    ] = None,
    recover: Annotated[
        bool, typer.Option("--recover", help="Undo what a killed recording left, then exit.")
    ] = False,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Do not end with the report.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an older run.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Record a run, then print its report.

    Needs root.  Without CMD and --duration it records until Ctrl-C.

    \b
    Examples:
      wbscope record -o RUN -- dd if=/dev/zero of=/mnt/file bs=1M count=512
      wbscope record --profile deep --sync -o RUN -- fio job.fio
      wbscope record --profile reclaim --duration 30s
      wbscope record --sysctl vm.dirty_bytes=64M -o RUN -- ./workload
      wbscope record --recover
      wbscope record --remote root@host -o RUN -- sh workload.sh
    """
    # Inside, so that no other verb waits for these modules.
    from wbscope.record.recorder import Request
    from wbscope.record.recorder import record as record_run
    from wbscope.record.register import COMPLETE, INTERRUPTED
    from wbscope.record.remote import record_remote, script_of, unpack_file

    request = Request(
        profile=profile,
        events=tuple(event or ()),
        output=output,
        command=tuple(command or ()),
        duration_ns=None if duration is None else _duration(duration),
        sync=sync,
        clock=clock,
        buffer_kib=None if buffer_size is None else parse_kib("buffer_size", buffer_size),
        interval_ns=parse_duration("sample", sample),
        sysctls=tuple(sysctl or ()),
        backend=backend,
        probe=probe,
        force=force,
    )
    if recover:
        given = {
            **_given(request),
            "--unpack": unpack is not None,
            "--remote, --print": remote is not None or print_script,
            "-o": output is not None,
            "--no-report": no_report,
            "--force": force,
            "--json": as_json,
        }
        _refuse(given, "--recover", "it records nothing, and says on stderr what it put back")
        _recover(request.command)
        return
    _check(request)
    warnings: list[Notice] = []

    def warn(notice: Notice) -> None:
        warnings.append(notice)
        if not as_json:
            show_warnings([notice])

    library = load_library()
    say = (lambda _: None) if quiet or as_json else note
    if remote is not None or print_script:
        _check_remote(request, remote)
    if unpack is not None:
        given = {
            "CMD": bool(request.command),
            **_given(request),
            "--remote, --print": remote is not None or print_script,
        }
        _refuse(given, "--unpack", "it is recorded already")
    if print_script:
        _refuse({"--json": as_json}, "--print", "it prints a script")
        script = script_of(request, library)
        if hasattr(sys.stdout, "reconfigure"):  # a command may be any bytes
            coding = sys.getfilesystemencoding()
            sys.stdout.reconfigure(encoding=coding, errors="surrogateescape")
        write_stdout(script)
        return
    if remote is not None:
        done = record_remote(remote, request, library, say)
    elif unpack is not None:
        done = unpack_file(unpack, request)
    else:
        done = record_run(request, library, warn, say, show=_show)
    for problem in done.problems:
        warn(Notice("record-problem", problem))
    if code := _failure(done):
        warn(Notice("command-failed", code))
    if done.lost_count:
        told = f"{done.lost_count} events did not fit into the buffers and are lost"
        warn(Notice("lost-events", f"{told}; record with a larger --buffer-size"))
    if as_json:
        row = {"run": str(done.run), "ended": done.ended, **done.facts}
        write_stdout(document("record", {}, rows_body([row], warnings_in_options(warnings))))
    else:
        note(_summary(done))
        if not no_report:
            _print_report(done.run, quiet)
    if done.interrupted:
        raise KeyboardInterrupt
    if done.ended not in (COMPLETE, INTERRUPTED):
        raise SetupError(
            "recording-cut-short",
            str(done.run),
            f"is not whole: {done.ended}",
            effect="compare and gate refuse it, as a damaged trace",
            fix="record again, with room on the disk of the run and memory to spare",
        )


def _recover(folders: Sequence[str]) -> None:
    """Everything that is registered, or the folders that are named."""
    from wbscope.record.choose import mounted_tracefs, require_writable
    from wbscope.record.finish import recover_all, recover_folder
    from wbscope.record.folders import remove_unused

    tracefs = mounted_tracefs()
    if tracefs is not None:
        require_writable(tracefs)
    if not folders:
        done = recover_all(tracefs)
        for line in done:
            note(str(line))
        unused = remove_unused(current_folder())
        for line in unused or ([] if done else ["nothing to put back"]):
            note(line)
    for folder in folders:
        try:
            run = recover_folder(Path(folder), told=lambda found: note(str(found)))
            note(f"wrote {run}")
        except OSError as error:
            raise SetupError(
                "cannot-write", folder, f"cannot be written: {error.strerror or error}",
                fix="make room on its disk",
            ) from error  # fmt: skip


def _show(text: str) -> None:
    """What the command would have printed."""
    note(*text.rstrip().split("\n"))


def _duration(text: str) -> int:
    return parse_duration("duration", text, positive=True)


def _check(request: Request) -> None:
    if request.command and request.duration_ns is not None:
        raise UsageError(
            "two-choices", "--duration CMD", "exclude each other, wanted one", fix="--duration 30s"
        )
    if request.sync and not request.command:
        raise UsageError("sync-without-command", "--sync", "times the sync after CMD", fix="-- CMD")
    if request.backend not in ("auto", "trace-cmd", "tracefs"):
        raise UsageError(
            "unknown-backend",
            f"--backend {request.backend}",
            "is none of auto, trace-cmd, tracefs",
            fix="--backend auto",
        )
    if request.probe not in ("auto", "off"):
        raise UsageError(
            "unknown-probe", f"--probe {request.probe}", "is none of auto, off", fix="--probe auto"
        )


def _check_remote(request: Request, host: str | None) -> None:
    """What the script for another machine has no way to do."""
    given = {
        "--clock": request.clock is not None,
        "--sample": request.interval_ns != parse_duration("sample", _SAMPLE),
        "--backend": request.backend != "auto",
    }
    for option, is_given in given.items():
        if is_given:
            raise UsageError(
                "not-with-remote", option, "is not for --remote and --print",
                fix=f"leave out {option}: the script takes boot or mono, and samples once a second",
            )  # fmt: skip
    if host is not None and (not host or host.startswith("-")):
        raise UsageError("no-host", f"--remote {host}", "is no host", fix="--remote root@host")


def _given(request: Request) -> dict[str, bool]:
    """Which options were given that say how to record."""
    default = type(request)()
    return {
        "--profile": request.profile != default.profile,
        "--event": bool(request.events),
        "--duration": request.duration_ns is not None,
        "--sync": request.sync,
        "--sysctl": bool(request.sysctls),
        "--buffer-size": request.buffer_kib is not None,
        "--clock": request.clock is not None,
        "--sample": request.interval_ns != default.interval_ns,
        "--backend": request.backend != default.backend,
        "--probe": request.probe != default.probe,
    }


def _refuse(given: dict[str, bool], mode: str, why: str) -> None:
    """Options without an effect there."""
    for option, is_given in given.items():
        if is_given:
            raise UsageError(
                f"not-with-{mode.removeprefix('--')}", option, f"is not for {mode}: {why}",
                fix=f"leave out {option}",
            )  # fmt: skip


def _failure(done: Recording) -> str | None:
    if number := done.facts.get("command_signal"):
        return f"the command was ended by signal {number}"
    if code := done.facts.get("command_exit_code"):
        return f"the command exited with {code}"
    return None


def _summary(done: Recording) -> str:
    parts = [f"wrote {done.run}"]
    for key, name in (("command_duration_ns", "command"), ("sync_duration_ns", "sync after it")):
        if key in done.facts:
            parts.append(f"{name} {format_value(key, 'ns', done.facts[key])}")
    return ", ".join(parts)


def _print_report(run: Path, quiet: bool) -> None:
    with progress_bar(str(run), hidden=quiet) as bar, open_run(str(run), observer=bar) as opened:
        built = build_report(opened)
    again = f"wbscope report {shlex.quote(str(run))}"
    made = report_document([built], say=lambda argument: f"{again} {option_text(argument)}")
    write_stdout(written(made, TEXT, page_width()))
