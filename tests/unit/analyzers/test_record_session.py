# SPDX-License-Identifier: Apache-2.0
"""The end of a recording, when the command, the recorder or the user ends first."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import Argument, Phrase, SetupError
from wbscope.base.held_folder import HeldFolder
from wbscope.base.result import Notice
from wbscope.cli.output import error_in_options
from wbscope.record.finish import Recovered
from wbscope.record.recorder import Recording, Request, Session, _started
from wbscope.record.register import Plan
from wbscope.record.supervisor import raised, told_of
from wbscope.record.workload import Interrupts, Workload, descendants, end_descendants

_SLEEP = str(10 * int(GUARD_SECONDS))  # longer than any test waits
_CLOCK = 7
_FAILED = {"slug": "trace-cmd-failed", "subject": "s", "message": "m", "have": None, "fix": "f"}
# It says that it has begun, and hears nothing but SIGKILL.
_DEAF = (
    "import signal, sys, time\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
    "open(sys.argv[1], 'w').close()\n"
    "time.sleep(float(sys.argv[2]))"
)


class _Events(queue.Queue[Any]):
    """Nobody waits for ever: that would be the end of the test.

    when_heard  is called when all that was said has been taken
    """

    when_heard: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self) -> None:
        super().__init__()
        self._deadline = time.monotonic() + GUARD_SECONDS

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert time.monotonic() < self._deadline
        if self.empty():
            self.when_heard()
        return super().get(timeout=GUARD_SECONDS if timeout is None else timeout)


class _Link:
    """A recorder that says what it is given to say."""

    def __init__(
        self, events: _Events, put_back: Callable[[], Recovered], held: HeldFolder
    ) -> None:
        self.pid = 0
        self.held = held
        self.stopped_with: dict[str, Any] | None = None
        self._events = events
        self.put_back = put_back

    def stop(self, _ended: str, facts: dict[str, Any]) -> None:
        self.stopped_with = dict(facts)

    def close(self) -> None:
        pass


class _Record:
    """A session whose recorder has said all that it will say."""

    def __init__(self, tmp_path: Path) -> None:
        self.run_folder = tmp_path / "run"
        self.run_folder.mkdir()
        (self.run_folder / "meta.json").write_text('{"ended": "recorder terminated", "lost": null}')
        self.warned: list[Notice] = []
        self.said: list[str] = []
        self.events = _Events()
        self.events.when_heard = (tmp_path / "heard").touch
        # A command that goes on for as long as the recorder has something to say.
        self.waits = ("sh", "-c", f"until [ -e {tmp_path}/heard ]; do sleep 0.02; done; exit 3")
        held = HeldFolder(self.run_folder)
        self.link = _Link(self.events, lambda: Recovered("i", self.run_folder), held)
        self._folder = tmp_path / "private"

    def __call__(self, *told: Any, **request: Any) -> Recording:
        for each in told:
            self.events.put(each)
        asked = Request(**request)
        plan = Plan(
            str(self._folder), str(self.run_folder), "/t", "i", "tracefs", "p", (), "boot", 1, 1.0,
            command=asked.command,
        )  # fmt: skip
        session = Session(asked, plan, self.link, self.events, self.warned.append)  # type: ignore[arg-type]
        return session.run(self.said.append, self.said.append)

    def meta(self) -> Any:
        return json.loads((self.run_folder / "meta.json").read_text())

    def done(self) -> dict[str, Any]:
        return {"done": {"run": str(self.run_folder)}}


@pytest.fixture
def record(tmp_path: Path) -> _Record:
    return _Record(tmp_path)


def test_recorder_that_was_told_to_end(record: _Record) -> None:
    """A plain kill of it: the command goes on, and what it did is in the run."""
    made = record(record.done(), None, command=record.waits)
    assert made.ended == "recorder terminated"
    assert record.link.stopped_with is None
    assert [notice.slug for notice in record.warned] == ["recorder-ended"]
    assert record.meta()["command_exit_code"] == 3
    assert record.meta()["command_duration_ns"] > 0


def test_recorder_that_failed_while_the_command_ran(record: _Record) -> None:
    told = {"slug": "record-failed", "subject": "s", "message": "m", "have": None, "fix": "f"}
    with pytest.raises(SetupError, match="s: m"):
        record({"error": told}, None, command=record.waits)
    assert [notice.slug for notice in record.warned] == ["recorder-ended"]


def test_killed_recorder_whose_disk_is_full(record: _Record, tmp_path: Path) -> None:
    left = Recovered("i", folder=tmp_path / ".run i", reason="No space left on device")
    record.link.put_back = lambda: left
    with pytest.raises(SetupError, match="No space left on device") as caught:
        record(None, command=record.waits)
    remedy = f"wbscope record --recover '{tmp_path}/.run i'"
    assert remedy in str(caught.value.fix)
    assert remedy in str(left)
    assert [notice.slug for notice in record.warned] == ["recorder-killed"]


def test_interrupted_while_it_puts_back(record: _Record) -> None:
    """The run is made first; then the command is ended."""

    def put_back() -> Recovered:
        os.kill(os.getpid(), signal.SIGINT)
        return Recovered("i", record.run_folder)

    record.link.put_back = put_back
    made = record(None, command=("sleep", _SLEEP))
    assert made.interrupted
    assert record.meta()["command_signal"] == signal.SIGINT


def test_put_back_that_fails_ends_the_recording(record: _Record) -> None:
    """It is not waited for a recorder that is dead."""

    def put_back() -> Recovered:
        raise KeyboardInterrupt

    record.link.put_back = put_back
    with pytest.raises(SetupError, match="left nothing to read"):
        record(None, command=("sleep", _SLEEP))


@pytest.mark.parametrize(("duration_ns", "interrupted"), [(10**12, True), (None, False)])
def test_ctrl_c_without_a_command(
    record: _Record, duration_ns: int | None, interrupted: bool
) -> None:
    """It is the usual end where no time is given."""
    record.events.when_heard = lambda: os.kill(os.getpid(), signal.SIGINT)
    record.link.stop = lambda ended, _facts: record.events.put(  # type: ignore[method-assign]
        record.done() if ended == ("interrupted" if interrupted else "complete") else None
    )
    assert record(duration_ns=duration_ns).interrupted == interrupted
    assert record.warned == []
    (headline,) = record.said
    assert headline.endswith(": for 1000 s" if interrupted else ": until Ctrl-C")


def test_command_that_hears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked again, it is killed at once, and so is what it has started."""
    sent = [signal.SIGINT]  # by the user
    waited: list[signal.Signals] = []
    real_kill, real_sleep = os.kill, time.sleep

    def kill(pid: int, number: signal.Signals) -> None:
        sent.append(number)
        real_kill(pid, number)

    def sleep(seconds: float) -> None:
        if sent[-1] != signal.SIGKILL:
            waited.append(sent[-1])
        real_sleep(seconds)

    begun = [tmp_path / name for name in ("child", "command")]
    deaf = f'"$0" -c "$1" {begun[0]} {_SLEEP} & exec "$0" -c "$1" {begun[1]} {_SLEEP}'
    events = _Events()
    with monkeypatch.context() as noted, Interrupts(same_seconds=0.0) as heard:
        workload = Workload(("sh", "-c", deaf, sys.executable, _DEAF), _CLOCK, events)
        wait_until(lambda: all(path.exists() for path in begun) or not workload.lives(), "both")
        assert workload.lives()
        heard.hold()
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        noted.setattr(os, "kill", kill)
        noted.setattr(time, "sleep", sleep)
        workload.end(heard)
        end_descendants(0, heard)
    assert waited == [], "a wait after this signal"
    assert descendants(os.getpid()) == set()
    assert workload.facts["command_signal"] == signal.SIGKILL
    assert events.get() == "ended"


