# SPDX-License-Identifier: Apache-2.0
"""Figures of recorded runs: their series are the rows of their queries, and their pictures show it.

What a series has to hold is put together here from the rows of the query, in the plain way: those
of one key, one column, without what is not recorded.
"""

from __future__ import annotations

import contextlib
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.runs import RecordedRun
from wbscope.base.errors import EvidenceError
from wbscope.base.units import duration_argument
from wbscope.plot.figures import FIGURES, Figure, Mark, Panel
from wbscope.plot.panels import Asked, PanelData, ask_figure
from wbscope.run.run import Run, open_run

_CORPUS = ("7.2-memory-cgroup", "6.1-swap-competes", "6.1-slow-starves-fast")
# Not every run has all of them.
_LEAST = 8
_PNG, _SVG, _PDF = (("--format", name) for name in ("png", "svg", "pdf"))


@pytest.fixture(scope="session")
def opened(wbscope: Wbscope, recorded: RecordedRun) -> Iterator[Run]:
    """The run in this process, with the cache of the command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WBSCOPE_CACHE_DIR", wbscope.env["WBSCOPE_CACHE_DIR"])
        with open_run(recorded.folder) as run:
            yield run


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_series_are_the_rows(opened: Run, figure: Figure) -> None:
    asked = ask_figure(opened, figure)
    if not isinstance(asked, Asked):
        # Without its events, or without rows.
        with contextlib.suppress(EvidenceError):
            assert not opened.query(figure.query).rows
        return
    rows = opened.query(figure.query, window=asked.window).records()
    first = int(opened.recorded().meta["first_ts"])
    found = list(asked.panels)
    for panel in figure.panels:
        groups = {tuple(row[c] for c in panel.each) for row in rows}
        for key in groups:
            chosen = [
                row
                for row in rows
                if tuple(row[c] for c in panel.each) == key
                and all(row[column] in values for column, values in panel.only)
            ]
            wanted = {
                (mark.kind, mark.y or panel.x, part): _points(panel, mark, part, chosen, first)
                for mark in panel.marks
                for part in {tuple(row[c] for c in panel.by) for row in chosen}
            }
            shown = [n for (kind, _, _), n in wanted.items() if kind not in ("limit", "band")]
            if any(sum(n.values()) for n in shown):
                matching = next(data for data in found if _is_of(data, panel, wanted))
                found.remove(matching)
    assert not found


def _points(
    panel: Panel, mark: Mark, part: tuple[Any, ...], rows: list[dict[str, Any]], first: int
) -> Counter[Any]:
    """The points of one series; times from the first event."""
    own = [row for row in rows if tuple(row[c] for c in panel.by) == part]
    is_time = panel.x.endswith(("_start_ns", "_ts")) or panel.x == "ts"

    def x(row: dict[str, Any]) -> Any:
        return row[panel.x] - first if is_time else row[panel.x]

    if mark.kind == "bars":
        return Counter(row[mark.y] for row in own if row[mark.y] is not None)
    if mark.kind == "spans":
        ended = [row for row in own if row[mark.upper] is not None]
        return Counter((x(row), x(row) + row[mark.upper]) for row in ended)
    if mark.kind == "ecdf" and not mark.y:
        lengths = sorted(row[panel.x] for row in own if row[panel.x] is not None)
        shares = {length: (n + 1) / len(lengths) for n, length in enumerate(lengths)}
        return Counter(shares.items())
    if mark.kind == "area" and panel.by:
        # What is piled up: who has no row where another has one had nothing then.
        others = {x(row) for row in rows} - {x(row) for row in own}
        told = Counter((x(row), row[mark.y]) for row in own if row[mark.y] is not None)
        return told + Counter((time, 0) for time in others)
    if mark.upper:
        return Counter((x(r), r[mark.y], r[mark.upper]) for r in own if r[mark.y] is not None)
    return Counter((x(row), row[mark.y]) for row in own if row[mark.y] is not None)


def _is_of(data: PanelData, panel: Panel, wanted: dict[Any, Counter[Any]]) -> bool:
    """Whether the panel has just these series, with just these points."""
    if data.title != panel.title:
        return False
    made: dict[Any, Counter[Any]] = {}
    for one in data.series:
        points: Counter[Any]
        if one.kind == "bars":
            points = Counter(y for y in one.y if y is not None)
        elif one.kind == "spans":
            points = Counter(zip(one.x, one.upper, strict=True))
        elif one.upper:
            whole = zip(one.x, one.y, one.upper, strict=True)
            points = Counter(p for p in whole if p[1] is not None)
        else:
            points = Counter(p for p in zip(one.x, one.y, strict=True) if p[1] is not None)
        made[one.kind, one.column, one.key] = points
    texts = {(k, c, tuple("" if v is None else str(v) for v in p)): n
             for (k, c, p), n in wanted.items()}  # fmt: skip
    if made.keys() != texts.keys():
        return False
    # Zeros for windows without a row are no rows.
    spare = Counter[Any]() if not panel.zero else Counter({0: 10**9})
    return all(
        not (texts[key] - made[key])
        and all(point[1] == 0 and spare for point in made[key] - texts[key])
        for key in made
    )


def _check_pictures(wbscope: Wbscope, run: Path, folder: Path, *formats: str) -> None:
    done = wbscope.run("plot", run, "-o", folder, "--json", *formats)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    left_out = [w for w in document["warnings"] if "left out" in w["message"]]
    drawn = {row["figure"] for row in document["rows"]}
    assert len(drawn) + len(left_out) == len(FIGURES)
    assert len(drawn) >= _LEAST
    assert {Path(row["output"]) for row in document["rows"]} == set(folder.iterdir())
    for row in document["rows"]:
        path = Path(row["output"])
        assert path.name.startswith(f"{row['figure']}.")
        if path.suffix == ".png":
            pixels: Any = matplotlib.image.imread(path)
            assert pixels.shape[1] == 1300
            # Something but white, in every part of the picture from left to right.
            inked = (pixels[:, :, :3] < 0.9).any(axis=2)
            assert all(part.any() for part in (inked[:, i : i + 260] for i in range(0, 1300, 260)))
        else:
            texts = {(one.text or "").strip() for one in ElementTree.parse(path).getroot().iter()}
            figure = next(one for one in FIGURES if one.name == row["figure"])
            assert figure.title in texts
            assert any(t.endswith(_command(row)) for t in texts), texts
            if figure.windows:
                assert "time since the first event [s]" in texts
            # Units that people read; the first panel is always there.
            unit = figure.panels[0].unit if figure.panels[0].marks[0].kind != "heat" else ""
            ends = {"bytes/s": "iB/s", "bytes": "iB", "ratio": "%"}.get(unit, "")
            assert any(text.endswith(ends) for text in texts - {""}), (figure.name, texts)


def _command(row: dict[str, Any]) -> str:
    window = f" --window {row['window']}" if row["window"] else ""
    return f"wbscope query {row['query']} RUN{window}"


def test_pictures(wbscope: Wbscope, recorded: RecordedRun, tmp_path: Path) -> None:
    _check_pictures(wbscope, recorded.folder, tmp_path / "0", *_PNG, *_SVG)
    names = ("global_dirty_state", "latency-heatmap")
    # Whatever is made beside it, and in which order.
    for folder, formats in (("1", (*_PDF, *_SVG, *_PNG)), ("2", (*_PNG, *_PDF))):
        words = ("plot", recorded.folder, *names, "-o", tmp_path / folder, *formats)
        assert wbscope.run(*words).returncode == 0
    for path in (tmp_path / "1").iterdir():
        content = path.read_bytes()
        others = [other for n in "02" if (other := tmp_path / n / path.name).exists()]
        assert others
        assert all(other.read_bytes() == content for other in others), path.name
        assert path.suffix != ".pdf" or content.startswith(b"%PDF-")


@pytest.mark.parametrize("case", _CORPUS)
def test_pictures_of_the_corpus(wbscope: Wbscope, case: str, tmp_path: Path) -> None:
    run = unpack(CORPUS / case, tmp_path)
    _check_pictures(wbscope, run, tmp_path / "pictures", *_SVG)
    texts = (tmp_path / "pictures" / "iostat-util.svg").read_text()
    assert "(/data" in texts, "devices have their names"


def test_windows_are_round(opened: Run) -> None:
    for figure in FIGURES:
        asked = ask_figure(opened, figure)
        if isinstance(asked, Asked) and asked.grid.window_ns is not None:
            window = asked.grid.window_ns
            assert duration_argument(window) == asked.window
            assert str(window).rstrip("0") in ("1", "2", "5")
            assert window >= figure.least_window_ns
            assert opened.duration_ns() / window <= figure.windows + 1
