# SPDX-License-Identifier: Apache-2.0
"""A verdict of `gate` and `fleet gate`: in the form that was asked for, and as exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from wbscope.base.outputs import write_whole
from wbscope.cli.exitcodes import Codes, gate_code
from wbscope.cli.formats import Format
from wbscope.cli.output import drop_output, note, page_width, write_stdout

if TYPE_CHECKING:
    from wbscope.compare.gate import GateResult
    from wbscope.compare.selfcheck import SelfCheck

__all__ = ["tell_verdict", "verdict_text"]


def verdict_text(result: GateResult, checked: SelfCheck | None, form: Format, faces: bool) -> str:
    """As text, JSON or Markdown; `checked` is that of --self-check."""
    if form.as_json:
        from wbscope.render.comparejson import gate_json

        return gate_json(result, checked)
    if form.as_markdown:
        from wbscope.render.gatepage import gate_markdown

        return gate_markdown(result, faces)
    from wbscope.render.gatepage import gate_text
    from wbscope.render.table import PAGE_WIDTH

    return gate_text(result, PAGE_WIDTH if form.file is not None else page_width(), faces)


def tell_verdict(result: GateResult, text: str, form: Format, codes: Codes) -> None:
    """Raises: typer.Exit with the exit code, unless it passed."""
    if form.file is not None:
        write_whole(form.file, text, force=form.force)
        if not form.as_json:
            note(f"wrote {form.file}: {result.status}")
    else:
        try:
            write_stdout(text, colours=True)
        except BrokenPipeError:
            drop_output(sys.stdout)  # the exit code is the answer
    if (code := gate_code(result, codes)) != 0:
        raise typer.Exit(code)
