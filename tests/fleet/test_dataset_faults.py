# SPDX-License-Identifier: Apache-2.0
"""A dataset holds whole runs, each once: again, at once, killed, on a full disk, among others."""

from __future__ import annotations

import inspect
import json
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from support.cli import Wbscope, check_error
from support.faults import memory_disk
from support.runs import example
from wbscope.fleet.harvest import sources_in

# Ends itself by SIGKILL when so many files have got their names.
_KILLED = """
import os, signal, sys
from pathlib import Path
import wbscope.fleet.dataset as dataset
left = int(sys.argv[1])
real = dataset.place
def place(source, target):
    global left
    if left == 0 and source.name != "marker":  # that one makes the dataset
        os.kill(os.getpid(), signal.SIGKILL)
    left -= source.name != "marker"
    real(source, target)
dataset.place = place
from wbscope.cli.main import main
sys.exit(main(["fleet", "ingest", sys.argv[2], "-o", sys.argv[3]]))
"""
RUN = example("four-equal-writers").folder


def listing(dataset: Path) -> dict[str, int]:
    """Data files and their rows."""
    return {
        str(path.relative_to(dataset)): pyarrow.parquet.read_metadata(path).num_rows
        for path in dataset.rglob("*.parquet")
        if path.relative_to(dataset).parts[0] != "_work"
    }


def ingest(wbscope: Wbscope, dataset: Path, *sources: Path) -> dict[str, int]:
    done = wbscope.run("fleet", "ingest", *sources, "-o", dataset, "--json")
    document = json.loads(done.stdout)
    assert done.returncode == (4 if document["failed_count"] else 0), done.stderr
    return {what: document[f"{what}_count"] for what in ("added", "known", "failed")}


