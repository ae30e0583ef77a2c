# SPDX-License-Identifier: Apache-2.0
"""Out of a loaded trace into a record stream: every ftrace event, tasks, clock, lost data.

The rows of an event are one query, whose batches go to the ingester as they are: no cell is made
into a Python object. seq is the order of trace processor's table of ftrace events, plus one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from wbscope.perfetto.facts import Machine, TraceFacts
from wbscope.perfetto.stream import FieldSpec, RecordStream, load_references
from wbscope.perfetto.trace_processor import Row, TraceProcessor

Progress = Callable[[int], None]
"""Hears how many rows came since the last call."""

# TracePacket clocks (protos/perfetto/common/builtin_clock.proto) by the names of trace_clock.
_CLOCKS = {1: "realtime", 3: "mono", 5: "mono_raw", 6: "boot"}
_CPU_STATS = {
    "ftrace_cpu_entries_end": "entries",
    "ftrace_cpu_overrun_end": "overrun",
    "ftrace_cpu_commit_overrun_end": "commit overrun",
    "ftrace_cpu_bytes_end": "bytes",
    "ftrace_cpu_dropped_events_end": "dropped events",
    "ftrace_cpu_read_events_end": "read events",
}
# Packets that never reached the file: records of any CPU may have been in them.
_PACKET_LOSS = ("traced_buf_trace_writer_packet_loss", "traced_buf_patches_failed")
# What convert calls a session of which it wrote a part.
_PART = "part of a trace"
_CONFIGURED = re.compile(r'\bftrace_events:\s*"([^"]*)"')
# metadata: column of the table machine, in the order of uname
_OF_MACHINE = {
    "system_name": "sysname",
    "system_release": "release",
    "system_version": "version",
    "system_machine": "arch",
}
_NAMED_EVENTS = 8  # of those that could not be enabled
_DEVICE_NAME = re.compile(r"(?:\w+_)?dev")


# All records of the machine in the order of every run database: time, then CPU where two have the
# same ns. Sorted once, so that the rows of an event come in order from a plain filter.
_ORDERED = """
CREATE PERFETTO TABLE wbscope_event AS
SELECT
  ROW_NUMBER() OVER (ORDER BY f.ts, c.cpu, f.id) AS seq,
  f.ts, c.cpu, t.tid, f.utid, f.name, f.arg_set_id
