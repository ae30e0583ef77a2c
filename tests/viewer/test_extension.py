# SPDX-License-Identifier: Apache-2.0
"""ui/extension is what the Perfetto UI takes from an extension server, and is current."""

from __future__ import annotations

import json
import re
import sys

import pytest
from support.macros import EXTENSION, SOURCE, macros, sql_modules
from support.runs import REPOSITORY
from support.tools import run
from wbscope.perfetto.package import PACKAGE
from wbscope.viewer.link import ARGUMENTS

MANIFEST = json.loads((EXTENSION / "manifest").read_text(encoding="utf-8"))
FEATURES = {"macros", "sql_modules", "proto_descriptors"}
INCLUDE = re.compile(r"INCLUDE PERFETTO MODULE ([\w.]+);")


@pytest.mark.parametrize("tool", ["gen_ui.py", "gen_config.py"])
def test_what_is_generated_is_current(tool: str) -> None:
    result = run([sys.executable, REPOSITORY / "tools" / tool, "--check"])
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_manifest_names_what_is_there() -> None:
    assert MANIFEST.keys() == {"name", "namespace", "features", "modules"}
    assert MANIFEST["namespace"] == SOURCE["namespace"] == PACKAGE
    features = {feature["name"] for feature in MANIFEST["features"]}
    assert features <= FEATURES
    # Selected by itself when the server is added.
    assert [module["id"] for module in MANIFEST["modules"]] == ["default"]
    files = {path.relative_to(EXTENSION).as_posix() for path in EXTENSION.rglob("*")}
    wanted = {f"modules/default/{feature}" for feature in features}
    assert files == {"manifest", "modules", "modules/default"} | wanted


def test_every_name_is_in_the_namespace() -> None:
    """With one that is not, the UI refuses all of them."""
    names = [*macros(), *sql_modules()]
    assert all(name.startswith(f"{MANIFEST['namespace']}.") for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("macro", macros().values(), ids=lambda macro: macro["id"])
def test_commands_are_those_of_the_stable_list(macro: dict) -> None:
    assert macro.keys() == {"id", "name", "run"}
    assert macro["name"].startswith("Writeback: ")
    for command in macro["run"]:
        assert command.keys() == {"id", "args"}
        prefix, _, name = command["id"].rpartition(".")
        assert prefix == "dev.perfetto"
        assert len(command["args"]) == ARGUMENTS[name]
        assert all(type(argument) is str and argument for argument in command["args"])


def test_what_is_included_is_served() -> None:
    modules = sql_modules()
    texts = [*modules.values()]
    texts += [argument for m in macros().values() for c in m["run"] for argument in c["args"]]
    included = {name for text in texts for name in INCLUDE.findall(text)}
    assert included <= modules.keys()


def test_every_macro_is_in_the_page() -> None:
    page = (REPOSITORY / "ui" / "README.md").read_text(encoding="utf-8")
    for name, macro in macros().items():
        assert f"| {macro['name']} | `{name}` |" in page
