# SPDX-License-Identifier: Apache-2.0
"""The advice of a verdict as files: for sysctl.d, and as a profile of tuned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from wbscope.base.errors import EvidenceError
from wbscope.base.filenames import join
from wbscope.explain.verdict import Verdict
from wbscope.library.finding import Finding

__all__ = ["sysctl_text", "trial_of", "tuned_text", "undo_of"]

_SYSCTL = "vm."
_SYSFS = "/sys/"
# Names of cgroups and devices are those of a trace, which may be a stranger's: in a file they are
# lines of their own, in a command words.
_PLAIN = re.compile(r"[\w./:@+=-][\w./:@+= -]*")


def sysctl_text(verdict: Verdict) -> str:
    """Lines for /etc/sysctl.d/90-wbscope.conf, each setting with the finding that it is for.

    Raises: EvidenceError when no advice sets a sysctl.
    """
    lines = [f"# {_head(verdict)}: try it before you keep it."]
    settings = list(_settings(verdict, _SYSCTL))
    if not settings:
        raise _nothing(verdict, "a sysctl")
    for finding, knob, value in settings:
        lines += [f"# {finding.id}: {finding.title}", f"{knob} = {value}"]
    return "\n".join(lines) + "\n"


def tuned_text(verdict: Verdict) -> str:
    """A profile for /etc/tuned/wbscope/tuned.conf.

    Raises: EvidenceError when no advice sets anything that tuned can.
    """
    sysctls = list(_settings(verdict, _SYSCTL))
    files = list(_settings(verdict, _SYSFS))
    if not sysctls and not files:
        raise _nothing(verdict, "a sysctl or a file of /sys")
    lines = ["[main]", f"summary={_head(verdict)}"]
    for section, settings in (("sysctl", sysctls), ("sysfs", files)):
        if settings:
            lines += ["", f"[{section}]"]
        for finding, knob, value in settings:
            lines += [f"# {finding.id}: {finding.title}", f"{knob}={value}"]
    return "\n".join(lines) + "\n"


def trial_of(finding: Finding, run: str) -> tuple[str, ...]:
    """Commands that try the advice of a finding; none where it sets nothing that a command can."""
    if finding.advice is None:
        return ()
    sysctls = [f"{knob}={value}" for knob, value in finding.advice.settings if _is_sysctl(knob)]
    files = [
        _echo(knob, value) for knob, value in finding.advice.settings if knob.startswith(_SYSFS)
    ]
    if not sysctls and not files:
        return ()
    words = [word for one in sysctls for word in ("--sysctl", one)]
    record = shlex.join(["wbscope", "record", *words, "-o", "TRIAL"]) + " -- COMMAND"
    return (*files, record, join(["wbscope", "compare", "TRIAL", "--against", run]))


def undo_of(finding: Finding) -> tuple[str, ...]:
    """Commands that put back what the advice of a finding changes, as far as it is known."""
    if finding.advice is None:
        return ()
    # What is only the default is said so in brackets.
    before = [one.partition(" (the default")[0].rpartition(" = ") for one in finding.advice.now]
    return tuple(
        shlex.join(["sysctl", "-w", f"{knob}={value}"]) if _is_sysctl(knob) else _echo(knob, value)
        for knob, _, value in before
        if _is_sysctl(knob) or knob.startswith(_SYSFS)
    )


def _head(verdict: Verdict) -> str:
    """One line, whatever the run is called: what follows a line feed would be a setting."""
    return f"Advice of wbscope explain for {join([verdict.run])}"


def _echo(knob: str, value: str) -> str:
    return f"echo {shlex.quote(value)} > {shlex.quote(knob)}"


def _is_sysctl(knob: str) -> bool:
    return knob.startswith(_SYSCTL)


def _settings(verdict: Verdict, begin: str) -> Iterator[tuple[Finding, str, str]]:
    """Each knob once: as the finding wants it that matters most."""
    seen = set()
    for finding in _advising(verdict):
        assert finding.advice is not None
        for knob, value in finding.advice.settings:
            is_plain = _PLAIN.fullmatch(knob) and _PLAIN.fullmatch(value)
            if knob.startswith(begin) and is_plain and knob not in seen:
                seen.add(knob)
                yield finding, knob, value


def _advising(verdict: Verdict) -> Iterable[Finding]:
    return (one for one in verdict.findings if one.advice is not None and one.severity != "note")


def _nothing(verdict: Verdict, what: str) -> EvidenceError:
    return EvidenceError(
        "no-advice",
        verdict.run,
        f"has no finding whose advice sets {what}",
        have=", ".join(one.id for one in verdict.findings) or None,
        fix=f"wbscope explain {verdict.run}",
    )
