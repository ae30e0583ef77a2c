# SPDX-License-Identifier: Apache-2.0
"""Documents of --json against the schemas of the package."""

from __future__ import annotations

from typing import Any

import jsonschema
from wbscope.render.schemas import schema_of

__all__ = ["faults"]


def faults(document: dict[str, Any]) -> list[str]:
    """Where the document is not as its schema says; members that it does not name are faults, too.

    The name is the document's own: wbscope.NAME/1.
    """
    name = document["schema"].removeprefix("wbscope.").removesuffix("/1")
    schema = schema_of(name, strict=True)
    if "oneOf" in schema:  # a verb is called so, too
        (one,) = [one for one in schema.pop("oneOf") if one["title"] == document["schema"]]
        schema |= one
    checked = jsonschema.Draft202012Validator(schema)
    return [f"{one.json_path}: {one.message:.200}" for one in checked.iter_errors(document)]
