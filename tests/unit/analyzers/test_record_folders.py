# SPDX-License-Identifier: Apache-2.0
"""The folder of a run: what it may replace, and that no moment is there at which one is lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.faults import snapshot
from wbscope.base.errors import SetupError, UsageError
from wbscope.base.held_folder import HeldFolder
from wbscope.record import folders
from wbscope.record.finish import recover_folder
from wbscope.record.folders import (
    is_replaceable,
    make_private,
    private_folder,
    publish,
    published,
    remove_leftovers,
    remove_unused,
    take_name,
    target_of,
)
from wbscope.record.register import Plan

_NAME = "wbscope-999999999-{}"  # a pid that nobody has


@pytest.fixture(autouse=True)
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WBSCOPE_RUN_DIR", str(tmp_path / "register"))


def _run(folder: Path, content: str, **more: object) -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"schema": "wbscope.record/1"} | more))
    (folder / "trace.dat").write_text(content)
    return folder


def _private(target: Path, content: str, force: bool = False) -> Plan:
    """All of a run but its name."""
    instance = _NAME.format("aaaaaaaa")
    folder = _run(private_folder(target, instance), content)
    plan = Plan(
        str(folder), str(target), "/t", instance, "tracefs", "p", (), "boot", 1, 1.0, force=force
    )
    (folder / ".plan").write_text(plan.to_json())
    (folder / ".head").write_text("not a part of a run")
    return plan


def _publish(plan: Plan) -> Path:
    with HeldFolder(Path(plan.folder)) as held:
        return publish(plan, held)


def _runs(folder: Path) -> dict[str, str]:
    """Every run in a folder, also those that are hidden."""
    return {path.parent.name: path.read_text() for path in folder.glob("*/trace.dat")}


@pytest.mark.parametrize("length", [150, 255])
def test_a_long_name(tmp_path: Path, length: int) -> None:
    target = tmp_path / ("x" * length)
    assert target_of(target, False) == target
    left = private_folder(target, _NAME.format("bbbbbbbb"))
    left.mkdir()
    remove_leftovers(target)
    assert not left.exists()
    for content in ("first", "second"):
        assert _publish(_private(target, content, force=True)) == target
        assert (target / "trace.dat").read_text() == content
    assert _runs(tmp_path) == {target.name: "second"}


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="File name too long"):
        target_of(tmp_path / ("x" * 256), False)


def test_run_is_named_when_it_is_whole(tmp_path: Path) -> None:
    for number in ("", "-2"):
        plan = _private(tmp_path / "run", number)
        assert Plan.from_json(plan.to_json()) == plan
        assert _publish(plan) == tmp_path / f"run{number}"
    assert _runs(tmp_path) == {"run": "", "run-2": "-2"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"trace.dat", "meta.json"}


@pytest.mark.parametrize(
    ("mask", "event", "mode"),
    [
        (0o022, "writeback:writeback_start", 0o755),
        (0o077, "writeback:writeback_start", 0o700),
        (0o022, "syscalls:sys_enter_write", 0o700),
    ],
)
def test_who_may_read_a_run(tmp_path: Path, mask: int, event: str, mode: int) -> None:
    """The umask says it, as docs/record.md tells; what programs write is for the owner alone."""
    folder = _run(tmp_path / "run", "x")
    before = os.umask(mask)
    try:
        make_private(folder, [event])
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == mode


def test_empty_folder_gets_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert _publish(_private(tmp_path / "run", "new")) == tmp_path / "run"
    assert _runs(tmp_path) == {"run": "new"}


def test_older_run_is_replaced_by_a_whole_one(tmp_path: Path) -> None:
    _run(tmp_path / "run", "old")
    assert _publish(_private(tmp_path / "run", "new", force=True)) == tmp_path / "run"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert _runs(tmp_path) == {"run": "new"}


@pytest.mark.parametrize("place", ["/proc", "/sys"])
def test_mount_point_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="is a mount point") as caught:
        target_of(Path(place), force=True)
    assert caught.value.fix == f"output='{place}/run'"


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    with pytest.raises(UsageError, match="is a symbolic link") as caught:
        target_of(tmp_path / "link", force=True)
    assert caught.value.fix == f"output='{tmp_path}/empty'"
    assert target_of(tmp_path / "empty", force=False) == tmp_path / "empty"


def _busy(monkeypatch: pytest.MonkeyPatch, busy: Path, number: int) -> None:
    """As of a mount point: it can neither be renamed nor replaced."""
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if busy in (self, target):
            raise OSError(number, os.strerror(number))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)


@pytest.mark.parametrize("number", [errno.EBUSY, errno.ENOTDIR, errno.ENOTEMPTY])
def test_name_that_was_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Something was mounted there while it was recorded: the run is beside it."""
    (tmp_path / "run").mkdir()
    _busy(monkeypatch, tmp_path / "run", number)
    assert _publish(_private(tmp_path / "run", "new")) == tmp_path / "run-2"
    assert _runs(tmp_path) == {"run-2": "new"}


