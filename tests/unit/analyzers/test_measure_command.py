# SPDX-License-Identifier: Apache-2.0
"""meta.json of the recorder as measurements: numbers, refusals, files of others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wbscope.base.errors import InputError
from wbscope.measure.files import parse_command

_META: dict[str, Any] = {
    "schema": "wbscope.record/1",
    "command": ["dd"],
    "command_duration_ns": 1_500_000_000,
    "command_user_s": 0.25,
    "command_system_s": 1.125,
    "command_max_rss_bytes": 2048 * 1024,
    "command_major_faults_count": 3,
    "command_exit_code": 0,
    "sync_duration_ns": 7,
}


def _values(**more: Any) -> dict[str, float | None]:
    scalars = parse_command(json.dumps(_META | more))
    return {name: value for name, (_, value) in scalars.items()}


def test_numbers_and_units() -> None:
    assert _values() == {
        "command.duration_ns": 1_500_000_000,
        "command.user_ns": 250_000_000,
        "command.sys_ns": 1_125_000_000,
        "command.max_rss_bytes": 2 << 20,
        "command.major_faults_count": 3,
        "command.sync_ns": 7,
    }


def test_what_is_not_known_is_no_metric() -> None:
    assert "command.sync_ns" not in _values(sync_duration_ns=None)
    assert _values(command=[]) == {}


def test_anybody_elses_file() -> None:
    assert not parse_command('{"name": "x", "command": "y", "command_exit_code": 1}')
    assert not parse_command("[1]")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"command_duration_ns": -1}, "command_duration_ns: found -1"),
        ({"command_user_s": "1"}, "command_user_s: found '1'"),
        ({"command_user_s": True}, "command_user_s: found True"),
    ],
)
def test_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        _values(**more)


def test_damaged() -> None:
    with pytest.raises(InputError, match="is no JSON"):
        parse_command('{"schema": "wbscope.rec')


def test_nested_without_end() -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        parse_command('{"schema": ' + "[" * 100_000)
