# SPDX-License-Identifier: Apache-2.0
"""examples/fleet: what records in the field, here without pressure, tracefs or Kubernetes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.cli import Wbscope
from support.runs import REPOSITORY, example
from support.spark import children_of
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS, wait_until

FOLDER = REPOSITORY / "examples/fleet"
SCRIPT = FOLDER / "record-on-pressure"
RUN = example("four-equal-writers").folder
NAME = re.compile(r"[\w.-]+-\d{8}T\d{6}Z")
# `record` leaves what a recorder leaves, or fails; all else is wbscope.
_WBSCOPE = """#!/bin/sh
echo "$*" >> {folder}/said
if [ "$1" != record ]; then
  exec {wbscope} "$@"
fi
[ ! -e {folder}/broken ] || exit 3
while [ "$1" != -o ]; do
  shift
done
cp -R {run} "$2"
"""


class Machine:
    """Where the script runs: its folders, the pressure that it finds, and a recorder."""

    def __init__(self, folder: Path, wbscope: Wbscope) -> None:
        for name in ("bin", "pressure", "scratch"):
            (folder / name).mkdir()
        program = folder / "bin/wbscope"
        program.write_text(_WBSCOPE.format(folder=folder, wbscope=wbscope_path(), run=RUN))
        program.chmod(0o755)
        self.folder = folder
        self.spool = folder / "spool"
        self.inbox = folder / "inbox"
        self.env = wbscope.env | {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "WBSCOPE_INBOX": str(self.inbox),
            "WBSCOPE_SPOOL": str(self.spool),
            "WBSCOPE_SCRATCH": str(folder / "scratch"),
            "WBSCOPE_PRESSURE": str(folder / "pressure"),
        }
        self.press(io=0.0, memory=0.0)

    def press(self, **kinds: float) -> None:
        for kind, percent in kinds.items():
            lines = [f"{one} avg10={percent:.2f} avg60=1.00 avg300=0.00 total=99" for one in
                     ("some", "full")]  # fmt: skip
            (self.folder / "pressure" / kind).write_text("\n".join(lines) + "\n")

    def run(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, *words], env=self.env | settings, capture_output=True, text=True, check=False
        )

    def ask(self, why: str) -> None:
        self.spool.mkdir(exist_ok=True)
        (self.spool / "record").write_text(why)

    def runs(self, folder: Path) -> list[Path]:
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def said(self) -> str:
        said = self.folder / "said"
        return said.read_text() if said.exists() else ""


@pytest.fixture
def machine(tmp_path: Path, wbscope: Wbscope) -> Machine:
    return Machine(tmp_path, wbscope)


def test_no_pressure_no_run(machine: Machine) -> None:
    machine.press(io=19.99, memory=3.0)
    done = machine.run()
    assert (done.returncode, machine.said(), machine.runs(machine.inbox)) == (0, "", [])


@pytest.mark.parametrize("kind", ["io", "memory"])
def test_pressure_makes_a_run_once_an_hour(machine: Machine, kind: str) -> None:
    machine.press(**{kind: 20.0})
    done = machine.run()
    assert done.returncode == 0, done.stderr
    (run,) = machine.runs(machine.inbox)
    assert NAME.fullmatch(run.name)
    assert (run / "trigger").read_text() == f"{kind} pressure: some task waited 20 % of 10 s\n"
    assert (run / "trace.dat").read_bytes() == (RUN / "trace.dat").read_bytes()
    assert not machine.runs(machine.spool / "runs")
    assert not list((machine.folder / "scratch").iterdir())
    assert "--profile writeback --duration 20s" in machine.said()
    machine.run()
    assert machine.runs(machine.inbox) == [run]
    made = (machine.spool / "last").stat().st_mtime
    os.utime(machine.spool / "last", (made - 3600, made - 3600))
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"  # or an earlier second
    wait_until(lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}" != name, "the next second")
    machine.run()
    assert len(machine.runs(machine.inbox)) == 2


def test_what_is_switched_off_is_not_looked_at(machine: Machine) -> None:
    machine.press(io=90.0, memory=90.0)
    done = machine.run(WBSCOPE_IO="-", WBSCOPE_MEMORY="95")
    assert (done.returncode, machine.runs(machine.inbox)) == (0, [])


def test_somebody_asks(machine: Machine) -> None:
    machine.ask("slow commits\x1b[2J since noon\n")
    assert machine.run().returncode == 0
    (run,) = machine.runs(machine.inbox)
    assert (run / "trigger").read_text() == "asked: slow commits[2J since noon\n"
    assert not (machine.spool / "record").exists()


def test_what_cannot_be_put_there_waits_and_the_oldest_go(machine: Machine) -> None:
    machine.inbox.write_text("no folder")
    host = re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename)
    for day in range(1, 5):
        shutil.copytree(RUN, machine.spool / f"runs/{host}-2026010{day}T000000Z")
    (machine.spool / "runs/notes").mkdir()
    machine.ask("")
    done = machine.run(WBSCOPE_KEEP="2")
    assert done.returncode != 0
    left = [run.name for run in machine.runs(machine.spool / "runs")]
    assert len(left) == 3
    assert {f"{host}-20260104T000000Z", "notes"} < set(left)  # the newest; what is not ours stays
    assert "WBSCOPE_KEEP" in done.stderr
    machine.inbox.unlink()
    assert machine.run().returncode == 0
    assert len(machine.runs(machine.inbox)) == 2
    assert [run.name for run in machine.runs(machine.spool / "runs")] == ["notes"]


def test_a_scratch_that_others_use_too(machine: Machine) -> None:
    """Only the folder of a recording that was killed goes, and only if it is one."""
    scratch = machine.folder / "scratch"
    elsewhere = machine.folder / "elsewhere"
    for folder in (scratch / "wbscope-fleet", scratch / "wbscope-fleet.theirs", elsewhere):
        folder.mkdir()
        (folder / "precious").touch()
    killed = scratch / "wbscope-fleet.Ab12Cd"
    killed.mkdir()
    (killed / "part").touch()
    link = scratch / "wbscope-fleet.linked"
    link.symlink_to(elsewhere)
    for named in (killed, link, elsewhere, scratch / "wbscope-fleet"):
        machine.ask("")
        (machine.spool / "making").write_text(f"{named}\n")
        assert machine.run().returncode == 0
        assert not (machine.spool / "making").exists()
    left = {path.name for path in scratch.iterdir()}
    assert left == {"wbscope-fleet", "wbscope-fleet.theirs", "wbscope-fleet.linked"}
    for folder in (scratch / "wbscope-fleet", scratch / "wbscope-fleet.theirs", elsewhere):
        assert (folder / "precious").exists()


def test_a_recorder_that_fails_is_not_started_again_at_once(machine: Machine) -> None:
    (machine.folder / "broken").touch()
    machine.press(io=50.0)
    assert machine.run().returncode == 3
    assert machine.run().returncode == 0
    assert len(machine.said().splitlines()) == 1


def test_names_are_hashed_before_they_leave(machine: Machine, wbscope: Wbscope) -> None:
    key = machine.folder / "names.key"
    key.write_bytes(bytes(range(32)))
    dataset = machine.folder / "dataset"
    machine.ask("")
    settings = {"WBSCOPE_INBOX": "", "WBSCOPE_DATASET": str(dataset), "WBSCOPE_REDACT": str(key)}
    done = machine.run(**settings)
    assert done.returncode == 0, done.stderr
    assert json.loads((dataset / "_dataset.json").read_text())["redaction"]
    names = wbscope.document("fleet", "sql", dataset, "SELECT comm FROM throttle_by_task")["rows"]
    plain = {row["comm"] for row in wbscope.query("throttle_by_task", RUN)}
    assert names
    assert not plain & {row["comm"] for row in names}
    assert not machine.runs(machine.spool / "runs")


def test_runs_that_the_dataset_refuses_are_kept_aside(machine: Machine) -> None:
    """Not lost, not tried every time, and not more than others that wait."""
    settings = {"WBSCOPE_INBOX": "", "WBSCOPE_DATASET": str(machine.folder / "dataset")}
    made = [machine.spool / f"runs/db7-20260101T00000{number}Z" for number in range(3)]
    for run in made:
        run.mkdir(parents=True)
        (run / "trace.dat").write_bytes(run.name.encode())
    done = machine.run(WBSCOPE_KEEP="2", **settings)
    assert done.returncode == 4, done.stderr
    refused = machine.runs(machine.spool / "refused")
    assert [run.name for run in refused] == [run.name for run in made[1:]]
    assert not machine.runs(machine.spool / "runs")
    again = machine.run(WBSCOPE_KEEP="2", **settings)
    assert (again.returncode, machine.runs(machine.spool / "refused")) == (0, refused)


@pytest.mark.parametrize(
    "settings",
    [
        {"WBSCOPE_IO": "a lot"},
        {"WBSCOPE_MEMORY": "1000"},
        {"WBSCOPE_EVERY": ""},
        {"WBSCOPE_KEEP": "-1"},
        {"WBSCOPE_INBOX": ""},
        {"WBSCOPE_DATASET": "too"},
        {"WBSCOPE_REDACT": "names.key"},
    ],
)
def test_settings_that_cannot_be(machine: Machine, settings: dict[str, str]) -> None:
    machine.press(io=90.0)
    refused = machine.run(**settings)
    empty = settings.get("WBSCOPE_EVERY") == ""  # as if it were not set
    assert refused.returncode == (0 if empty else 2), refused.stderr
    assert empty or next(iter(settings)) in refused.stderr
    assert bool(machine.said()) == empty


def _rests(pid: int) -> bool:
    """Whether the loop waits to look again."""
    return any(line.startswith("sleep") for line in children_of(pid).values())


def test_it_looks_again_until_it_is_ended(machine: Machine) -> None:
    loop = subprocess.Popen([SCRIPT, "--loop", "1"], env=machine.env, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: _rests(loop.pid), "a first look")
        machine.press(memory=30.0)
        wait_until(lambda: machine.runs(machine.inbox), "a run")
    finally:
        loop.send_signal(signal.SIGTERM)
    assert loop.wait(GUARD_SECONDS) == 0
    assert loop.stderr is not None
    loop.stderr.close()


def test_old_days_leave_a_dataset(wbscope: Wbscope, tmp_path: Path) -> None:
    today = datetime.now(UTC)
    dataset = tmp_path / "dataset"
    for days, name in ((0, "new"), (40, "old")):
        run = tmp_path / name
        shutil.copytree(RUN, run)
        made = int((today - timedelta(days=days)).timestamp())
        (run / "meta.json").write_text(json.dumps({"written_unix_s": made}))
        assert wbscope.run("fleet", "ingest", run, "-o", dataset).returncode == 0
    forget = FOLDER / "forget-old"
    for words in ((tmp_path, "30"), (dataset, "-1"), (dataset,)):
        refused = subprocess.run([forget, *words], capture_output=True, check=False)
        assert refused.returncode == 2
    (old,) = (dataset / "runs").glob(f"date={today - timedelta(days=40):%Y-%m-%d}/*/*")
    elsewhere = tmp_path / "elsewhere" / "/".join(old.parts[-3:])
    elsewhere.mkdir(parents=True)
    (dataset / "linked").symlink_to(tmp_path / "elsewhere")
    theirs = [
        old / "notes.txt",
        old / "mine.parquet",
        old.parents[1] / f"{'0' * 32}.parquet",
        elsewhere / f"{'0' * 32}.parquet",
        dataset / "_manifest/mine.json",
    ]
    for path in theirs:
        path.write_text("precious")
    for days, left in ((50, ["new", "old"]), (30, ["new"])):
        subprocess.run([forget, dataset, str(days)], check=True)
        told = wbscope.run("fleet", "sql", dataset, "SELECT name FROM runs ORDER BY 1", "--json")
        assert [row["name"] for row in json.loads(told.stdout)["rows"]] == left
    for path in theirs:
        assert path.read_text() == "precious"
        path.unlink()
    ours = {path.stem for path in (dataset / "_manifest").iterdir()}
    assert {path.stem for path in dataset.rglob("*.parquet")} == ours
    assert sorted((dataset / "stalls").iterdir()) == [dataset / f"stalls/date={today:%Y-%m-%d}"]


def resources() -> list[tuple[str, dict[str, Any]]]:
    paths = sorted(FOLDER.glob("*.yaml"))
    return [(path.name, one) for path in paths for one in YAML(typ="safe").load_all(path)]


def test_kubernetes_takes_the_files() -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="no schemas: make test installs kubernetes-validate"
    )
    version = validate.latest_version()
    kinds = []
    for name, resource in resources():
        if name == "kustomization.yaml":
            files = [*resource["resources"], *resource["configMapGenerator"][0]["files"]]
            assert all((FOLDER / file).is_file() for file in files)
            continue
        validate.validate(resource, version, strict=True)
        kinds.append(resource["kind"])
        broken = json.loads(json.dumps(resource))
        broken["spec" if "spec" in broken else "metadata"]["wrong"] = 1
        with pytest.raises(validate.ValidationError):
            validate.validate(broken, version, strict=True)
    assert sorted(kinds) == ["DaemonSet", "Namespace", "PersistentVolumeClaim"]


def test_the_daemonset_sets_what_the_script_reads() -> None:
    (daemonset,) = (one for _, one in resources() if one["kind"] == "DaemonSet")
    pod = daemonset["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    text = SCRIPT.read_text()
    for setting in container["env"]:
        assert f"${{{setting['name']}" in text, setting
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(Path(container["command"][0]).parent) in mounts
    assert Path(container["command"][0]).name == SCRIPT.name
    for setting in (FOLDER / "fleet.conf").read_text().splitlines():
        name = setting.partition("=")[0]
        assert setting.startswith("#") or name == "PATH" or f"${{{name}" in text, setting


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    program = tmp_path / "usr/local/lib/wbscope/record-on-pressure"
    program.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, program)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    names = [path.name for path in FOLDER.glob("wbscope-fleet.*")]
    assert len(names) == 3
    for name in names:
        text = (FOLDER / name).read_text()
        (units / name).write_text(text.replace("/usr/local", f"{tmp_path}/usr/local"))
    told = verify(units, names)
    assert (told.returncode, told.stderr) == (0, "")
    timer = units / "wbscope-fleet.timer"
    timer.write_text(timer.read_text().replace("AccuracySec=1s", "AccuracySec=soon"))
    assert "wbscope-fleet.timer" in verify(units, names).stderr


def verify(units: Path, names: list[str]) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no"]
    return subprocess.run(
        [*command, *(units / name for name in names)],
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
        check=False,
    )
