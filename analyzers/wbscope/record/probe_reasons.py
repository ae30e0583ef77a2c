# SPDX-License-Identifier: Apache-2.0
"""Why balance_dirty_pages() cannot be probed here, and what helps."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

__all__ = ["FUNCTION", "Refused", "kinds_here", "refusal", "renamed_function"]

FUNCTION = "balance_dirty_pages"
# Of what compilers put behind a name, what leaves the arguments as they were.
_KEPT = re.compile(r"\.(?:llvm|lto_priv)\.\d+")
# Parts of a function that stands under its own name, too.
_PARTS = re.compile(r"\.cold(?:\.\d+)?")
_SYMBOL = re.compile(rf"^\w+ [tT] ({FUNCTION}(?:\.[\w.]+)?)$", re.MULTILINE)
_ERROR = re.compile(r"^\[[\s\d.]+\] \w+: error: (.*)\n  Command: (.*)$", re.MULTILINE)
_KALLSYMS = "proc/kallsyms"
_LOCKDOWN = "sys/kernel/security/lockdown"
_KPROBES = "sys/kernel/debug/kprobes"
_FTRACE = "proc/sys/kernel/ftrace_enabled"
_ANOTHER_BUILD = "another build of this kernel"


class Refused(Exception):
    """There are no probes: why, and what helps."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.why = why
        self.fix = fix


def kinds_here(tracefs: Path, root: Path) -> list[str]:
    """The kinds of probes of this kernel, the better one first.

    Raises: Refused when there is none.
    """
    kinds = []
    if "f[:[<group>/]" in _text(tracefs / "README"):
        kinds.append("fprobe")
    switch = root / _KPROBES / "enabled"
    disarmed = _text(switch).strip() == "0"
    if (tracefs / "kprobe_events").exists() and not disarmed:
        kinds.append("kprobe")
    if kinds:
        return kinds
    if disarmed:
        raise Refused(f"kprobes are switched off: {switch} is 0", f"echo 1 > {switch}    # as root")
    raise Refused(
        "this kernel has no probe events (CONFIG_FPROBE_EVENTS, CONFIG_KPROBE_EVENTS)",
        "a kernel with CONFIG_KPROBE_EVENTS",
    )


def renamed_function(root: Path) -> str | None:
    """Its name where a compiler has given it another one, arguments as they were.

    Raises: Refused when the function is not there, or takes other arguments.
    """
    symbols = _text(root / _KALLSYMS)
    names: list[str] = _SYMBOL.findall(symbols)
    if FUNCTION in names or not symbols:
        return None
    whole = [name for name in names if not _PARTS.fullmatch(name.removeprefix(FUNCTION))]
    if not whole:
        raise Refused(f"the compiler has put {FUNCTION}() into its callers", _ANOTHER_BUILD)
    if len(whole) == 1 and _KEPT.fullmatch(whole[0].removeprefix(FUNCTION)):
        return whole[0]
    raise Refused(f"the compiler has changed {FUNCTION}(): {', '.join(whole)}", _ANOTHER_BUILD)


def refusal(tracefs: Path, group: str, said: str, root: Path) -> Refused:
    """What is known to keep a kernel from it; else what it said, in its log or to us."""
    if "[confidentiality]" in _text(root / _LOCKDOWN):
        return Refused(
            "the kernel is locked down (confidentiality)", "boot with lockdown=integrity"
        )
    if os.geteuid() != 0:
        return Refused(f"user {os.geteuid()} may make no probes: {said}", "sudo wbscope ...")
    if re.search(rf"\b{FUNCTION}$", _text(root / _KPROBES / "blacklist"), re.MULTILINE):
        return Refused(f"{FUNCTION} is on the kernel's list of what not to probe", _ANOTHER_BUILD)
    if _text(root / _FTRACE).strip() == "0":
        return Refused("kernel.ftrace_enabled is 0", "sysctl kernel.ftrace_enabled=1")
    logged = [text for text, command in _ERROR.findall(_text(tracefs / "error_log"))
              if group in command]  # fmt: skip
    why = f"the kernel refuses the probe: {logged[-1] if logged else said}"
    return Refused(why, "none known")


def _text(path: Path) -> str:
    """Of a file that cannot be read, nothing."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
