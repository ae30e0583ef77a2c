# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas (draft 2020-12) of the documents that --json prints, made of render/schemadocs.py.

There a type is written short: "int", "num", "str", "bool", "any", "cell" (a value of a table), each
with "|null" where it may be null; "=a|b" for one of these words; "$name" for a part; [type] for a
list; {"*": type} for an object with any names; {name: type} for one with these, where a name
that ends with "?" may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from wbscope.base.errors import UsageError
from wbscope.render.schemadocs import DOCUMENTS, Document
from wbscope.render.schemaparts import PARTS, Shape

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"int": "integer", "num": "number", "str": "string", "bool": "boolean", "null": "null"}


def schema_of(name: str, *, strict: bool = False) -> dict[str, Any]:
    """The schema of a document, or of all that a verb prints.

    A document may get more members without a new number behind its name, so others are allowed;
    `strict` refuses them.

    Raises: UsageError for a name that is neither.
    """
    found = documents_of(name)
    shapes = [_schema({"schema": f"=wbscope.{one.name}/1", **one.shape}, strict) for one in found]
    told: dict[str, Any] = {
        "$schema": _DIALECT,
        "title": f"wbscope {name}" if len(found) > 1 else f"wbscope.{found[0].name}/1",
    }
    if len(found) == 1:
        told |= {"description": found[0].about, **shapes[0]}
    else:
        told["oneOf"] = [
            {"title": f"wbscope.{one.name}/1", "description": one.about, **shape}
            for one, shape in zip(found, shapes, strict=True)
        ]
    parts = _used(shapes, strict)
    return told | ({"$defs": parts} if parts else {})


def documents_of(name: str) -> list[Document]:
    """What a verb prints with --json, or the one document of this name."""
    found = [one for one in DOCUMENTS if one.verb == name]
    found = found or [one for one in DOCUMENTS if one.verb.partition(" ")[0] == name]
    found = found or [one for one in DOCUMENTS if one.name == name]
    if not found:
        verbs = sorted({one.verb for one in DOCUMENTS if one.verb})
        raise UsageError(
            "unknown-document",
            name,
            "is no verb that has --json, and no document",
            have=", ".join(verbs),
            fix="wbscope schema    # lists them",
        )
    return found


def _schema(shape: Shape, strict: bool) -> dict[str, Any]:
    if isinstance(shape, str):
        return _simple(shape)
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0], strict)}
    if set(shape) == {"*"}:
        return {"type": "object", "additionalProperties": _schema(shape["*"], strict)}
    told: dict[str, Any] = {
        "type": "object",
        "properties": {name.rstrip("?"): _schema(one, strict) for name, one in shape.items()},
        "required": [name for name in shape if not name.endswith("?")],
    }
    return told | ({"additionalProperties": False} if strict else {})


def _simple(shape: str) -> dict[str, Any]:
    words, may_be_null = re.subn(r"\|null$", "", shape)
    if words.startswith("="):
        values: list[str | None] = list(words[1:].split("|"))
        return {"enum": [*values, None]} if may_be_null else _one_of(values)
    if words.startswith("$"):
        part = {"$ref": f"#/$defs/{words[1:]}"}
        return {"anyOf": [part, {"type": "null"}]} if may_be_null else part
    if words == "any":
        return {}
    types = [_TYPES[word] for word in words.split("|")] + ["null"] * may_be_null
    return {"type": types[0] if len(types) == 1 else types}


def _one_of(values: list[str | None]) -> dict[str, Any]:
    return {"const": values[0]} if len(values) == 1 else {"enum": values}


def _used(schemas: Iterable[dict[str, Any]], strict: bool) -> dict[str, Any]:
    """The parts that are named, and those that these name."""
    found: dict[str, Any] = {}
    waiting = [name for schema in schemas for name in _named(schema)]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            about, shape = PARTS[name]
            found[name] = {"description": about, **_schema(shape, strict)}
            waiting += _named(found[name])
    return found


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.rpartition("/")[2]
            else:
                yield from _named(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _named(one)
