# SPDX-License-Identifier: Apache-2.0
"""The short link that `wbscope open` prints, followed as a browser's window follows it."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

__all__ = ["long_link"]


def long_link(short: str) -> str:
    """Where a short link leads."""
    parts = urlsplit(short)
    assert parts.hostname == "127.0.0.1", short
    assert len(short) < 60, short
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request("GET", parts.path)
    answer = connection.getresponse()
    assert answer.status == 302, (answer.status, answer.read())
    link = answer.getheader("Location")
    connection.close()
    assert link is not None
    return link
