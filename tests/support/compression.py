# SPDX-License-Identifier: Apache-2.0
"""Compressed bytes for synthetic traces.

No zstd library is needed: a zstd frame may hold uncompressed blocks.
"""

from __future__ import annotations

import zlib
from typing import Literal

__all__ = ["Compression", "compress", "version_text"]

Compression = Literal["none", "zlib", "zstd"]

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_BYTES = 128 * 1024


def version_text(kind: Compression) -> str:
    """The version string that the file header names beside the algorithm."""
    return {"none": "", "zlib": "1.2.13", "zstd": "1.5.4"}[kind]


def compress(kind: Compression, data: bytes) -> bytes:
    """Compress one chunk."""
    if kind == "zlib":
        return zlib.compress(data, 9)
    if kind == "zstd":
        return _zstd_frame(data)
    raise ValueError("a file without compression has no compressed chunks")


def _zstd_frame(data: bytes) -> bytes:
    """A zstd frame (RFC 8878, 3.1.1): raw blocks, and run-length blocks where one byte repeats."""
    # Frame_Content_Size_flag 2 (four bytes), Single_Segment_flag set: no window descriptor
    frame = bytearray(
        _ZSTD_MAGIC.to_bytes(4, "little") + bytes([0xA0]) + len(data).to_bytes(4, "little")
    )
    starts = range(0, max(len(data), 1), _ZSTD_BLOCK_BYTES)
    for start in starts:
        block = data[start : start + _ZSTD_BLOCK_BYTES]
        last = int(start == starts[-1])
        repeats = bool(block) and block == block[:1] * len(block)
        frame += (len(block) << 3 | (2 if repeats else 0) | last).to_bytes(3, "little")
        frame += block[:1] if repeats else block
    return bytes(frame)
