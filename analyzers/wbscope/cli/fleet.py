# SPDX-License-Identifier: Apache-2.0
"""wbscope fleet: many runs of many machines in one dataset, and what it is asked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import EvidenceError, UsageError, WbscopeError
from wbscope.base.result import Notice
from wbscope.base.units import counted, parse_duration
from wbscope.cli.compare import FacesOption
from wbscope.cli.exitcodes import Codes
from wbscope.cli.formats import PageOutput, write_document, write_result
from wbscope.cli.gate import tell_verdict
from wbscope.cli.options import JsonOption, Output, QuietOption, Rows, bound
from wbscope.cli.output import note, show_warnings, write_stdout
from wbscope.cli.sql import SqlCommand, statements_of_stdin
from wbscope.cli.verbs import verb_group
from wbscope.render.blocks import DOCUMENT

if TYPE_CHECKING:
    from wbscope.fleet.duck import Cluster


app = verb_group("fleet", no_args_is_help=True)

SourcesArgument = Annotated[
    list[str],
    typer.Argument(metavar="SRC...", help="Runs, or folders of runs.", show_default=False),
]
# Texts: a path would make one slash of the two of a URI.
DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="What fleet ingest wrote.", show_default=False)
]
DatasetOption = Annotated[
    str, typer.Option("-o", "--output", metavar="DATASET", help="A dataset, or a new folder.")
]
RedactOption = Annotated[
    Path | None,
    typer.Option(
        "--redact", metavar="KEYFILE", help="Hash names of tasks and paths with this key."
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="MASTER",
        help="On Spark: local[N], spark://HOST:PORT, yarn, k8s://URL.",
        show_default=False,
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark.", show_default=False),
]


class GateUnit(StrEnum):
    """What is one value in a test."""

    host = "host"
    run = "run"


@app.callback()
def fleet() -> None:
    """Put many runs in one dataset, and ask all of them.

    \b
    Examples:
      wbscope fleet ingest traces/ -o dataset
      wbscope fleet ingest traces/ -o dataset --redact names.key
      wbscope fleet report dataset
      wbscope fleet sql dataset "SELECT host, count(*) FROM runs GROUP BY host"
      wbscope fleet gate dataset --policy gate.toml \\
        --cohort "kernel = '6.12.1'" --against "kernel = '6.1.0'"
    """


@app.command()
def ingest(
    sources: SourcesArgument,
    output: DatasetOption,
    redact: RedactOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    allow_errors: Annotated[
        bool, typer.Option("--allow-errors", help="Exit code 0 though runs were refused.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add runs to a dataset; those that are in it are skipped.

    Folders are searched at any depth. A name that is not there is an error,
    before any work. A run that cannot be read is a warning and a row of
    ingest_errors; the others are added, the last line says how many were
    refused, and the exit code is 4. 5 is a full disk or
    the like: start the same command again, it goes on where it was. Killed at
    any moment, a dataset holds whole runs, each once. With --master the
    executors of a Spark cluster read the runs, and SRC and DATASET may be URIs
    of Hadoop's file systems. docs/fleet.md says how it lies on disk and how
    others read it.

    \b
    Examples:
      wbscope fleet ingest traces/ -o dataset
      wbscope fleet ingest run1 run2.dat archive/ -o dataset --json
      head -c 32 /dev/urandom > names.key
      wbscope fleet ingest traces/ -o dataset --redact names.key
      wbscope fleet ingest traces/ -o dataset --master 'local[*]'
      wbscope fleet ingest hdfs://HOST:8020/traces -o hdfs://HOST:8020/dataset \\
        --master yarn
    """
    cluster = _cluster(master, conf)
    from wbscope.fleet.cluster.hadoop_files import is_uri
    from wbscope.fleet.duck import check_place
    from wbscope.fleet.harvest import sources_in
    from wbscope.source.source import STDIN, find_source

    for place in (*sources, output):
        check_place(place, cluster)
    local = [source for source in sources if not is_uri(source)]
    for source in local:
        if source != STDIN and not os.path.lexists(source):
            find_source(source)  # which says so: a wrong name is no bad run
    found = (
        one for source in sources for one in ([source] if is_uri(source) else sources_in(source))
    )
    refused = harvest(
        found, output, redact, as_json=as_json, quiet=quiet, strict=False, cluster=cluster
    )
    if refused and not allow_errors:
        raise typer.Exit(EvidenceError.exit_code)


