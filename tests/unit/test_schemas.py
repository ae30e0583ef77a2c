# SPDX-License-Identifier: Apache-2.0
"""What every verb prints with --json is what `wbscope schema` says of it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from support.cli import Wbscope
from support.runs import REPOSITORY
from support.tools import wbscope_path
from support.verdicts import faults
from wbscope.base.errors import WbscopeError
from wbscope.cli.verbs import VERBS
from wbscope.render.schemadocs import DOCUMENTS
from wbscope.render.schemas import documents_of, schema_of

RUN = REPOSITORY / "examples/four-equal-writers"
GATE = REPOSITORY / "examples/gate"
LAB = REPOSITORY / "examples/lab"
NAMES = [one.name for one in DOCUMENTS]
# Name of the document: the words of commands, and how they may end. OUT is a new file.
ASKED: dict[str, list[tuple[int, list[str | Path]]]] = {
    "doctor_events": [(0, ["doctor", "--events"])],
    "lab": [(0, ["lab", LAB / "lower-limit/matrix.toml", "--list"])],
    "lab-report": [(0, ["lab", "report", LAB / "known-bad-kernel/results.json"])],
    "ingest": [(0, ["ingest", RUN, "-o", "OUT"])],
    "query": [
        (0, ["query", "fairness", RUN]),
        (0, ["query", "stalls", RUN, "--limit", "9", "--explain"]),
        (0, ["query", "throttle_windows", RUN, GATE / "runs/before-2", "--window", "5s"]),
    ],
    "sql": [(0, ["sql", RUN, "SELECT event, count, NULL, x'00' AS b, 1.5 FROM event_counts"])],
    "sql-script": [(0, ["sql", RUN, "-f", "SCRIPT"])],
    "queries": [(0, ["queries"]), (0, ["queries", "stalls"])],
    "report": [(0, ["report", RUN]), (0, ["report", RUN, "--from", "5s"])],
    "reports": [(0, ["report", RUN, GATE / "runs/before-2"])],
    "explain": [
        *((0, ["explain", REPOSITORY / "examples" / name]) for name in ("deep", "reclaim-writes")),
        (0, ["explain", RUN, "--to", "9s"]),
    ],
    "stall": [(0, ["explain", RUN, "--stall", "61024"])],
    "check": [(0, ["check", RUN])],
    "plot": [(0, ["plot", RUN, "-o", "OUT"])],
    "figures": [(0, ["plot", "--list"]), (0, ["plot", RUN])],
    "timeline": [(0, ["timeline", RUN, "-o", "OUT"])],
    "convert": [(0, ["convert", RUN, "-o", "OUT"])],
    "compare": [
        (0, ["compare", GATE / "lower-limit.json", "--against", GATE / "before.json"]),
        (0, ["compare", GATE / "runs/lower-2", "--against", GATE / "runs/before-2"]),
    ],
    "gate": [
        (1, ["gate", GATE / "lower-limit.json", "--against", GATE / "before.json", "POLICY"]),
        (0, ["gate", GATE / "again.json", "--against", GATE / "before.json", "POLICY"]),
        (4, ["gate", GATE / "runs/lower-2", "--against", GATE / "runs/before-2", "POLICY"]),
        (0, ["gate", GATE / "before.json", "--self-check", "POLICY"]),
        (1, ["gate", "--budget", "throttle_summary.pause_p99_ns <= 1ms", RUN]),
    ],
    "baseline-save": [(0, ["baseline", "save", GATE / "runs/before-2", "-o", "OUT"])],
    "baseline-summary": [(0, ["baseline", "show", GATE / "before.json"])],
    "baseline-merge": [
        (0, ["baseline", "merge", GATE / "before.json", GATE / "lower-limit.json", "-o", "OUT"])
    ],
    "history-add": [
        (
            0,
            [
                "history",
                "add",
                "OUT",
                GATE / "before.json",
                "--commit",
                "c1",
                "--date",
                "2026-01-01",
            ],
        )
    ],
    "sql-package": [(0, ["sql-package", "-o", "OUT"])],
}
# Where these are made: a machine that traces, a bisection of kernels, a server.
ELSEWHERE = {
    "fleet-ingest",
    "doctor",
    "record",
    "lab-bisect",
    "history",
    "open",
    "error",
    "fleet-sql",
    "fleet-report",
}


@pytest.fixture
def words_of(tmp_path: Path) -> object:
    (tmp_path / "SCRIPT").write_text("SELECT 1;\nSELECT 'a' AS b;\n")

    def words(asked: list[str | Path]) -> list[str | Path]:
        made: list[str | Path] = []
        for word in asked:
            if word == "POLICY":
                made += ["--policy", GATE / "gate.toml"]
            else:
                made.append(tmp_path / word if word in ("OUT", "SCRIPT") else word)
        return made

    return words


@pytest.mark.parametrize(
    ("name", "code", "asked"),
    [(name, *one) for name, commands in ASKED.items() for one in commands],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_verb_prints(
    wbscope: Wbscope, words_of: object, name: str, code: int, asked: list[str | Path]
) -> None:
    done = wbscope.run(*words_of(asked), "--json")  # type: ignore[operator]
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == f"wbscope.{name}/1"
    assert faults(document) == []
    # As published, for programs that are older than what they read.
    jsonschema.validate(document | {"new": 1}, schema_of(name))


def test_every_document_is_asked_for() -> None:
    assert set(ASKED) | ELSEWHERE == set(NAMES)


def test_what_is_printed_of_this_machine(wbscope: Wbscope) -> None:
    done = wbscope.run("doctor", "--json")
    assert done.returncode in (0, 5), done.stderr
    assert faults(json.loads(done.stdout)) == []


def test_a_history(wbscope: Wbscope, tmp_path: Path) -> None:
    for number, name in enumerate(("before", "lower-limit", "slower-disk"), 1):
        at = ["--commit", f"c{number}", "--date", f"2026-01-0{number}", "--branch", "main"]
        done = wbscope.run("history", "add", tmp_path / "h.db", GATE / f"{name}.json", *at)
        assert done.returncode == 0, done.stderr
    assert (
        faults(json.loads(wbscope.run("history", "show", tmp_path / "h.db", "--json").stdout)) == []
    )


def test_links_of_the_viewer(wbscope: Wbscope) -> None:
    """It prints the document, then waits for a browser."""
    command = [str(wbscope_path()), "open", str(RUN), "--no-browser", "--json", "--port", "0"]
    with subprocess.Popen(command, env=wbscope.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline().decode()
            assert line, text
            text += line
        process.terminate()
    assert faults(json.loads(text)) == []


def test_of_a_dataset(wbscope: Wbscope, tmp_path: Path) -> None:
    done = wbscope.run("fleet", "ingest", GATE / "runs/before-2", "-o", tmp_path / "ds", "--json")
    assert faults(json.loads(done.stdout)) == []
    pytest.importorskip("duckdb")
    for words in (["sql", tmp_path / "ds", "SELECT 1 AS a"], ["report", tmp_path / "ds"]):
        done = wbscope.run("fleet", *words, "--json")
        assert done.returncode == 0, done.stderr
        assert faults(json.loads(done.stdout)) == []


@pytest.mark.parametrize(
    "words",
    [
        ["report", "nowhere"],
        ["query", "fairnes", RUN],
        ["sql", RUN, "SELECT nonsense"],
        ["gate", RUN],
        ["nosuch"],
        ["ingest", RUN, "-o", "/nowhere/x.db"],
    ],
)
def test_errors(wbscope: Wbscope, words: list[str | Path]) -> None:
    done = wbscope.run(*words, "--json")
    document = json.loads(done.stderr)
    assert (faults(document), done.stdout) == ([], "")
    assert document["error"]["exit_code"] == done.returncode != 0


def test_evidence_of_a_finding_is_named(wbscope: Wbscope) -> None:
    """Each id is one of a kind, and its command gives rows."""
    rows = wbscope.document("explain", RUN)["rows"]
    proofs = [proof for row in rows for proof in row["evidence"]]
    assert len({proof["id"] for proof in proofs}) == len(proofs) > 3
    for row in rows:
        assert all(proof["id"].startswith(f"{row['id']}/") for proof in row["evidence"])


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name: str) -> None:
    for strict in (False, True):
        schema = schema_of(name, strict=strict)
        jsonschema.Draft202012Validator.check_schema(schema)
        named = set(re.findall(r"#/\$defs/(\w+)", json.dumps(schema)))
        assert named == set(schema.get("$defs", {}))


def test_every_document_of_the_sources_has_a_schema() -> None:
    calls = {"document": 0, "write_result": 0}
    found = set()
    for path in (REPOSITORY / "analyzers/wbscope").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                if node.func.id in calls and isinstance(first, ast.Constant):
                    found.add(first.value)
    missing = found ^ (set(NAMES) - {"error"})
    assert not {name for name in missing if not name.startswith("fleet-")}


def test_the_verb(wbscope: Wbscope) -> None:
    listed = wbscope.run("schema").stdout
    assert [line.split("/1")[0] for line in listed.splitlines()[2:]] == [
        f"wbscope.{name}" for name in NAMES
    ]
    printed = json.loads(wbscope.run("schema", "report").stdout)
    assert [one["title"] for one in printed["oneOf"]] == ["wbscope.report/1", "wbscope.reports/1"]
    assert json.loads(wbscope.run("schema", "stall").stdout)["title"] == "wbscope.stall/1"
    wrong = wbscope.run("schema", "nosuch")
    assert (wrong.returncode, "unknown-document" in wrong.stderr) == (2, True)
    verbs = {verb.name for verb in VERBS}
    for one in DOCUMENTS:
        assert not one.verb or one.verb.partition(" ")[0] in verbs
        assert documents_of(one.verb or "error")


def test_the_page_for_programs(wbscope: Wbscope) -> None:
    """Its table has the exit codes of the errors; its commands are run by tests/docs."""
    page = (REPOSITORY / "docs/for-agents.md").read_text()
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert {kind.exit_code for kind in WbscopeError.__subclasses__()} <= codes
    assert codes == {0, 1, 2, 3, 4, 5, 70, 130}
