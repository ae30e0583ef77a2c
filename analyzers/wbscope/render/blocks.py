# SPDX-License-Identifier: Apache-2.0
"""What a document says, block by block, and one writer each for text, Markdown and HTML.

A verb makes blocks once: a sentence that is added to them is in every format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from rich.cells import cell_len

from wbscope.base.result import Notice, Result
from wbscope.base.version import __version__
from wbscope.render.text import (
    PAGE_WIDTH,
    fill,
    markdown_text,
    plain,
    printable,
    table_text,
    warning_text,
)

TEXT, MARKDOWN, HTML, JSON, CSV, PARQUET = "text", "markdown", "html", "json", "csv", "parquet"
DOCUMENT = (TEXT, MARKDOWN, HTML, JSON)
WITH_TABLE = (*DOCUMENT, CSV, PARQUET)

_UNDERLINES = {2: "=", 3: "-"}
_SEVERITIES = ("severe", "warning", "note", "ok")


@dataclass(frozen=True)
class Heading:
    """The first of a document has level 1, its sections 2 and 3.

    of       what it is said of
    is_line  text has it in one line, whatever it names
    """

    text: str
    level: int = 2
    of: str = ""
    is_line: bool = False

    @property
    def whole(self) -> str:
        """Both."""
        return f"{self.of}: {self.text}" if self.of else self.text


@dataclass(frozen=True)
class Text:
    """A paragraph.

    lead      what hangs in front of it: a severity, "to do:"; text has it as wide as it is written
    indent    columns of text in front of both
    is_doubt  it says why the numbers around it may be wrong
    is_aside  it says how to read them
    apart     text has an empty line in front
    command   what somebody types, behind the text
    """

    text: str
    lead: str = ""
    command: str = ""
    indent: int = 0
    is_doubt: bool = False
    is_aside: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Commands:
    """Lines that somebody types or writes into a file: never folded."""

    lines: tuple[str, ...]
    lead: str = ""
    indent: int = 0


@dataclass(frozen=True)
class Table:
    """Rows of a result; its warnings are told elsewhere.

    title   what HTML calls it for those who cannot see it
    layout  of text. stacked: each row is a paragraph, its keys on a line, the other cells below;
            lean: a mark, a name and numbers, the name above them where the page is too narrow
    below   the column that a lean row has on a line of its own
    pieces  text has no more blocks of columns, where the page is too narrow for all
    most    rows that HTML has
    apart   text has an empty line in front
    """

    result: Result
    title: str = ""
    layout: Literal["", "stacked", "lean"] = ""
    below: str = ""
    pieces: int | None = None
    most: int = 100
    apart: bool = True


@dataclass(frozen=True)
class Figure:
    """A picture, which only HTML has, and what it shows."""

    svg: str
    told: str


Block = Heading | Text | Items | Commands | Table | Figure


@dataclass(frozen=True)
class Document:
    """What a verb has to say.

    blocks    for people, in their order
    json      the document of --json; None where there is none
    table     what CSV and Parquet hold, with raw numbers; None where it is no table
    text      where text is laid out in another way than block by block, by the width
    html      where it is a page of its own
    warnings  what CSV and Parquet have no place for
    """

    blocks: Callable[[], Iterable[Block]]
    json: Callable[[], str] | None = None
    table: Callable[[], Result] | None = None
    text: Callable[[int], str] | None = None
    html: Callable[[], str] | None = None
    warnings: Sequence[Notice] = ()


def written(made: Document, form: str, width: int = PAGE_WIDTH) -> str:
    """As text, Markdown, HTML or JSON."""
    if form == JSON:
        assert made.json is not None
        return made.json()
    if form == TEXT and made.text is not None:
        return made.text(width)
    if form == HTML and made.html is not None:
        return made.html()
    blocks = list(made.blocks())
    if form == TEXT:
        return blocks_text(blocks, width)
    return blocks_html(blocks) if form == HTML else blocks_markdown(blocks)


def doubts(warnings: Iterable[Notice]) -> Iterator[Text]:
    """What makes numbers doubtful, each once."""
    for notice in dict.fromkeys(warnings):
        yield Text(warning_text(notice), is_doubt=True)


def blocks_text(blocks: Iterable[Block], width: int = PAGE_WIDTH) -> str:
    """Lines of at most this width, unless a word or a table is wider."""
    lines: list[str] = []
    for block in blocks:
        lines += block_lines(block, width, is_first=not lines)
    return "\n".join(lines) + "\n"


def block_lines(block: Block, width: int, *, is_first: bool = False) -> list[str]:
    """The lines of one block, with the empty one in front of it."""
    match block:
        case Heading(text, 1, of):
            if block.is_line:
                return [printable(text)]
            if of and len(block.whole) > width:
                return [printable(f"{of}:"), *fill(text, width)]
            return fill(block.whole, width)
        case Heading(text, level):
            gap, line = [] if is_first else [""], printable(text)
            return [*gap, line, _UNDERLINES[level] * len(line)]
        case Text(text, lead, command, indent):
            lines = fill(text, width - indent, printable(lead), command)
            gap = [""] if block.apart and not is_first else []
            return [*gap, *(f"{' ' * indent}{line}" for line in lines)]
        case Items(texts):
            return [line for text in texts for line in fill(text, width, "* ")]
        case Commands(lines=typed, lead=lead, indent=indent):
            pads = [lead, *[" " * len(lead)] * (len(typed) - 1)]
            return [
                printable(f"{' ' * indent}{pad}{line}")
                for pad, line in zip(pads, typed, strict=False)
            ]
        case Table(result, layout="stacked"):
            return [line for row in _stacked(result) for line in _row_lines(*row, width)]
        case Table(result):
            gap = [""] if block.apart and not is_first else []
            if block.layout == "lean":
                return [*gap, *_lean(block, width)]
            return [*gap, *_rows(result, width, block.pieces)]
        case Figure():
            return []


def _rows(result: Result, width: int, pieces: int | None) -> list[str]:
    return table_text(result, width, whole=True, blocks=pieces).splitlines()


def _stacked(result: Result) -> Iterator[tuple[str, list[str]]]:
    """The keys of each row as one line, and the lines of its other cells."""
    count = len(result.keys)
    for row in result.rows:
        yield (
            " ".join(filter(None, row[:count])),
            [line for cell in row[count:] for line in cell.split("\n") if line],
        )


def _row_lines(head: str, rest: list[str], width: int) -> list[str]:
    told = [line for text in rest for line in fill(text, width, "    ")]
    return [*fill(head, width), *told]


_GAP = "  "
_LEAN_INDENT = "    "


def _lean(table: Table, width: int) -> list[str]:
    """The second column is on the left, the other ones on the right; its heading says nothing."""
    names = [name for name in table.result.columns if not name or name != table.below]
    shown = table.result.only(names)
    heads = ["", "", *map(printable, names[2:])]
    rows = [heads, *([printable(cell) for cell in row] for row in shown.rows)]
    sizes = [max(cell_len(row[place]) for row in rows) for place in range(len(names))]
    used = [place for place, size in enumerate(sizes) if size]
    fitting = (gap for gap in (_GAP, " ") if sum(sizes) + len(gap) * (len(used) - 1) <= width)
    gap = next(fitting, None)
    numbers = [place for place in used if place > 1]
    lines = [
        _lean_line(heads, used, sizes, gap)
        if gap
        else _LEAN_INDENT + _lean_line(heads, numbers, sizes, _GAP)
    ]
    notes = table.result.only([table.below]).rows if table.below else [("",)] * len(shown.rows)
    for row, (note,) in zip(rows[1:], notes, strict=True):
        if gap:
            lines.append(_lean_line(row, used, sizes, gap))
        else:
            lines.append(f"{row[0]} {row[1]}".strip())
            lines.append(_LEAN_INDENT + _lean_line(row, numbers, sizes, _GAP))
        if note:
            lines.append(_cut(f"{_LEAN_INDENT}{table.below}: {printable(note)}", width))
    return lines


def _lean_line(row: Sequence[str], used: Sequence[int], sizes: Sequence[int], gap: str) -> str:
    padded = []
    for place in used:
        space = " " * (sizes[place] - cell_len(row[place]))
        padded.append(row[place] + space if place == 1 else space + row[place])
    return gap.join(padded).rstrip()


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 4].rpartition(',')[0]}, ..."


def blocks_markdown(blocks: Iterable[Block]) -> str:
    """To paste into an issue or a mail."""
    parts: list[str] = []
    was_doubt = False
    for block in blocks:
        is_doubt, follows = isinstance(block, Text) and block.is_doubt, was_doubt
        was_doubt = is_doubt
        match block:
            case Heading(level=level):
                parts.append(f"{'#' * level} {_plain(block.text)}")
                parts += [f"`{printable(block.of)}`"] if block.of else []
            case Text(text, lead, command):
                bold = f"**{_plain(lead.strip())}** " if lead.strip() else ""
                typed = f" `{printable(command)}`" if command else ""
                told = f"{bold}{_plain(text)}{typed}"
                if is_doubt and follows:
                    parts[-1] += f"\n>\n> {told}"
                else:
                    parts.append(f"> {told}" if is_doubt else told)
            case Items(texts):
                parts.append("\n".join(f"- {_plain(text)}" for text in texts))
            case Commands(lines, lead):
                told = f"{_plain(lead.strip())}\n\n" if lead.strip() else ""
                typed = "\n".join(printable(line) for line in lines)
                parts.append(f"{told}```sh\n{typed}\n```")
            case Table():
                parts.append(markdown_text(_in_one_line(block)).rstrip("\n"))
            case Figure():
                pass
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    return plain(printable(text))


def blocks_html(blocks: Sequence[Block]) -> str:
    """One page that needs nothing else; the same blocks give the same bytes."""
    from wbscope.render.sections import asset, policy, template

    style = asset("report.css")
    title = next((one.whole for one in blocks if isinstance(one, Heading)), "wbscope")
    return template("page.html.j2").render(
        title=printable(title),
        policy=policy((), [style]),
        style=style,
        parts=[_html(block) for block in blocks],
        version=__version__,
    )


def _in_one_line(table: Table) -> Result:
    """What is stacked in text has its lines in one cell."""
    result = replace(table.result, warnings=())
    if table.layout != "stacked":
        return result
    return replace(
        result, rows=[tuple(cell.replace("\n", "; ") for cell in row) for row in result.rows]
    )


def _html(block: Block) -> str:
    match block:
        case Heading(level=level):
            of = f'<p class="small"><code>{_safe(block.of)}</code></p>' if block.of else ""
            return f"<h{level}>{_safe(block.text)}</h{level}>{of}"
        case Text():
            return _paragraph(block)
        case Items(texts):
            return f"<ul>{''.join(f'<li>{_safe(text)}</li>' for text in texts)}</ul>"
        case Commands(lines, lead):
            told = f"<p>{_safe(lead.strip())}</p>" if lead.strip() else ""
            typed = "".join(f"<li><code>{_safe(line)}</code></li>" for line in lines)
            return f'{told}<ul class="commands">{typed}</ul>'
        case Table():
            return _table(block)
        case Figure(svg, told):
            return f"<figure><figcaption>{_safe(told)}</figcaption>{svg}</figure>"


def _paragraph(block: Text) -> str:
    lead = block.lead.strip()
    if lead in _SEVERITIES:
        bold = f'<span class="severity">{lead}</span>'
        return f'<article class="finding {lead}"><p>{bold}{_safe(block.text)}</p></article>'
    kind = ' class="doubt"' if block.is_doubt else ' class="small"' if block.is_aside else ""
    bold = f"<b>{_safe(lead)}</b> " if lead else ""
    typed = f" <code>{_safe(block.command)}</code>" if block.command else ""
    return f"<p{kind}>{bold}{_safe(block.text)}{typed}</p>"


def _table(block: Table) -> str:
    from wbscope.render.sections import meanings_of, table_html

    if not block.result.rows:
        return "<p>No rows.</p>"
    title = block.title or block.result.name
    html = table_html(_in_one_line(block), title, most=block.most)
    label = escape(f"{printable(title)}, table")
    parts = [f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">{html}</div>']
    if (hidden := len(block.result) - block.most) > 0:
        parts.append(f'<p class="small">{hidden} more rows are in the JSON document.</p>')
    if meanings := meanings_of(block.result):
        told = "".join(f"<dt>{_safe(name)}</dt><dd>{_safe(text)}</dd>" for name, text in meanings)
        told = f'<dl class="facts">{told}</dl>'
        parts.append(f"<details><summary>What the columns mean</summary>{told}</details>")
    return f'<section class="table">{"".join(parts)}</section>'


def _safe(text: str) -> str:
    return escape(printable(text), quote=False)


def table_of(kind: str, rows: Sequence[dict[str, object]]) -> Result:
    """The rows of a JSON document as a table: what is nested stands under both names, lists go."""
    flat = [dict(_flat("", row)) for row in rows]
    columns = tuple(dict.fromkeys(name for row in flat for name in row))
    return Result(kind, columns, {}, [tuple(row.get(name) for name in columns) for row in flat])


def _flat(prefix: str, row: dict[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}_", value)
        elif not isinstance(value, list):
            yield f"{prefix}{name}", int(value) if isinstance(value, bool) else value
