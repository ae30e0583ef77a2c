# SPDX-License-Identifier: Apache-2.0
"""A metric that there is not: the names like it, and a pattern or name that works."""

from __future__ import annotations

from collections.abc import Iterable

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.nearest import nearest

__all__ = ["near_metrics", "unknown_metric"]

_MOST_GROUPS = 8


def near_metrics(wanted: str, names: Iterable[str], most: int = 3) -> list[str]:
    """By the whole name, else by the part without the query, which may be left out."""
    known = list(dict.fromkeys(names))
    found = nearest(wanted, known, most)
    if found:
        return found
    shorts = {name.partition(".")[2]: name for name in reversed(known)}
    return [shorts[short] for short in nearest(wanted, shorts, most)]


def unknown_metric(wanted: str, names: Iterable[str], where: str) -> UsageError:
    """With a fix that finds something in these names.

    where   whose metrics the names are: "these runs"
    """
    known = list(dict.fromkeys(names))
    close: list[str] = []
    if "*" in wanted:
        queries = dict.fromkeys(name.partition(".")[0] for name in known)
        close = [f"{query}.*" for query in nearest(wanted.partition(".")[0], queries)]
    close = close or near_metrics(wanted, known)
    word = wanted.strip("*")
    groups = [f"{query}.*" for query in dict.fromkeys(name.partition(".")[0] for name in known)]
    close = close or groups[:_MOST_GROUPS]
    fix = close[0] if close else "*"
    if sum(name.startswith(word) for name in known) > 1:
        fix = f"{word}*"
    return UsageError(
        "unknown-metric",
        wanted,
        f"is no metric of {where}",
        have=", ".join(close) or None,
        fix=Phrase(Argument("metrics", [fix])),
    )
