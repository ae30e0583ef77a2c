# SPDX-License-Identifier: Apache-2.0
"""The page of `wbscope report -o x.html`: read without a browser, and opened in one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["HOSTILE", "OpenedPage", "ReadPage", "hostile_run", "open_report"]

# A name that ends scripts, one that ends lines of JavaScript, a formula, a template.
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "a\u2028b\u2029c\x1b[31m",
    '=cmd|"/c calc"!A1',
    "{{ 7 * 7 }}'\"><b>",
)
_VOID = {"meta", "br", "img", "input", "link", "hr"}


@dataclass
class Table:
    """A table by its caption: heads, and of each row the texts and the raw numbers of cells."""

    caption: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[tuple[str, str | None]]] = field(default_factory=list)


class ReadPage(HTMLParser):
    """What is in a page; `faults` are elements that are not closed in their order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.references: list[tuple[str, str, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[Table] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self._open]
        self.data: Any = json.loads(self.scripts[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        for name in ("src", "href", "action", "srcset", "data", "poster", "background"):
            if name in given:
                self.references.append((tag, name, given[name] or ""))
        if tag == "table":
            self.tables.append(Table())
        elif tag == "tr" and "tbody" in self._open:
            self.tables[-1].rows.append([])
        elif tag == "td":
            self.tables[-1].rows[-1].append(("", given.get("data-v")))
        elif tag == "th":
            self.tables[-1].heads.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("path",) and self._open[-1] != tag:
            return
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> within {self._open[-1:]}, line {self.getpos()[0]}")
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        inner = self._open[-1] if self._open else ""
        if inner == "script":
            self.scripts.append(data)
            return
        if inner != "style":
            self.words.append(data)
        if "caption" in self._open:
            self.tables[-1].caption += data
        elif "td" in self._open:
            text, raw = self.tables[-1].rows[-1][-1]
            self.tables[-1].rows[-1][-1] = (text + data, raw)
        elif "th" in self._open:
            self.tables[-1].heads[-1] += data

    def table(self, caption: str) -> Table:
        """The table of this title."""
        (found,) = [one for one in self.tables if one.caption == caption]
        return found

    def text(self) -> str:
        """All that is there to read."""
        return " ".join(" ".join(self.words).split())


@dataclass
class OpenedPage:
    """A page in a browser. What goes wrong in it, and what it asks for, is in `errors`."""

    page: Page
    errors: list[str]

    def state(self) -> Any:
        """What part of the time is shown, where the cursor is, what each figure shows."""
        return self.page.evaluate(
            """() => {
              const report = window.wbscopeReport;
              const x = [...report.charts.values()].map((c) => c.plot.scales.x);
              return {from: report.view.from, to: report.view.to, at: report.at(),
                      axes: x.map((one) => [one.min, one.max])};
            }"""
        )


@contextmanager
def open_report(browser: Browser, path: Path, **options: Any) -> Iterator[OpenedPage]:
    """The page of a file, in a browser without a network."""
    options.setdefault("viewport", {"width": 1400, "height": 900})
    context = browser.new_context(offline=True, **options)
    try:
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda told: errors.append(f"{told.type}: {told.text}"))
        page.on("pageerror", lambda error: errors.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: (errors.append(dialog.message), dialog.dismiss()))
        address = path.resolve().as_uri()

        def asked(request: Any) -> None:
            if request.url != address and not request.url.startswith("blob:"):
                errors.append(f"asks for {request.url}")

        page.on("request", asked)
        page.goto(address)
        yield OpenedPage(page, errors)
    finally:
        context.close()


def hostile_run(database: Path) -> None:
    """Let tasks, the kernel, mounts, cgroups and settings of a run be called as nobody's are."""
    with closing(sqlite3.connect(database)) as db, db:
        tids = [row[0] for row in db.execute("SELECT tid FROM task ORDER BY tid")]
        for place, tid in enumerate(tids):
            name = HOSTILE[place % len(HOSTILE)]
            db.execute("UPDATE task SET comm = ? WHERE tid = ?", (name, tid))
        db.execute("UPDATE meta SET value = ? WHERE key = 'kernel_release'", (HOSTILE[1],))
        db.execute(
            "UPDATE sidecar_mounts SET mount = replace(mount, '/data', ?)", (f"/{HOSTILE[0]}",)
        )
        db.execute(
            "UPDATE sidecar_text SET text = text || ? WHERE name = 'sysctls'",
            (f"vm.{HOSTILE[3]} = {HOSTILE[0]}\n",),
        )
        db.execute("INSERT INTO sidecar_sysctls VALUES (?, ?, 1)", (f"vm.{HOSTILE[3]}", HOSTILE[0]))
        db.execute("UPDATE cgroup SET path = path || ?", (f"/{HOSTILE[0]}",))
