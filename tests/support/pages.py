# SPDX-License-Identifier: Apache-2.0
"""Links of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["dead_links"]

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:")


def dead_links(page: Path) -> Iterator[str]:
    """Links to files that are not there, and to headings that the page has not."""
    for link in _LINK.findall(_text(page)):
        if link.startswith(_ELSEWHERE):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub names them."""
    titles = re.findall(r"^#+ (.+)$", _text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _text(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))