def test_older_run_that_cannot_be_moved_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(tmp_path / "run", "old")
    _busy(monkeypatch, tmp_path / "run", errno.EXDEV)
    assert _publish(_private(tmp_path / "run", "new", force=True)) == tmp_path / "run-2"
    assert _runs(tmp_path) == {"run": "old", "run-2": "new"}


def _stop_at(call: int, stop: Callable[[], None], patch: Callable[..., None] = setattr) -> None:
    """Of the calls that change names, one is not made."""
    calls = iter(range(10**6))

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **more: object) -> object:
            if next(calls) == call:
                stop()
            return real(*args, **more)

        return wrapper

    for name in ("rename", "unlink", "rmdir"):
        patch(os, name, counted(getattr(os, name)))


@pytest.mark.parametrize("call", range(8))
def test_killed_while_it_gets_its_name(tmp_path: Path, call: int) -> None:
    """The older run is somewhere until the new one has the name, and that can be done again."""
    _run(tmp_path / "run", "old")
    plan = _private(tmp_path / "run", "new", force=True)
    if (child := os.fork()) == 0:
        try:
            _stop_at(call, lambda: os._exit(call + 1))
            _publish(plan)
        finally:
            os._exit(8)  # all of them were made
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == call + 1
    found = _runs(tmp_path)
    assert "new" in found.values()
    assert found.get("run") == "new" or "old" in found.values()
    remove_leftovers(tmp_path / "run")  # what the next recording does
    assert _runs(tmp_path) == found
    run = _publish(plan) if Path(plan.folder).exists() else published(plan)
    assert run == (tmp_path / "run" if call < 7 else None)  # None: it had been done
    assert _runs(tmp_path) == {"run": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"trace.dat", "meta.json"}


def test_reboot_before_it_has_its_name(tmp_path: Path) -> None:
    """No entry tells of it any more, but the folder is all that is needed."""
    plan = _private(tmp_path / "run", "new")
    folder = Path(plan.folder)
    (folder / ".head").unlink()
    (told,) = remove_unused(tmp_path)
    assert told.endswith(f"wbscope record --recover {folder.name}")
    assert recover_folder(folder) == tmp_path / "run"
    assert _runs(tmp_path) == {"run": "new"}


def _put_note(run: Path) -> None:
    (run / "notes.txt").write_text("thesis")


def _put_repository(run: Path) -> None:
    (run / ".git").mkdir()
    (run / ".git/config").write_text("thesis")


def _put_folder(run: Path) -> None:
    """Empty, and named as a file of ours."""
    (run / "uname").mkdir()


def _put_link(run: Path) -> None:
    (run.parent / "thesis").write_text("thesis")
    (run / "uname").symlink_to("../thesis")


def _put_fio_json(run: Path) -> None:
    """record writes one only of a fio that it has run."""
    (run / "fio.json").write_text("{}")


_FOREIGN = {
    "notes.txt": _put_note, ".git/": _put_repository, "uname/": _put_folder, "uname": _put_link,
    "fio.json": _put_fio_json,
}  # fmt: skip


@pytest.mark.parametrize("name", _FOREIGN)
@pytest.mark.parametrize("force", [False, True])
def test_run_with_the_files_of_a_person(tmp_path: Path, name: str, force: bool) -> None:
    run = _run(tmp_path / "run", "old", command=["dd"])
    _FOREIGN[name](run)
    before = snapshot(tmp_path)
    with pytest.raises(UsageError, match=r"other files in it \(1\)") as caught:
        target_of(run, force)
    assert caught.value.have == name
    assert caught.value.fix == f"output='{tmp_path}/run-2'"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", _FOREIGN)
