#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make ui/extension/, which the Perfetto UI reads as an extension server, and its list of macros.

usage: gen_ui.py [--check]     --check writes nothing and exits 1 when a file is
                               missing, stale or left over

Sources are ui/macros.toml and the modules of `wbscope sql-package`. The table of macros in
ui/README.md is written too.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analyzers"))

from wbscope.perfetto.package import PACKAGE, modules  # noqa: E402
from wbscope.perfetto.perfetto_library import perfetto_library  # noqa: E402
from wbscope.viewer.link import Command  # noqa: E402
from wbscope.viewer.startup import DEFAULT_WORKSPACE  # noqa: E402

SOURCE = ROOT / "ui" / "macros.toml"
EXTENSION = ROOT / "ui" / "extension"
PAGE = ROOT / "ui" / "README.md"
TABLE = re.compile(r"(?<=<!-- macros -->\n).*?(?=<!-- /macros -->)", re.DOTALL)
MODULE = "default"  # the one that the UI selects by itself
DRAWN = "ui.drawn"
PIVOT = {"slices": "AddDebugSliceTrackWithPivot", "counters": "AddDebugCounterTrackWithPivot"}


def sql_modules(source: dict[str, Any]) -> dict[str, str]:
    """Text of each module by its name: those of the library, and the macros' own."""
    texts = modules(perfetto_library(ROOT / "sql"))
    for module in source["module"]:
        name = f"{PACKAGE}.{module['name']}"
        if name in texts:
            raise SystemExit(f"{SOURCE}: module {name} is one of the library")
        texts[name] = module["sql"].strip() + "\n"
    return texts


def macro(entry: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """A macro as the UI reads it."""
    title = entry["name"]
    run = [
        include([*entry["include"], DRAWN], known),
        # From here, whatever is shown now; copying makes the workspace too.
        Command("SwitchWorkspace", (DEFAULT_WORKSPACE,)),
        Command("CopyTracksToWorkspaceByRegexWithAncestors", (names(entry["show"]), title)),
        Command("SwitchWorkspace", (title,)),
        Command("ExpandTracksByRegex", (names(entry["open"]),)),
        *(command(step) for step in entry["steps"]),
    ]
    return {
        "id": f"{PACKAGE}.{entry['id']}",
        "name": entry["name"],
        "run": [step.record() for step in run],
    }


def include(modules: list[str], known: set[str]) -> Command:
    wanted = [f"{PACKAGE}.{name}" for name in modules]
    if missing := sorted(set(wanted) - known):
        raise SystemExit(f"{SOURCE}: there is no module {', '.join(missing)}")
    return Command("RunQuery", ("\n".join(f"INCLUDE PERFETTO MODULE {n};" for n in wanted),))


def names(patterns: list[str]) -> str:
    return f"^(?:{'|'.join(patterns)})$"


def command(step: dict[str, Any]) -> Command:
    """What draws or shows; in a timeline of wbscope only what is always wanted."""
    sql = step["sql"].strip()
    if not step.get("always"):
        sql = f"SELECT * FROM (\n{sql}\n) CROSS JOIN wbscope_ui_drawn"
    if "table" in step:
        return Command("RunQueryAndShowTab", (sql, step["table"]))
    (kind,) = step.keys() & PIVOT
    return Command(PIVOT[kind], (sql, step["each"], step[kind]))


def files(source: dict[str, Any]) -> dict[Path, str]:
    """What the UI fetches, by path."""
    texts = sql_modules(source)
    macros = [macro(entry, set(texts)) for entry in source["macro"]]
    manifest = {
        "name": source["name"],
        "namespace": PACKAGE,
        "features": [{"name": "macros"}, {"name": "sql_modules"}],
        "modules": [{"id": MODULE, "name": "wbscope"}],
    }
    listed = [{"name": name, "sql": text} for name, text in sorted(texts.items())]
    folder = EXTENSION / "modules" / MODULE
    documents = {
        EXTENSION / "manifest": manifest,
        folder / "macros": {"macros": macros},
        folder / "sql_modules": {"sql_modules": listed},
    }
    check_names(source["namespace"], macros, listed)
    return {
        path: json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        for path, document in documents.items()
    }


def check_names(
    namespace: str, macros: list[dict[str, Any]], modules: list[dict[str, str]]
) -> None:
    """The UI refuses all of a server when one name is outside its namespace."""
    found = [entry["id"] for entry in macros] + [entry["name"] for entry in modules]
    wrong = [name for name in found if not name.startswith(f"{namespace}.")]
    if wrong or namespace != PACKAGE:
        raise SystemExit(f"{SOURCE}: outside the namespace {namespace}: {', '.join(wrong)}")
    if len(set(found)) != len(found):
        raise SystemExit(f"{SOURCE}: a name is used twice")


def table(source: dict[str, Any]) -> str:
    lines = ["| macro | id | shows |", "|---|---|---|"]
    for entry in source["macro"]:
        about = " ".join(entry["about"].split())
        lines.append(f"| {entry['name']} | `{PACKAGE}.{entry['id']}` | {about} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    with SOURCE.open("rb") as file:
        source = tomllib.load(file)
    wanted = files(source)
    page = PAGE.read_text(encoding="utf-8")
    wanted[PAGE] = TABLE.sub(lambda _: table(source), page)
    found = [path for path in EXTENSION.rglob("*") if path.is_file()] + [PAGE]
    stale = [path for path in found if path not in wanted]
    stale += [
        path
        for path, text in wanted.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not current; run tools/gen_ui.py")
        return 1 if stale else 0
    for path in stale:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
