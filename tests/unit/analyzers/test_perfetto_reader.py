# SPDX-License-Identifier: Apache-2.0
"""Names of fields that are no text: the reader comes to an end."""

from __future__ import annotations

from typing import Any

from wbscope.perfetto.reader import Reader, _Kind


class _Engine:
    """Records of one event; a name that is no text is never the one that is asked for."""

    def __init__(self, records: list[list[str]]) -> None:
        self.records = records
        self.asked = 0

    def query(self, sql: str) -> list[dict[str, Any]]:
        self.asked += 1
        assert self.asked < 20, "asks for ever"
        if "DISTINCT" in sql:
            keys = {key for record in self.records for key in record}
            return [{"key": key.replace("\xff", "\ufffd")} for key in sorted(keys)]
        if "LIMIT 1" in sql:
            known = sql.partition("NOT IN (")[2].partition(")")[0].split(", ")
            for number, record in enumerate(self.records):
                if any(f"'{key}'" not in known for key in record):
                    return [{"id": number}]
            return []
        number = int(sql.partition("a.arg_set_id = ")[2].split()[0])
        return [{"key": key.replace("\xff", "\ufffd")} for key in self.records[number]]


def _keys(records: list[list[str]]) -> tuple[list[str], int]:
    reader = Reader.__new__(Reader)
    reader._engine = _Engine(records)  # type: ignore[assignment]
    reader._odd_keys = 0
    return reader._keys(_Kind("event", "system", 1, True)), reader._odd_keys


def test_fields_of_all_records_in_the_order_of_the_first() -> None:
    assert _keys([["b", "a"], ["b"], ["a", "c"]]) == (["b", "a", "c"], 0)


def test_a_name_that_is_no_text_is_counted_and_the_others_are_there() -> None:
    assert _keys([["b", "p\xffd"], ["a"]]) == (["b", "p\ufffdd", "a"], 1)