FROM ftrace_event AS f JOIN thread AS t USING (utid) JOIN cpu AS c USING (ucpu)
WHERE COALESCE(t.machine_id, 0) = {machine}
ORDER BY seq
"""


class NoFtraceEvents(Exception):
    """The trace is good and has not one ftrace event; the text says what it is."""


@dataclass
class _Kind:
    """An event of the trace."""

    name: str
    system: str
    count: int
    is_loaded: bool
    keys: list[str] = field(default_factory=list)


class Reader:
    """Reads one loaded trace."""

    def __init__(self, engine: TraceProcessor, facts: TraceFacts, machine: Machine) -> None:
        self._engine = engine
        self._facts = facts
        self._machine = machine
        self._told = self._read_metadata()
        self._references = load_references(str(self._told.get("system_release") or ""))
        self._failed = self._events_of(facts.failed)
        self._configured = self._read_config()
        self._odd_keys = 0  # events with names of fields that are no text

    def write(
        self,
        out: RecordStream,
        globs: Sequence[str],
        load_all: bool,
        progress: Progress,
        *,
        facts_only: bool = False,
    ) -> None:
        """Write the whole stream; `facts_only` leaves out the records of all events.

        Raises: NoFtraceEvents; TraceProcessorError.
        """
        self._engine.query(_ORDERED.format(machine=self._machine.id))
        kinds = self._kinds(globs, load_all)
        self._meta(out)
        self._refused(out, kinds, globs, load_all)
        first, last = self._tasks(out)
        self._lost(out, first, last)
        for kind in kinds:
            self._event(out, kind, progress, facts_only)
        # Which machine was asked for which events the configuration does not tell.
        silent = set() if self._machine.others_count else self._configured
        for system, name in sorted(silent - {(k.system, k.name) for k in kinds}):
            out.event(system, name, 0)
        if self._odd_keys:
            text = "events with names of fields that are no text"
            out.stat("odd_field_names", "error", self._odd_keys, text)
        if self._facts.damage is not None:
            out.damage(self._facts.damage)
        out.end()

    def _read_metadata(self) -> Row:
        """Of several machines it has the last one's: the table of machines has each."""
        told = {
            str(row["name"]): row["str_value"] if row["int_value"] is None else row["int_value"]
            for row in self._engine.query("SELECT name, str_value, int_value FROM metadata")
        }
        if self._machine.others_count:
            told |= {name: self._machine.told.get(column) for name, column in _OF_MACHINE.items()}
        return told

    def _read_config(self) -> set[tuple[str, str]]:
        """The events that the recorder enabled: those that are missing did not happen.

        A configuration names all names of an event; the kernel has one of them.
        """
        texts = self._engine.query(
            "SELECT str_value FROM metadata WHERE name = 'trace_config_pbtxt'"
        )
        asked = {name for row in texts for name in _CONFIGURED.findall(str(row["str_value"]))}
        refused = self._failed | self._events_of(self._facts.unknown)
        return {event for event in self._events_of(asked) if not _is_among(event, refused)}

    def _events_of(self, entries: Iterable[str]) -> set[tuple[str, str]]:
        """System and name for entries as of ftrace_events: "system/name", "system/*", "name"."""
        events = set()
        for entry in entries:
            system, _, name = entry.rpartition("/")
            if name == "*" and system:
                events |= {(system, event) for event in self._references.events_of(system)}
            elif name and "*" not in name:
                events.add((system or self._references.system_of(name), name))
        return events

    def _refused(
        self, out: RecordStream, kinds: Sequence[_Kind], globs: Sequence[str], load_all: bool
    ) -> None:
        """Events that the kernel has, that are wanted, and that were not enabled."""
        recorded = {(kind.system, kind.name) for kind in kinds}
        names = sorted(
            f"{system}:{name}" if system else name
            for system, name in self._failed
            if (load_all or _is_wanted(system, name, globs))
            and not _is_among((system, name), recorded)
        )
        if (more := len(names) - _NAMED_EVENTS) > 0:
            names[_NAMED_EVENTS:] = [f"{more} others"]
        if names:
            out.meta("refused_events", ", ".join(names))

    def _kinds(self, globs: Sequence[str], load_all: bool) -> list[_Kind]:
        rows = self._engine.query(
            "SELECT name, COUNT(*) AS records, MIN(seq) AS first FROM wbscope_event"
            " GROUP BY name ORDER BY first"
        )
        if not rows:
            raise NoFtraceEvents(self._what_else())
        configured = {name: system for system, name in self._configured if system}
        kinds = []
        for row in rows:
            name = str(row["name"])
            system = (
                self._facts.groups.get(name)
                or configured.get(name)
                or self._references.system_of(name)
            )
            kind = _Kind(name, system, _int(row["records"]), load_all)
            kind.is_loaded = load_all or _is_wanted(system, name, globs)
            kinds.append(kind)
        return kinds

    def _what_else(self) -> str:
        kinds = self._engine.query("SELECT str_value FROM metadata WHERE name = 'trace_type'")
        slices = self._engine.query("SELECT COUNT(*) AS n FROM slice")[0]["n"]
        kind = " and ".join(str(row["str_value"]) for row in kinds) or "unknown"
        return f"type {kind}, {_int(slices)} slices"

    def _meta(self, out: RecordStream) -> None:
        values = self._told
        clock = _CLOCKS.get(_int(values.get("trace_time_clock_id") or 6))
        out.meta("format", "perfetto")
        out.meta("clock", clock or f"clock {_int(values['trace_time_clock_id'])}")
        out.meta("clock_unit", "ns")
        for key, name in (
            ("kernel_release", "system_release"),
            ("machine", "system_machine"),
            ("recorder_version", "tracing_service_version"),
        ):
            if value := values.get(name):
                out.meta(key, str(value))
        if values.get("unique_session_name") == _PART:
            out.meta("partial", 1)
        if all(values.get(name) for name in _OF_MACHINE):
            out.meta("uname", " ".join(str(values[name]) for name in _OF_MACHINE))
        if (long_bytes := _long_bytes(str(values.get("system_machine") or ""))) is not None:
            out.meta("long_bytes", long_bytes)
        if self._facts.page_bytes:
            out.meta("page_bytes", self._facts.page_bytes)
        cpus = self._facts.cpus_count
        if cpus is None:
            cpus = _int(self._engine.query("SELECT MAX(cpu) + 1 AS n FROM wbscope_event")[0]["n"])
        out.meta("cpus_count", cpus)
        if self._machine.others_count:
            out.meta("machines_count", self._machine.others_count + 1)
            out.meta("other_machines_events_count", self._machine.others_events_count)

    def _tasks(self, out: RecordStream) -> tuple[int, int]:
        """The first and last time stamp of all."""
        rows = self._engine.query(
            "SELECT t.tid, COALESCE(NULLIF(t.name, ''), p.name) AS comm,"
            " COUNT(*) AS records, MIN(f.ts) AS first, MAX(f.ts) AS last"
            " FROM wbscope_event AS f JOIN thread AS t USING (utid)"
            " LEFT JOIN process AS p USING (upid) GROUP BY f.utid ORDER BY f.utid"
        )
        for row in rows:
            first, last = _int(row["first"]), _int(row["last"])
            comm = _base_name(str(row["comm"] or ""))
            out.task(_int(row["tid"]), comm, first, last, _int(row["records"]))
        return min(_int(r["first"]) for r in rows), max(_int(r["last"]) for r in rows)

    def _lost(self, out: RecordStream, first: int, last: int) -> None:
        stats = self._engine.query(
            "SELECT name, idx, severity, value, description FROM stats WHERE value <> 0"
        )
        missing: dict[int, int] = defaultdict(int)  # by CPU, as far as the kernel counted them
        flagged = set()
        sums: dict[str, Row] = {}
        for row in stats:
            name, value = str(row["name"]), _int(row["value"])
            cpu = _int(row["idx"])
            if name in ("ftrace_cpu_overrun_delta", "ftrace_cpu_dropped_events_delta"):
                missing[cpu] += max(value, 0)
            elif name == "ftrace_cpu_has_data_loss":
                flagged.add(cpu)
            elif name in _CPU_STATS:
                out.cpu_stat(cpu, _CPU_STATS[name], value)
            elif name in _PACKET_LOSS:
                out.lost(first, None, None)
            if row["severity"] in ("error", "data_loss"):
                total = sums.setdefault(name, {**row, "value": 0})
                total["value"] = _int(total["value"]) + value
        for name, row in sums.items():
            described = str(row["description"] or "as Perfetto's trace processor counts it")
            out.stat(f"perfetto_{name}", str(row["severity"]), _int(row["value"]), described)
        gaps = defaultdict(list)
        for gap in self._facts.gaps:
            gaps[gap.cpu].append(first if gap.ts is None else gap.ts)
        for cpu in sorted(flagged | set(gaps) | {c for c, n in missing.items() if n > 0}):
            times = gaps.get(cpu) or [last if cpu in missing else first]
            # The kernel counts what is lost in all gaps of a CPU together.
            count = missing.get(cpu) if len(times) == 1 else None
            for ts in times:
                out.lost(ts, cpu, count or None)

    def _event(self, out: RecordStream, kind: _Kind, progress: Progress, facts_only: bool) -> None:
        if facts_only or not kind.is_loaded:
            event = out.event(kind.system, kind.name, kind.count)
            if facts_only:
                self._labels(out, kind, event)
            return
        types = self._references.types(kind.system, kind.name)
        fields = [
            FieldSpec(key, _stored_type(types.get(key, "")), _is_device(key, types.get(key, "")))
            for key in self._keys(kind)
            if not _is_array(types.get(key, ""))
        ]
        event = out.event(kind.system, kind.name, kind.count, fields)
        self._labels(out, kind, event)
        values = "".join(f", EXTRACT_ARG(f.arg_set_id, {_quoted(f.name)})" for f in fields)
        batches = self._engine.batches(
            f"SELECT f.seq, f.ts, f.cpu, f.tid{values} FROM wbscope_event AS f"
            f" WHERE f.name = {_quoted(kind.name)} ORDER BY f.seq"
        )
        for batch in batches:
            out.rows(event, batch)
        progress(kind.count)

    def _labels(self, out: RecordStream, kind: _Kind, event: int) -> None:
        for label in self._references.labels(kind.system, kind.name):
            out.label(event, label.field, label.value, label.label, label.is_flag)

    def _keys(self, kind: _Kind) -> list[str]:
        """The fields of an event, in the order in which the recorder wrote them."""
        keys: list[str] = []
        # Records of one event have the same fields but for odd ones: the first tells most of
        # them, and looking for others is far cheaper than to group all arguments.
        while True:
            known = ", ".join(map(_quoted, keys)) or "''"
            found = self._engine.query(
                "SELECT f.arg_set_id AS id FROM wbscope_event AS f"
                " JOIN args AS a USING (arg_set_id)"
                f" WHERE f.name = {_quoted(kind.name)} AND a.key NOT IN ({known}) LIMIT 1"
            )
            if not found:
                return keys
            of_record = f"a.arg_set_id = {_int(found[0]['id'])}"
            rows = self._engine.query(
                f"SELECT a.key FROM args AS a WHERE {of_record} ORDER BY a.id"
            )
            new = [key for row in rows if (key := str(row["key"])) not in keys]
            if not new:
                # Bytes that are no text come back as another key than the one in the trace: the
                # same record would be found for ever.
                self._odd_keys += 1
                return self._all_keys(kind, keys)
            keys += dict.fromkeys(new)

    def _all_keys(self, kind: _Kind, known: list[str]) -> list[str]:
        """These, and whatever else any record of the event has."""
        rows = self._engine.query(
            "SELECT DISTINCT a.key FROM wbscope_event AS f JOIN args AS a USING (arg_set_id)"
            f" WHERE f.name = {_quoted(kind.name)} ORDER BY a.key"
        )
        return list(dict.fromkeys([*known, *(str(row["key"]) for row in rows)]))