def test_command_that_cannot_be_ended_is_left_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a disk that does not answer: the third Ctrl-C is the last that is needed."""
    workload = Workload(("sleep", _SLEEP), _CLOCK, _Events())
    pid = workload.facts["command_pid"]
    real = os.kill

    def kill(to: int, number: signal.Signals) -> None:
        if to != pid:
            real(to, number)

    with monkeypatch.context() as stuck, Interrupts(same_seconds=0.0) as heard:
        stuck.setattr(os, "kill", kill)
        heard.hold()
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        workload.end(heard)
    assert workload.lives()
    assert workload.facts["command_started_ts_ns"] > 0
    os.kill(pid, signal.SIGKILL)


def test_command_that_the_kernel_has_waited_for() -> None:
    """SIGCHLD is ignored: how it ended is not known, that it ended is."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        events = _Events()
        workload = Workload(("true",), _CLOCK, events)
        assert events.get() == "ended"
        assert not workload.lives()
        assert workload.facts["command_pid"] > 0
        assert "command_exit_code" not in workload.facts
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_error_of_the_recorder_names_options(tmp_path: Path) -> None:
    """As the command line has them; on its way it is JSON."""
    value = Argument("output", tmp_path)
    error = SetupError(
        "slug", Phrase(Argument("sysctl")), "m", have="h", fix=Phrase("or ", value, " instead")
    )
    got = raised(json.loads(json.dumps(told_of(error))))
    assert str(got) == "sysctl: m"
    spoken = error_in_options(got)
    assert spoken.subject == "--sysctl"
    assert (spoken.have, spoken.fix) == ("h", f"or -o {tmp_path} instead")


def test_what_the_recorder_was_refused_is_raised(tmp_path: Path) -> None:
    class Refused(_Link):
        def __init__(self, _plan: Plan, events: _Events) -> None:
            super().__init__(events, lambda: Recovered("i"), HeldFolder(tmp_path))
            events.put({"problem": "first"})
            events.put({"error": _FAILED})

    folder = tmp_path / "private"
    plan = Plan(str(folder), str(tmp_path / "run"), "/t", "i", "tracefs", "p", (), "boot", 1, 1.0)
    warned: list[Notice] = []
    with pytest.raises(SetupError) as caught:
        _started(plan, _Events(), warned.append, Refused)  # type: ignore[arg-type]
    assert caught.value.slug == _FAILED["slug"]
    assert [notice.message for notice in warned] == ["first"]
    assert not folder.exists()
