# SPDX-License-Identifier: Apache-2.0
"""What a page has inside it instead of loading it: scripts, styles, and the policy that says so."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["asset", "json_for_script", "policy"]

_FOLDER = Path(__file__).with_name("assets")
# What could end a script or begin a comment in it.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def asset(name: str) -> str:
    """The text of a file that goes into pages."""
    return (_FOLDER / name).read_text(encoding="utf-8").rstrip("\n")


def json_for_script(content: Any) -> str:
    """JSON that no HTML parser takes for anything else, whatever the texts in it."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.translate(_ESCAPES)


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """A Content-Security-Policy for these inline texts: nothing else runs, nothing is loaded."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_source, scripts))}",
            f"style-src {' '.join(map(_source, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