def _is_wanted(system: str, name: str, globs: Sequence[str]) -> bool:
    full_name = f"{system}:{name}" if system else name
    return any(fnmatchcase(full_name if ":" in glob else name, glob) for glob in globs)


def _is_among(event: tuple[str, str], events: set[tuple[str, str]]) -> bool:
    """By system and name, by name alone where one of both has no system."""
    system, name = event
    if system:
        return event in events or ("", name) in events
    return any(other == name for _, other in events)


def _base_name(name: str) -> str:
    """Of a path, as a process is started by; kworker/0:1 is none."""
    return name.rpartition("/")[2] or name if name.startswith(("/", "./", "../")) else name


def _long_bytes(machine: str) -> int | None:
    """By what uname -m says; None: of a machine that is not known."""
    if "64" in machine or machine == "s390x":
        return 8
    return 4 if machine.startswith("arm") or re.fullmatch("i[3-6]86", machine) else None


def _stored_type(kind: str) -> str:
    """The recorder writes texts for some pointers: the column takes what comes."""
    return "" if "*" in kind else kind


def _is_device(name: str, kind: str) -> bool:
    """Recorded as user space numbers devices (makedev), not as the kernel does."""
    if kind:
        return kind == "dev_t"
    return _DEVICE_NAME.fullmatch(name) is not None


def _is_array(kind: str) -> bool:
    """Trace processor keeps the last element only: no column is better than a wrong one."""
    return "[" in kind and "char" not in kind


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _int(value: object) -> int:
    return int(value) if isinstance(value, (int, float, str)) else 0
