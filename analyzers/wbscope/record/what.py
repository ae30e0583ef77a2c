# SPDX-License-Identifier: Apache-2.0
"""The table what.toml: what is taken of a machine, here and by the script for another one."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

WHAT: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("what.toml").read_text(encoding="utf-8")
)


def version(text: str) -> tuple[int, int]:
    """The first two numbers of a kernel's release."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def script_text() -> str:
    """Of remote.sh: what it copies and samples, its probes, and sysctls of which one is 0."""
    probe = WHAT["probe"]
    functions = {
        "copy_before": _copies(WHAT["before"]),
        "copy_after": _copies(WHAT["after"]),
        "both": _both(WHAT["parts"]),
        "take_samples": _samples(WHAT["samples"], WHAT["parts"]),
        "find_partner": _partners(WHAT["sysctls"]["pairs"]),
        "probe_kind": _cases("$1", {kind: _set(enter=enter, leave=leave, suffix=suffix)
                                    for kind, (enter, leave, suffix) in probe["kinds"].items()}),
        "probe_registers": _cases("$(uname -m)", {name: _set(registers=" ".join(two)) for name, two
                                                  in probe["registers"].items()}, "registers="),
    }  # fmt: skip
    waits = WHAT["blocked"]
    kept, told = waits["triggers"].values()
    made = [
        _set(sample_seconds=str(WHAT["sampling"]["seconds"])),
        _set(**_probe(probe)),
        _set(waits_fields=waits["fields"], waits_filter=waits["filter"]),
        _set(waits_kept=kept, waits_told=told),
    ]
    for name, lines in functions.items():
        made += [f"{name}() {{", *(f"  {line}" for line in lines), "}"]
    return "".join(f"{line}\n" for line in made)


def _copies(files: Mapping[str, str]) -> Iterator[str]:
    for name, path in files.items():
        yield f'save {path} "$run/{name}"'


def _both(parts: Mapping[str, str]) -> Iterator[str]:
    for name, pattern in parts.items():
        if name == "block":  # with the number of each
            yield f"disks '{pattern.removesuffix('/stat')}' > $run/{name}.$1"
        else:
            field = pattern.split("/").index("*") + 1
            yield f"objects '{pattern}' {field} > $run/{name}.$1"


def _samples(samples: Mapping[str, Any], parts: Mapping[str, str]) -> Iterator[str]:
    for name, how in samples.items():
        if "script" in how:
            yield (f"sample_file {name} {how['from']}" if "from" in how
                   else f"sample_parts {name} '{parts[name]}'")  # fmt: skip


def _partners(pairs: Mapping[str, str]) -> Iterable[str]:
    paths = {_path(size): _path(ratio) for size, ratio in pairs.items()}
    both = paths | {ratio: size for size, ratio in paths.items()}
    return _cases("$1", {path: _set(other=partner) for path, partner in both.items()}, "other=")


def _path(sysctl: str) -> str:
    return f"/proc/sys/{sysctl.replace('.', '/')}"


def _probe(probe: Mapping[str, Any]) -> dict[str, str]:
    """Lists as words, versions as numbers that a shell compares."""
    made = {}
    for name, value in probe.items():
        if name.endswith(("since", "until")):
            major, minor = version(value)
            value = major * 100 + minor
        made[f"probe_{name}"] = str(value) if isinstance(value, int | str) else " ".join(value)
    return {name: text for name, text in made.items() if name != "probe_registers"}


def _set(**variables: str) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def _cases(word: str, cases: Mapping[str, str], other: str = ":") -> Iterator[str]:
    yield f"case {word} in"
    for pattern, line in {**cases, "*": other}.items():
        yield f"  {pattern}) {line} ;;"
    yield "esac"