def harvest(
    sources: Iterable[str],
    output: str,
    redact: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    strict: bool,
    cluster: Cluster | None = None,
    argument: str = "output",
) -> int:
    """Add runs and say what came of each; returns how many were refused.

    `strict` ends at the first that is bad.

    `argument` is the one that names the dataset.
    """
    import pyarrow  # noqa: F401 - before any work

    from wbscope.fleet.cluster.hadoop_files import is_uri
    from wbscope.fleet.dataset import Dataset, make_dataset
    from wbscope.fleet.harvest import ingest_sources
    from wbscope.fleet.redact import read_key
    from wbscope.render.fleet import added_json, added_text

    if cluster is not None:
        from wbscope.fleet.cluster.spark import check_spark

        check_spark(cluster.master)
    redaction = None if redact is None else read_key(redact)
    dataset: Dataset | str = output
    if cluster is None or not is_uri(output):
        key = None if redaction is None else redaction.id
        dataset = make_dataset(Path(output), key, argument)
    rows = []

    def each(
        source: str,
        outcome: str,
        run: str | None,
        error: WbscopeError | None,
        losses: Sequence[Notice],
    ) -> None:
        rows.append((source, outcome, run, error, losses))
        if not as_json:
            show_warnings(replace(notice, run=source) for notice in losses)
        if error is not None and not as_json:
            note(f"warning[{error.slug}]: {source}: {error.message}; not in the dataset")
        elif not quiet and not as_json:
            note(f"{outcome}: {source}")

    if cluster is None:
        assert isinstance(dataset, Dataset)
        ingest_sources(sources, dataset, redaction=redaction, each=each, strict=strict)
    else:
        from wbscope.fleet.cluster.spark import spark_session
        from wbscope.fleet.cluster.spark_sql import ingest_on_spark

        with spark_session(cluster.master, cluster.settings) as session:
            ingest_on_spark(session, sources, dataset, each, redaction=redaction)
    if as_json:
        write_stdout(added_json(output, rows))
    else:
        note(added_text(output, rows))
    return sum(outcome == "failed" for _, outcome, *_ in rows)


