# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documentation, made small: they are installed with its pages."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

__all__ = ["COLOURS", "shrink"]

COLOURS = 128  # nobody sees the difference, and files are a third as large


def shrink(path: Path) -> None:
    """The same picture with fewer colours."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(
            COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
    small.save(path, optimize=True)
