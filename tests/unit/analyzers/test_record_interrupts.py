# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and plain kills: raised once, then counted, and put off where they would do harm."""

from __future__ import annotations

import os
import signal

import pytest
from wbscope.record.workload import Interrupts

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_EACH = 0.0  # seconds: whatever is heard was meant


@pytest.mark.parametrize("number", _NUMBERS)
def test_first_is_raised_and_others_are_counted(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in _NUMBERS]
    with Interrupts(_EACH) as heard:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.count == 3
    assert [signal.getsignal(each) for each in _NUMBERS] == before


def _interrupted_inside(heard: Interrupts, done: list[str]) -> None:
    with heard.held():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("what must not be left half done")


def test_held_is_raised_afterwards() -> None:
    done: list[str] = []
    with Interrupts(_EACH) as heard:
        with pytest.raises(KeyboardInterrupt):
            _interrupted_inside(heard, done)
        with heard.held():
            os.kill(os.getpid(), signal.SIGINT)
        heard.hold()
        assert heard.count == 2
    assert done


def test_held_to_the_end() -> None:
    with Interrupts(_EACH) as heard:
        heard.hold()
        with heard.held():
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard.count == 2


def test_told_by_two_at_once_is_told_once() -> None:
    """timeout(1) tells the process, then its group."""
    with Interrupts(same_seconds=600.0) as heard:
        heard.hold()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard.count == 1


def test_ignored_stays_ignored() -> None:
    """nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts(_EACH) as heard:
            os.kill(os.getpid(), signal.SIGHUP)
            assert heard.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)
