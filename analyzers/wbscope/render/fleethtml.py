# SPDX-License-Identifier: Apache-2.0
"""The report over a dataset as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wbscope.base.result import Notice, Result
from wbscope.base.version import __version__
from wbscope.render.fleetreportpage import fleet_title, head_text, problem_texts
from wbscope.render.htmltable import MOST_ROWS, meanings_of, table_html
from wbscope.render.messages import warning_text
from wbscope.render.pageassets import asset, policy
from wbscope.render.printable import printable

__all__ = ["fleet_html"]

_HEAD = "overview"


def fleet_html(
    dataset: str,
    sections: Mapping[str, Result],
    titles: Mapping[str, str],
    warnings: Sequence[Notice],
) -> str:
    """The page: what is wrong, then the tables. The same answers give the same bytes."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = asset("report.css")
    head = sections[_HEAD].records()[0]
    return environment.get_template("fleet.html.j2").render(
        title=printable(f"{Path(dataset).name}: {fleet_title(head)}"),
        head=printable(head_text(head)),
        policy=policy((), [style]),
        style=style,
        doubts=[printable(warning_text(notice)) for notice in warnings],
        problems=[
            (printable(told), printable(worst), advice and printable(advice))
            for told, worst, advice in problem_texts(sections)
        ],
        tables=[
            {
                "name": name,
                "title": titles[name],
                "html": table_html(result, titles[name]),
                "hidden": max(0, len(result) - MOST_ROWS),
                "meanings": meanings_of(result),
            }
            for name, result in sections.items()
            if name != _HEAD and result.rows
        ],
        version=__version__,
    )