@pytest.fixture(scope="module")
def whole(wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of the one run."""
    path = tmp_path_factory.mktemp("whole") / "dataset"
    assert ingest(wbscope, path, RUN) == {"added": 1, "known": 0, "failed": 0}
    return path


def test_again_changes_nothing_and_a_copy_is_the_same_run(
    wbscope: Wbscope, whole: Path, tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.parquet")}
    copy = tmp_path / "another-name"
    shutil.copytree(RUN, copy)
    assert ingest(wbscope, whole, RUN, copy) == {"added": 0, "known": 2, "failed": 0}
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*.parquet")} == before


# 0: the intent is not there yet; then a few files, all but the manifest's, and all.
@pytest.mark.parametrize("names", [0, 1, 7, -1, None])
def test_killed_while_files_get_their_names(
    wbscope: Wbscope, whole: Path, tmp_path: Path, names: int | None
) -> None:
    dataset = tmp_path / "dataset"
    files = listing(whole)
    count = 10**6 if names is None else len(files) + 1 if names < 0 else names
    command = [sys.executable, "-c", _KILLED, str(count), str(RUN), str(dataset)]
    ended = subprocess.run(command, env=wbscope.env, capture_output=True, text=True, check=False)
    is_killed = names is not None
    assert ended.returncode == (-signal.SIGKILL if is_killed else 0), ended.stderr
    assert listing(dataset).items() <= files.items()
    told = wbscope.run("fleet", "sql", dataset, "SELECT count(*) AS n FROM stalls", "--json")
    seen = json.loads(told.stdout)["rows"][0]["n"]
    assert bool(seen) != is_killed  # a run without a manifest is not there
    counts = ingest(wbscope, dataset, RUN)
    assert counts == {"added": int(is_killed), "known": int(not is_killed), "failed": 0}
    assert listing(dataset) == files
    assert not list((dataset / "_intent").iterdir())
    assert not list((dataset / "_work").iterdir())


def test_two_at_once(wbscope: Wbscope, whole: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wbscope", "fleet", "ingest", RUN, "-o", tmp_path / "dataset"]
    started = [subprocess.Popen(command, env=wbscope.env, stderr=subprocess.PIPE) for _ in "12"]
    told = [one.communicate()[1].decode() for one in started]
    assert [one.returncode for one in started] == [0, 0], told
    assert listing(tmp_path / "dataset") == listing(whole)


def test_bad_runs_are_rows_and_stop_nothing(wbscope: Wbscope, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / "empty").mkdir(parents=True)
    shutil.copytree(RUN, folder / "good")
    (folder / "noise.dat").write_bytes(b"noise" * 100)
    cut = (RUN / "trace.dat").read_bytes()[:300]
    (folder / "short.dat").write_bytes(cut)
    dataset = tmp_path / "dataset"
    assert ingest(wbscope, dataset, folder) == {"added": 1, "known": 0, "failed": 3}
    assert ingest(wbscope, dataset, folder) == {"added": 0, "known": 1, "failed": 3}
    told = wbscope.run(
        "fleet", "sql", dataset, "SELECT source, slug FROM ingest_errors ORDER BY 1", "--json"
    )
    rows = json.loads(told.stdout)["rows"]
    assert [Path(row["source"]).name for row in rows] == ["empty", "noise.dat", "short.dat"]
    refused = wbscope.run("export", folder / "noise.dat", "--parquet", dataset)
    assert refused.returncode == 3


def test_what_is_not_ours_stays(wbscope: Wbscope, whole: Path, tmp_path: Path) -> None:
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.jpg").write_text("cat")
    refused = wbscope.run("fleet", "ingest", RUN, "-o", other)
    assert (refused.returncode, [p.name for p in other.iterdir()]) == (2, ["cat.jpg"])
    assert "not-a-dataset" in refused.stderr
    for path in (other / "cat.jpg", tmp_path / "none"):
        asked = wbscope.run("fleet", "report", path)
        assert asked.returncode == 3
        check_error(asked.stderr, "not-a-dataset", path)
    # The place of a file is taken.
    dataset = tmp_path / "dataset"
    taken = dataset / next(name for name in listing(whole) if name.startswith("stalls/"))
    shutil.copytree(whole, dataset, ignore=shutil.ignore_patterns("*.parquet", "*.json"))
    shutil.copy(whole / "_dataset.json", dataset)
    taken.write_text("mine")
    refused = wbscope.run("fleet", "ingest", RUN, "-o", dataset)
    assert (refused.returncode, taken.read_text()) == (5, "mine"), refused.stderr
    assert "foreign-file" in refused.stderr
    assert list(dataset.rglob("*.parquet")) == [taken]


@pytest.mark.parametrize("kind", ["of another run", "of nobody's table", "a link to ours"])
def test_parquet_that_is_not_ours_stays(
    wbscope: Wbscope, whole: Path, tmp_path: Path, kind: str
) -> None:
    """A file of the run itself would be replaced."""
    dataset, kept = tmp_path / "dataset", tmp_path / "kept.parquet"
    name = next(name for name in listing(whole) if name.startswith("stalls/"))
    shutil.copytree(whole, dataset, ignore=shutil.ignore_patterns("*.parquet", "*.json"))
    shutil.copy(whole / "_dataset.json", dataset)
    taken, ours = dataset / name, pyarrow.parquet.read_table(whole / name)
    if kind == "a link to ours":
        shutil.copy(whole / name, kept)
        taken.symlink_to(kept)
    else:
        columns = {"run": ["another" if kind == "of another run" else ours["run"][0].as_py()]}
        about = ours.schema.metadata if kind == "of another run" else None
        made = pyarrow.table(columns).replace_schema_metadata(about)
        pyarrow.parquet.write_table(made, taken)
    before = taken.read_bytes()
    refused = wbscope.run("fleet", "ingest", RUN, "-o", dataset)
    assert (refused.returncode, taken.read_bytes() == before) == (5, True), refused.stderr
    assert "foreign-file" in refused.stderr
    assert taken.is_symlink() == (kind == "a link to ours")
    assert list(dataset.rglob("*.parquet")) == [taken]


def fix_of(wbscope: Wbscope, *words: str | Path) -> list[str]:
    """The words of the remedy, as a shell has them."""
    refused = wbscope.run("fleet", *words)
    assert refused.returncode == 3, refused.stderr
    (line,) = [one for one in refused.stderr.splitlines() if one.startswith("  fix: ")]
    return shlex.split(line.removeprefix("  fix: "), comments=True)


def test_the_remedy_for_a_damaged_manifest(wbscope: Wbscope, whole: Path, tmp_path: Path) -> None:
    """The run is added again, over the files that it had, also from another place."""
    dataset, copy = tmp_path / "dataset", tmp_path / "copy"
    shutil.copytree(whole, dataset)
    shutil.copytree(RUN, copy)
    (manifest,) = (dataset / "_manifest").iterdir()
    manifest.write_text("{")
    words = fix_of(wbscope, "report", dataset)
    assert words[:3] == ["mv", str(manifest), "/tmp,"]
    manifest.rename(tmp_path / "damaged")
    assert ingest(wbscope, dataset, copy) == {"added": 1, "known": 0, "failed": 0}
    assert listing(dataset) == listing(whole)
    question = "SELECT source FROM runs"
    assert wbscope.document("fleet", "sql", dataset, question)["rows"] == [{"source": str(copy)}]


def test_remedies_for_what_is_no_dataset(wbscope: Wbscope, whole: Path, tmp_path: Path) -> None:
    """Word by word; what is there stays."""
    photos, file, damaged = tmp_path / "my photos", tmp_path / "file", tmp_path / "damaged"
    photos.mkdir()
    (photos / "cat.jpg").write_text("cat")
    (tmp_path / "empty").mkdir()
    file.write_text("mine")
    shutil.copytree(whole, damaged)
    (damaged / "_dataset.json").write_text("{")
    before = listing(damaged)
    for place, wanted in (
        (photos, photos / "dataset"),
        (tmp_path / "empty", tmp_path / "empty"),
        (tmp_path / "none", tmp_path / "none"),
        (file, tmp_path / "file-dataset"),
        (damaged, tmp_path / "damaged-new"),
    ):
        words = fix_of(wbscope, "report", place)
        assert words == ["wbscope", "fleet", "ingest", "RUN...", "-o", str(wanted)]
        done = wbscope.run("fleet", "ingest", RUN, *words[4:])
        assert done.returncode == 0, done.stderr
        assert listing(wanted) == listing(whole)
    assert (photos / "cat.jpg").read_text() == "cat"
    assert file.read_text() == "mine"
    assert listing(damaged) == before


@pytest.mark.parametrize(
    ("verb", "option"), [(("export",), "--parquet"), (("fleet", "ingest"), "-o")]
)
def test_the_remedy_for_a_name_that_is_taken(
    wbscope: Wbscope, tmp_path: Path, verb: tuple[str, ...], option: str
) -> None:
    """It names the option of this verb, and a name that is free."""
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "notes-dataset").write_text("mine, too")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/notes").write_text("mine")
    for name, fix in (
        ("notes", f"{option} notes-dataset-2"),
        ("home", f"{option} home/dataset"),
        ("notes/new", f"{option} new"),
    ):
        done = wbscope.run(*verb, RUN, option, name, cwd=tmp_path)
        assert done.returncode == (5 if "/" in name else 2), done.stderr
        assert done.stderr.splitlines()[-1] == f"  fix: {fix}"


def test_the_remedy_for_a_key_replaces_no_file(wbscope: Wbscope, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("mine\n")
    (tmp_path / "names.key").write_text("mine\n")
    for given, new in (
        ("bad.toml", "names-2.key"),
        (".", "names-2.key"),
        ("none/x.key", "names-2.key"),
        ("my key", "'my key'"),
    ):
        words = ("fleet", "ingest", str(RUN), "-o", "ds", "--redact", given)
        done = wbscope.run(*words, cwd=tmp_path)
        assert done.returncode == 3
        assert done.stderr.splitlines()[-1] == (
            f"  fix: head -c 32 /dev/urandom > {new} && chmod 600 {new}    # then --redact {new}"
        )
    assert (tmp_path / "bad.toml").read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.toml", "names.key"]


def test_full_disk(wbscope: Wbscope, whole: Path) -> None:
    with memory_disk("size=300k") as disk:
        full = wbscope.run("fleet", "ingest", RUN, "-o", disk / "dataset")
        assert full.returncode == 5, full.stderr
        assert "cannot-write" in full.stderr
        assert listing(disk / "dataset") == {}
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        assert ingest(wbscope, disk / "dataset", RUN)["added"] == 1
        assert listing(disk / "dataset") == listing(whole)


def test_versions(wbscope: Wbscope, whole: Path, tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    shutil.copytree(whole, dataset)
    (path,) = (dataset / "stalls").rglob("*.parquet")
    older = pyarrow.parquet.ParquetFile(path).read().drop_columns(["holder_bdi"])
    pyarrow.parquet.write_table(older, path)
    ask = ("SELECT count(*) AS n, count(holder_bdi) AS known FROM stalls", "--json")
    told = wbscope.run("fleet", "sql", dataset, *ask)
    (row,) = json.loads(told.stdout)["rows"]
    assert (row["n"], row["known"]) == (len(older), 0)
    (manifest,) = (dataset / "_manifest").iterdir()
    manifest.write_text(manifest.read_text().replace('"fleet_schema": 1', '"fleet_schema": 2'))
    refused = wbscope.run("fleet", "sql", dataset, *ask)
    assert refused.returncode == 3
    assert "dataset-version" in refused.stderr


def test_a_name_that_is_not_there(wbscope: Wbscope, tmp_path: Path) -> None:
    """A slip of the pen is no bad run: nothing is begun."""
    dataset = tmp_path / "dataset"
    done = wbscope.run("fleet", "ingest", RUN, "no-such-run", "-o", dataset)
    assert done.returncode == 3
    check_error(done.stderr, "no-such-file", "no-such-run")
    assert not dataset.exists()


def test_folders_that_are_thousands_deep(tmp_path: Path) -> None:
    """Runs are found in the order of names, without a call in a call for each folder."""
    below = tmp_path.joinpath("b", *["d"] * 300)
    below.mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.dat").touch()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        assert list(sources_in(str(tmp_path))) == [str(tmp_path / "a" / "x.dat"), str(below)]
    finally:
        sys.setrecursionlimit(before)