def test_what_a_person_puts_there_while_it_is_recorded(tmp_path: Path, name: str) -> None:
    run = _run(tmp_path / "run", "old", command=["dd"])
    plan = _private(run, "new", force=True)
    assert target_of(run, force=True) == run
    _FOREIGN[name](run)
    before = snapshot(run)
    assert _publish(plan) == tmp_path / "run-2"
    assert snapshot(run) == before


def test_what_a_person_puts_there_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a folder that was open when the run was put aside."""
    run = _run(tmp_path / "run", "old")
    new = _run(tmp_path / "new", "new")
    real = folders._renamed

    def late(folder: Path, target: Path) -> Path:
        _put_note(folders._aside(folder))
        return real(folder, target)

    monkeypatch.setattr(folders, "_renamed", late)
    assert take_name(new, run, replace=True) == run
    assert _runs(tmp_path) == {"run": "new", "new.old": "old"}
    assert (tmp_path / "new.old/notes.txt").read_text() == "thesis"


@pytest.mark.parametrize(
    ("command", "backend", "ours"),
    [
        (["fio", "job.fio"], "tracefs", True),
        (["fio", "--output=x", "--output-format=json", "job.fio"], "trace-cmd", True),
        (["fio", "--output-format=terse", "job.fio"], "tracefs", False),
        (["fio", "job.fio"], "remote script", False),
        (["./fio.sh"], "tracefs", False),
        (None, "tracefs", False),
    ],
)
def test_whose_fio_json_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: object, backend: str, ours: bool
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    run = _run(tmp_path / "run", "old", command=command, backend=backend)
    _put_fio_json(run)
    assert is_replaceable(run) == ours


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_interrupted_while_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the two renames: the older run has its name again."""
    _run(tmp_path / "run", "old")
    _run(tmp_path / "new", "new")
    _stop_at(1, _interrupt, monkeypatch.setattr)
    with pytest.raises(KeyboardInterrupt):
        take_name(tmp_path / "new", tmp_path / "run", replace=True)
    assert _runs(tmp_path) == {"run": "old", "new": "new"}


def test_without_force_nothing_is_replaced(tmp_path: Path) -> None:
    """A run that was made there while this one was recorded."""
    _run(tmp_path / "run", "old")
    _run(tmp_path / "new", "new")
    assert take_name(tmp_path / "new", tmp_path / "run", replace=False) == tmp_path / "run-2"
    assert _runs(tmp_path) == {"run": "old", "run-2": "new"}


@pytest.mark.parametrize("file", [".head", "trace.dat", "meta.json"])
def test_leftovers_of_the_dead(tmp_path: Path, file: str) -> None:
    """What holds a part of a recording stays, and so does what is not wbscope's."""
    target = tmp_path / "run"
    dead, whole = (private_folder(target, _NAME.format(4 * part)) for part in ("aa", "bb"))
    others = private_folder(target, "wbscope-mine")
    for folder in (dead, whole, others):
        folder.mkdir()
    (whole / file).touch()
    remove_leftovers(target)
    assert {path.name for path in tmp_path.iterdir()} == {whole.name, others.name}
    (told,) = remove_unused(tmp_path)
    assert f"wbscope record --recover {whole.name}" in told
    assert whole.exists()


def test_names_of_wbscope() -> None:
    """Only what record, doctor and the script make, and of a process that is gone."""
    for kind in ("0123abcd", "doctor", "remote"):
        assert folders.is_orphan(f"wbscope-999999999-{kind}")
        assert not folders.is_orphan(f"wbscope-{os.getpid()}-{kind}")
    for name in (
        "wbscope-mine",
        "wbscope-bench-999999999",
        "wbscope-999999999",
        "wbscope-999999999-x",
    ):
        assert not folders.is_orphan(name)


@pytest.mark.parametrize("text", ["{}", '{"schema": "vite/1"}', "[]", "not JSON", "\0"])
def test_folder_of_another_program_is_not_replaced(tmp_path: Path, text: str) -> None:
    """meta.json is a common name: the folder is a run only when record wrote it."""
    (tmp_path / "meta.json").write_text(text)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is no run folder"):
        target_of(tmp_path, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["meta.json", "thesis.txt"]
