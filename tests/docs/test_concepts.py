# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/concepts.md are our own plots of runs; --update-pictures draws them.

Fonts differ a little from machine to machine, so a picture is compared by its size, and by how much
of what is drawn differs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import matplotlib.image
import numpy
import pytest
from support.browser import shrink
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.runs import REPOSITORY

_PAGE = REPOSITORY / "docs/concepts.md"
_PICTURES = {
    "1-limits": ("four-equal-writers", "global_dirty_state"),
    "2-position": ("four-equal-writers", "balance_dirty_pages-pages"),
    "3-bandwidth": ("four-equal-writers", "balance_dirty_pages-bandwidth"),
    "4-pauses": ("four-equal-writers", "balance_dirty_pages-pause"),
    "5-waits": ("rate-limited-writers", "task-wait"),
    "6-fairness": ("rate-limited-writers", "balance_dirty_pages-task-bw"),
    "7-gap": ("four-equal-writers", "global_dirtied_written"),
    "8-pool": ("7.2-slow-starves-fast", "pool-by-holder"),
    "9-waits": ("four-equal-writers", "stalls-ecdf"),
    "10-reclaim": ("reclaim-writes", "reclaim-zones"),
}
_MOST_DIFFERENT = 0.3  # of the pixels with ink
_VISIBLE = 0.2  # of a colour's range


def test_the_page_has_each_of_them_and_names_its_figure() -> None:
    text = _PAGE.read_text(encoding="utf-8")
    sections = re.findall(
        r"!\[[^]]+\]\(concepts/([\w-]+)\.png\)\n\n(.*?)(?:\n\n|\Z)", text, re.DOTALL
    )
    assert [name for name, _ in sections] == list(_PICTURES)
    for name, first in sections:
        assert f"figure {_PICTURES[name][1]}" in " ".join(first.split()), name
    assert sorted(_PICTURES) == sorted(path.stem for path in _PAGE.with_suffix("").glob("*"))


@pytest.mark.dealt
@pytest.mark.parametrize("name", _PICTURES)
def test_a_picture_is_what_plot_draws(
    wbscope: Wbscope, name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    run, figure = _PICTURES[name]
    folder = REPOSITORY / "examples" / run
    if not folder.exists():
        folder = unpack(CORPUS / run, tmp_path)
    done = wbscope.run("plot", str(folder), figure, "-o", str(tmp_path / "drawn"), "-q")
    assert done.returncode == 0, done.stderr
    drawn = tmp_path / "drawn" / f"{figure}.png"
    kept = _PAGE.with_suffix("") / f"{name}.png"
    if pytestconfig.getoption("--update-pictures"):
        shutil.copy(drawn, kept)
        shrink(kept)
    ours, theirs = (matplotlib.image.imread(path)[..., :3] for path in (drawn, kept))
    assert numpy.abs(numpy.subtract(ours.shape, theirs.shape)).max() <= 8
    height, width = (min(pair) for pair in zip(ours.shape[:2], theirs.shape[:2], strict=True))
    ours, theirs = ours[:height, :width], theirs[:height, :width]
    ink = (numpy.minimum(ours, theirs) < 1 - _VISIBLE).any(axis=2)
    off = numpy.abs(ours - theirs).max(axis=2) > _VISIBLE
    assert off.sum() < ink.sum() * _MOST_DIFFERENT
