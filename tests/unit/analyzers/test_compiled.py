# SPDX-License-Identifier: Apache-2.0
"""The library that is kept as it was read: never another one than the files have."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from wbscope.ingest.program import find_formats_dir
from wbscope.library.library import Library, load_library
from wbscope.perfetto.perfetto_library import perfetto_library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    return folder


def entry_in(cache: Path) -> Path:
    (entry,) = cache.rglob("*.library")
    return entry


def _loaded(load: Callable[[], Library] = load_library) -> tuple[Library, list[Path]]:
    found: list[Path] = []
    read = Path.read_text

    def noted(path: Path, *rest: Any, **named: Any) -> str:
        if path.suffix == ".sql":
            found.append(path)
        return read(path, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", noted)
        return load(), sorted(found)


def loaded(load: Callable[[], Library] = load_library) -> tuple[Library, list[Path]]:
    """By a process that has not loaded it before, and the SQL files that it has read."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        return pool.submit(_loaded, load).result()


def test_the_files_are_read_once(sql_dir: Path, cache: Path) -> None:
    (first, reads), (second, again) = loaded(), loaded()
    assert first == second
    assert first.digest() == second.digest()
    assert (reads, again) == (sorted(sql_dir.rglob("*.sql")), [])


def test_a_process_reads_it_once(sql_dir: Path, cache: Path) -> None:
    """Whatever becomes of the cache."""
    first, reads = _loaded()
    entry_in(cache).unlink()
    assert reads
    assert _loaded() == (first, [])


@pytest.mark.parametrize("load", [load_library, perfetto_library])
def test_the_whole_library_comes_back(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: Callable[[], Library]
) -> None:
    """With rules, templates, profiles and drawings: the reader knows each part."""
    folder = shutil.copytree(REPOSITORY / "sql", tmp_path / "sql")
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(folder))
    (first, reads), (second, again) = loaded(load), loaded(load)
    assert first == second
    assert len(reads) > 100
    assert again == []


@pytest.mark.parametrize("change", ["text", "new file", "gone", "the folder"])
def test_another_text_is_read(
    sql_dir: Path, cache: Path, change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    added = sql_dir / "views/a.sql"
    added.write_text("-- @view a\nCREATE VIEW a AS SELECT 1 AS one;\n")
    assert load_library().files["a"].select == "SELECT 1 AS one"
    if change == "text":
        added.write_text("-- @view a\nCREATE VIEW a AS SELECT 2 AS two;\n")
        assert load_library().files["a"].select == "SELECT 2 AS two"
    elif change == "new file":
        (sql_dir / "views/b.sql").write_text("-- @view b\nCREATE VIEW b AS SELECT 1;\n")
        assert "b" in load_library().files
    elif change == "gone":
        added.unlink()
        assert "a" not in load_library().files
    else:
        monkeypatch.delenv("WBSCOPE_SQL_DIR")
        assert "a" not in load_library().files


def test_another_format_is_another_library(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Words for codes of a Perfetto trace are those of the captured formats."""
    formats = shutil.copytree(find_formats_dir(), tmp_path / "formats")
    monkeypatch.setenv("WBSCOPE_FORMATS_DIR", str(formats))
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(REPOSITORY / "sql"))
    before, _ = loaded(perfetto_library)
    for path in formats.rglob("*.formats"):
        path.write_text(path.read_text().replace('"laptop_timer"', '"behind"'))
    after, reads = loaded(perfetto_library)
    assert reads
    assert after.digest() != before.digest()


class _Evil:
    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "evil", "another thing"])
def test_what_is_damaged_is_read_again(
    sql_dir: Path, cache: Path, tmp_path: Path, damage: str
) -> None:
    wanted, _ = loaded()
    entry = entry_in(cache)
    whole = entry.read_bytes()
    made = tmp_path / "made"
    texts = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "noise": bytes(range(256)) * 4,
        "evil": pickle.dumps(_Evil(made)),
        "another thing": pickle.dumps(({}, (), 3)),
    }
    entry.write_bytes(texts[damage])
    assert loaded()[0] == wanted
    assert not made.exists()
    assert entry.read_bytes() == whole


def test_what_others_have_in_the_cache_stays(sql_dir: Path, cache: Path) -> None:
    loaded()
    folder = entry_in(cache).parent
    others = ["mine.library", "0123.library", f"{'g' * 32}.library", "notes.txt"]
    for name in others:
        (folder / name).write_text("mine")
    (folder / f"{'a' * 32}.library").mkdir()  # of the name of an entry, and no file
    entry = max(folder.glob("*.library"), key=lambda path: path.is_file() * path.stat().st_size)
    entry.write_bytes(b"damaged")
    assert loaded()[0].files
    assert {path.name for path in folder.iterdir()} >= {*others, f"{'a' * 32}.library", entry.name}


def test_no_cache_is_no_error(
    sql_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What needs no cache works where there is none."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert loaded()[1] == loaded()[1] == sorted(sql_dir.rglob("*.sql"))
