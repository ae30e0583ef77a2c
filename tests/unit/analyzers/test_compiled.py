# SPDX-License-Identifier: Apache-2.0
"""The library that is kept as it was read: never another one than the files have."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from wbscope.library.library import Library, load_library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The SQL files that were read."""
    found: list[Path] = []
    read = Path.read_text

    def noted(path: Path, *rest: Any, **named: Any) -> str:
        if path.suffix == ".sql":
            found.append(path)
        return read(path, *rest, **named)

    monkeypatch.setattr(Path, "read_text", noted)
    return found


def entry_in(cache: Path) -> Path:
    (entry,) = cache.rglob("*.library")
    return entry


def test_the_files_are_read_once(sql_dir: Path, cache: Path, reads: list[Path]) -> None:
    first, second = load_library(), load_library()
    assert first == second
    assert first.digest() == second.digest()
    assert sorted(reads) == sorted(path for path in sql_dir.rglob("*.sql"))


def test_the_whole_library_comes_back(
    cache: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rules, templates, profiles and drawings: the reader knows each part."""
    monkeypatch.delenv("WBSCOPE_SQL_DIR", raising=False)
    assert load_library() == load_library()
    assert len(reads) == len(set(reads)) > 100


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


class _Evil:
    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "evil", "another thing"])
def test_what_is_damaged_is_read_again(
    sql_dir: Path, cache: Path, tmp_path: Path, damage: str
) -> None:
    wanted = load_library()
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
    assert load_library() == wanted
    assert not made.exists()
    assert entry.read_bytes() == whole


def test_what_others_have_in_the_cache_stays(sql_dir: Path, cache: Path) -> None:
    load_library()
    folder = entry_in(cache).parent
    others = ["mine.library", "0123.library", f"{'g' * 32}.library", "notes.txt"]
    for name in others:
        (folder / name).write_text("mine")
    (folder / f"{'a' * 32}.library").mkdir()  # of the name of an entry, and no file
    entry = max(folder.glob("*.library"), key=lambda path: path.is_file() * path.stat().st_size)
    entry.write_bytes(b"damaged")
    assert load_library().files
    assert {path.name for path in folder.iterdir()} >= {*others, f"{'a' * 32}.library", entry.name}


def test_no_cache_is_no_error(
    sql_dir: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What needs no cache works where there is none."""
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    assert isinstance(load_library(), Library)
    assert isinstance(load_library(), Library)
    assert sorted(reads) == sorted(2 * list(sql_dir.rglob("*.sql")))
