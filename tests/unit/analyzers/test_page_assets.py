# SPDX-License-Identifier: Apache-2.0
"""What pages have inside them: uPlot as it was published, JSON that ends no script."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from support.runs import REPOSITORY
from wbscope.render.sections import asset, json_for_script, policy

_FOLDER = REPOSITORY / "analyzers/wbscope/render/assets"


def test_uplot_is_unchanged() -> None:
    told = re.findall(
        r"\| `(uPlot\S+)` \| `([0-9a-f]{64})` \|", (_FOLDER / "README.md").read_text()
    )
    assert {name for name, _ in told} == {path.name for path in _FOLDER.glob("uPlot*")}
    for name, digest in told:
        assert hashlib.sha256((_FOLDER / name).read_bytes()).hexdigest() == digest


def test_its_licence_is_with_the_others() -> None:
    assert (REPOSITORY / "LICENSES/MIT-uPlot.txt").read_text().rstrip() == asset("uPlot.LICENSE")
    assert "--" not in asset("uPlot.LICENSE")  # it stands in a comment of every page


@pytest.mark.parametrize("name", sorted(path.name for path in _FOLDER.glob("*.[cj]s*")))
def test_no_asset_ends_its_element_or_loads_anything(name: str) -> None:
    text = asset(name)
    assert not re.search(r"</script|</style|<!--", text, re.IGNORECASE)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", text)


@pytest.mark.parametrize(
    "text",
    ["</script><img src=x onerror=alert(1)>", "<!--<script>", "]]>&amp;", "\u2028\u2029\x00\\\"'"],
)
def test_json_in_a_script_is_text(text: str) -> None:
    made = json_for_script({text: [text]})
    assert not re.search(r"[<>&\u2028\u2029\x00]", made)
    assert json.loads(made) == {text: [text]}


def test_the_policy_lets_only_these_texts_run() -> None:
    made = policy(["alert(1)"], ["p {}"])
    assert made.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in made
    assert "bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=" in made
