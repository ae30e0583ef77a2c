# SPDX-License-Identifier: Apache-2.0
"""What SARIF 2.1.0 asks of the objects that wbscope writes, as a schema of our own.

From the text of the standard: for each object its clause, what it must have, and what it
may have of what we use.  Anything else is a mistake: no object but a property bag has names
of its own (3.3.1, 3.8).  The standard's whole schema is no part of this checkout.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SARIF"]

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "minLength": 1}
_WHOLE: Schema = {"type": "integer"}


def _object(must: Schema, may: Schema | None = None, **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": {**must, **(may or {})},
        "required": list(must),
        "additionalProperties": False,
        **more,
    }


def _array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _one_of(*words: str) -> Schema:
    return {"enum": list(words)}


# 3.8: any names; tags are distinct words (3.8.2).
_BAG: Schema = {"type": "object", "properties": {"tags": _array(_TEXT, uniqueItems=True)}}
# 3.11: wbscope writes no markdown and no arguments.
_MESSAGE = _object({"text": _TEXT})
# 3.12
_LONG_MESSAGE = _object({"text": _TEXT})
# 3.9
_LEVEL = _one_of("none", "note", "warning", "error")
# 3.4.3: a valid URI reference; 3.30.5: lines count from 1.
_PLACE = _object(
    {"artifactLocation": _object({"uri": {**_TEXT, "format": "uri-reference"}})},
    {"region": _object({"startLine": {**_WHOLE, "minimum": 1}})},
)
# 3.27; 3.27.10: only what failed has a level.
_RESULT = _object(
    {"message": _MESSAGE, "ruleId": _TEXT, "ruleIndex": {**_WHOLE, "minimum": 0}},
    {
        "kind": _one_of("pass", "open", "informational", "notApplicable", "review", "fail"),
        "level": _LEVEL,
        "locations": _array(_object({"physicalLocation": _PLACE})),
        "partialFingerprints": {"type": "object", "additionalProperties": _TEXT},
        "properties": _BAG,
    },
    anyOf=[
        {"properties": {"kind": {"const": "fail"}}},
        {"properties": {"level": {"const": "none"}}, "required": ["level"]},
    ],
)
# 3.49
_RULE = _object(
    {"id": _TEXT},
    {
        "shortDescription": _LONG_MESSAGE,
        "help": _LONG_MESSAGE,
        "defaultConfiguration": _object({}, {"level": _LEVEL}),
        "properties": _BAG,
    },
)
# 3.58
_NOTIFICATION = _object(
    {"message": _MESSAGE}, {"level": _LEVEL, "descriptor": _object({"id": _TEXT})}
)
# 3.20
_INVOCATION = _object(
    {"executionSuccessful": {"type": "boolean"}},
    {
        "exitCode": _WHOLE,
        "exitCodeDescription": _TEXT,
        "toolExecutionNotifications": _array(_NOTIFICATION),
    },
)
# 3.14, 3.18 tool, 3.19 toolComponent, 3.17 runAutomationDetails
_RUN = _object(
    {
        "tool": _object(
            {
                "driver": _object(
                    {"name": _TEXT},
                    {"version": _TEXT, "rules": _array(_RULE, uniqueItems=True)},
                )
            }
        )
    },
    {
        "automationDetails": _object({"id": _TEXT}),
        "columnKind": _one_of("utf16CodeUnits", "unicodeCodePoints"),
        "invocations": _array(_INVOCATION),
        "results": _array(_RESULT),
    },
)
# 3.13
SARIF: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    **_object(
        {"version": {"const": "2.1.0"}, "runs": _array(_RUN)},
        {"$schema": {**_TEXT, "format": "uri"}},
    ),
}