@app.command(cls=SqlCommand)
@bound
def sql(
    dataset: DatasetArgument,
    *,
    statement: Annotated[
        str | None,
        typer.Argument(
            metavar="STATEMENT", help="One SELECT; '-' reads stdin.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop the statement after this time.")
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    rows: Rows,
    out: Output,
) -> None:
    """Run a SELECT over all runs of a dataset, in DuckDB or Spark.

    Without a statement it lists the tables. Each canned query is one, and runs,
    run_metrics, run_facts, run_devices, run_warnings, ingest_errors; all but
    the last have the columns run, date, host and kernel. Only runs that are
    whole are read, nothing can be written, and no other file be opened.

    \b
    Examples:
      wbscope fleet sql dataset
      wbscope fleet sql dataset "SELECT cause, sum(dur) FROM stalls GROUP BY cause"
      wbscope fleet sql dataset --csv --timeout 30s - < question.sql
      wbscope fleet sql dataset --master spark://HOST:7077 "SELECT count(*) FROM runs"
    """
    cluster = _cluster(master, conf)
    choice = rows.choice()
    out.check([dataset])
    rows.page_width(out)
    limit_ns = None if timeout is None else parse_duration("timeout", timeout, positive=True)
    from wbscope.fleet.duck import fleet_contents, fleet_engine
    from wbscope.library.session import result_of

    example = 'wbscope fleet sql DATASET "SELECT run, host FROM runs"'
    text = statements_of_stdin("wbscope fleet sql", example) if statement == "-" else statement
    if text is None:
        found, losses = fleet_contents(dataset, cluster)
        names = ("table", "runs_count", "rows_count", "bytes")
        result = result_of("tables", (names, found), losses)
    else:
        with fleet_engine(dataset, cluster, limit_ns) as engine:
            result = result_of("sql", engine.select(text), engine.losses)
    asked = shlex.join(["wbscope", "fleet", "sql", dataset, *([] if text is None else [text])])
    choice.check("the answer", result.columns, asked)
    write_result("fleet-sql", {"sql": text, "dataset": dataset}, result, out, rows)


@app.command()
@bound
def report(
    dataset: DatasetArgument,
    *,
    master: MasterOption = None,
    conf: ConfOption = None,
    out: PageOutput,
) -> None:
    """Say what is wrong in a dataset, where and since when.

    First the findings that cost most, in how many runs they are and what to
    change, then tables: machines, releases, pauses, waits by cause, findings by
    kernel and device, fairness. -o FILE.html is a page, -o FILE.json the
    document of --json.

    \b
    Examples:
      wbscope fleet report dataset
      wbscope fleet report dataset -o report.html
      wbscope fleet report dataset --json
      wbscope fleet report dataset --master 'local[*]'
    """
    cluster = _cluster(master, conf)
    out.check([dataset], DOCUMENT, "report")
    from wbscope.fleet.duck import fleet_engine
    from wbscope.fleet.questions import report_of

    with fleet_engine(dataset, cluster) as engine:
        found = report_of(engine, dataset, None if cluster is None else cluster.master)
    from wbscope.render.fleet import fleet_document

    made = fleet_document(found.dataset, found.sections, found.titles, found.warnings)
    write_document(made, out, told=f": {counted(int(found.head['runs_count']), 'run')}")


@app.command()
@bound
def gate(
    dataset: DatasetArgument,
    *,
    policy: Annotated[Path, typer.Option("--policy", metavar="FILE", help="A policy in TOML.")],
    cohort: Annotated[str, typer.Option("--cohort", metavar="SQL", help="Which runs are judged.")],
    against: Annotated[
        str, typer.Option("--against", metavar="SQL", help="Which they are compared with.")
    ],
    unit: Annotated[
        GateUnit, typer.Option(help="What counts as one value: a machine has its runs' median.")
    ] = GateUnit.host,
    master: MasterOption = None,
    conf: ConfOption = None,
    no_faces: FacesOption = False,
    out: Output,
) -> None:
    """Judge one cohort against another by a policy.

    As `wbscope gate` does for two sides. A cohort is a predicate over the
    columns of the table runs: kernel, host, date, machine, name and others. The
    unit is the machine: runs of one machine are no independent evidence, and one
    on both sides is compared with itself. Differences within a cohort are
    reported; a fact shared by one cohort but not the other is refused, unless
    the policy declares it.

    Exit code 0 passed, 1 failed, 4 worse, not enough evidence or runs that are
    not comparable, 2 usage, 3 a damaged dataset, 5 environment.

    \b
    Examples:
      wbscope fleet gate dataset --policy gate.toml \\
        --cohort "kernel = '6.12.1'" --against "kernel = '6.1.0'"
      wbscope fleet gate dataset --policy gate.toml --unit run \\
        --cohort "date >= '2026-11-01'" --against "date < '2026-11-01'"
    """
    cluster = _cluster(master, conf)
    out.check([dataset], noun="gate")
    from wbscope.compare.gate import judge
    from wbscope.compare.metrics import load_catalog
    from wbscope.compare.policy import read_policy
    from wbscope.fleet.duck import fleet_engine
    from wbscope.fleet.questions import both_sides
    from wbscope.library.library import load_library
    from wbscope.render.gate import gate_document

    chosen = read_policy(policy)
    with fleet_engine(dataset, cluster) as engine:
        side, base, told = both_sides(engine, cohort, against, unit.value, chosen.wants)
    families = [metric.family for metric in load_catalog(load_library()).metrics]
    result = judge(side, base, chosen, families)
    result = replace(result, warnings=(*told, *result.warnings))
    tell_verdict(result, gate_document(result, None, not no_faces), out, Codes.ci)


def _cluster(master: str | None, conf: list[str] | None) -> Cluster | None:
    """Where Spark is asked for; before any work."""
    if master is None and not conf:
        return None
    if master is None:
        raise UsageError(
            "conf-without-master",
            "--conf",
            "is a setting of Spark, and DuckDB answers",
            fix="add --master 'local[*]'",
        )
    from wbscope.fleet.cluster.spark import parse_options
    from wbscope.fleet.duck import Cluster

    return Cluster(master, parse_options(conf or []))
