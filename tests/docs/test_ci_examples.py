# SPDX-License-Identifier: Apache-2.0
"""examples/ci: valid for GitHub and GitLab, and the action's script does what it says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML
from support.cli import Wbscope, check_error
from support.runs import REPOSITORY
from wbscope.compare.metrics import load_catalog
from wbscope.compare.policy import read_policy
from wbscope.library.library import load_library

CI = REPOSITORY / "examples/ci"
BIN = Path(sys.executable).parent
SCHEMAS = {
    "action.yml": "vendor.github-actions",
    "github-workflow.yml": "vendor.github-workflows",
    "github-baseline.yml": "vendor.github-workflows",
    "gitlab-ci.yml": "vendor.gitlab-ci",
    "gitlab-baseline.yml": "vendor.gitlab-ci",
}
FILES = [*SCHEMAS, "gate.toml", "matrix.toml", "requirements.txt"]


def document(name: str) -> Any:
    return YAML(typ="safe").load((CI / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_are_valid(name: str) -> None:
    """By the published schemas, which the package check-jsonschema holds."""
    import check_jsonschema  # takes a second

    words = ["--builtin-schema", SCHEMAS[name], str(CI / name)]
    found = CliRunner().invoke(check_jsonschema.main, words)
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("name", ["github-workflow.yml", "github-baseline.yml"])
def test_the_code_of_a_change_finds_no_token(name: str) -> None:
    """checkout leaves the job's in .git/config, unless it is told not to."""
    steps = document(name)["jobs"]["gate"]["steps"]
    checkouts = [one for one in steps if one.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(one["with"]["persist-credentials"] is False for one in checkouts)


def test_a_change_is_judged_by_the_policy_of_its_base() -> None:
    (gate,) = (
        one
        for one in document("github-workflow.yml")["jobs"]["gate"]["steps"]
        if one.get("id") == "gate"
    )
    assert gate["with"]["policy"] == "base/ci/gate.toml"
    script = document("gitlab-ci.yml")["writeback-gate"]["script"]
    assert [line.split()[3] for line in script if line.startswith("wbscope gate")] == [
        "base/ci/gate.toml"
    ]


def test_every_file_is_named_in_the_docs() -> None:
    page = (REPOSITORY / "docs/ci.md").read_text()
    assert all(f"examples/ci/{name}" in page for name in FILES)


@pytest.mark.parametrize("name", ["gate.sh", "install.sh", "pages.sh"])
def test_the_scripts_are_bash(name: str) -> None:
    subprocess.run(["bash", "-n", CI / name], check=True)
    assert f'bash "$GITHUB_ACTION_PATH/{name}"' in (CI / "action.yml").read_text()


def ops_run(folder: Path, name: str, value: float) -> str:
    """A run without a trace: one line of a benchmark."""
    run = folder / name
    run.mkdir(parents=True)
    (run / "ops.txt").write_text(f"rate {value} ops/s\n")
    return str(run)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, wbscope: Wbscope) -> Path:
    folder = tmp_path_factory.mktemp("ci")
    for number in range(6):
        ops_run(folder / "before", f"run {number}", 100 + number)
        ops_run(folder / "same", f"run {number}", 100.5 + number)
        ops_run(folder / "worse", f"run {number}", 50 + number)
    (folder / "gate.toml").write_text('[metrics."ops.rate"]\nmargin = "10%"\n')
    done = wbscope.run("baseline", "save", "before", "-o", "base.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def workspace(tmp_path: Path, made: Path) -> Path:
    """A checkout of a project under test, with runs and a baseline."""
    return Path(shutil.copytree(made, tmp_path / "checkout"))


def run_action(
    workspace: Path, **inputs: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """gate.sh as a runner starts it: inputs, files for outputs and for the summary."""
    environment = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(workspace),
        "WBSCOPE_CACHE_DIR": str(workspace / "cache"),
        "GITHUB_OUTPUT": str(workspace / "outputs"),
        "GITHUB_STEP_SUMMARY": str(workspace / "summary"),
        "GITHUB_WORKSPACE": str(workspace),
        "POLICY": "gate.toml",
        "AGAINST": "",
        "BASELINE": "",
        "INCONCLUSIVE": "",
        "SELF_CHECK": "false",
        "JUNIT": "gate.xml",
        "SARIF": "gate.sarif",
        **inputs,
    }
    done = subprocess.run(
        ["bash", CI / "gate.sh"],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (workspace / "outputs").read_text().splitlines()
    return done, dict(line.split("=", 1) for line in lines)


def test_the_action_fails_what_is_worse(workspace: Path) -> None:
    done, outputs = run_action(workspace, RUNS="worse", BASELINE=" base.json \n")
    assert done.returncode == 1, done.stderr
    assert outputs == {"verdict": "failed", "exit-code": "1"}
    assert "::error file=gate.toml,line=1,title=FAIL%3A ops.rate::" in done.stderr
    assert (workspace / "summary").read_text().startswith("## wbscope gate: FAIL")
    suite = ElementTree.parse(workspace / "gate.xml").getroot()
    assert suite.get("failures") == "1"
    sarif = json.loads((workspace / "gate.sarif").read_text())
    assert sarif["runs"][0]["results"][0]["ruleId"] == "ops.rate"


def test_the_action_passes_what_is_the_same(workspace: Path) -> None:
    # White space in names, and one path on each line.
    runs = "\n".join(f"  same/run {number}" for number in range(6))
    done, outputs = run_action(workspace, RUNS=runs, AGAINST="before\n\n")
    assert done.returncode == 0, done.stderr
    assert outputs["verdict"] == "passed"


def test_the_action_appends_to_what_the_step_wrote(workspace: Path) -> None:
    (workspace / "summary").write_text("before\n")
    run_action(workspace, RUNS="same", BASELINE="base.json")
    assert (workspace / "summary").read_text().startswith("before\n## wbscope gate: PASS")


def test_too_few_runs(workspace: Path) -> None:
    inputs = {"RUNS": "same/run 0", "BASELINE": "base.json"}
    done, outputs = run_action(workspace, **inputs)
    assert (done.returncode, outputs["verdict"]) == (4, "inconclusive")
    done, outputs = run_action(workspace, **inputs, INCONCLUSIVE="warn")
    assert (done.returncode, outputs) == (0, {"verdict": "inconclusive", "exit-code": "4"})
    assert "::warning title=wbscope gate::INCONCLUSIVE" in done.stderr
    done, outputs = run_action(workspace, **inputs, INCONCLUSIVE="pass")
    assert (done.returncode, outputs["verdict"]) == (0, "passed")
    done, outputs = run_action(workspace, **inputs, INCONCLUSIVE="fail")
    assert (done.returncode, outputs["verdict"]) == (1, "failed")


def test_an_error_is_no_verdict(workspace: Path) -> None:
    done, outputs = run_action(workspace, RUNS="nowhere", BASELINE="base.json")
    assert (done.returncode, outputs["verdict"]) == (3, "error")
    assert "::error title=wbscope gate::no verdict, exit code 3" in done.stderr
    assert not (workspace / "gate.xml").exists()


@pytest.mark.parametrize(
    ("inputs", "code"),
    [({"RUNS": "nowhere", "BASELINE": "base.json"}, 3), ({"RUNS": "same", "BASELINE": "no"}, 3)],
)
def test_reports_of_an_earlier_job_are_gone(
    workspace: Path, inputs: dict[str, str], code: int
) -> None:
    run_action(workspace, RUNS="worse", BASELINE="base.json")
    done, _ = run_action(workspace, **inputs)
    assert done.returncode == code
    assert [name for name in ("gate.xml", "gate.sarif") if (workspace / name).exists()] == []


def test_worse_that_passes_leaves_an_open_job_open(workspace: Path) -> None:
    """WORSE leads, and counts as a pass: what the job is told is that nobody knows of the other."""
    steady, wild = (100, 101, 102, 103, 104, 105), (60, 80, 100, 120, 140, 160)
    for side, factor, other in (("old", 1, steady), ("new", 1.04, wild)):
        for number, (value, second) in enumerate(zip(steady, other, strict=True)):
            run = Path(ops_run(workspace / side, f"run {number}", value))
            (run / "ops.txt").write_text(f"slow {value * factor:.3f} s\nwild {second:.3f} s\n")
    (workspace / "gate.toml").write_text(
        'worse = "pass"\n[metrics."ops.*"]\nmargin = "5%"\nbetter = "lower"\n'
    )
    inputs = {"RUNS": "new", "AGAINST": "old"}
    done, outputs = run_action(workspace, **inputs, INCONCLUSIVE="warn")
    assert "gate: WORSE (counted as inconclusive): 1 WORSE, 1 INCONCLUSIVE" in done.stdout
    assert (done.returncode, outputs) == (0, {"verdict": "inconclusive", "exit-code": "4"})


def test_self_check(workspace: Path) -> None:
    done, outputs = run_action(workspace, RUNS="base.json", SELF_CHECK="true")
    assert done.returncode == 0, done.stderr
    assert outputs == {"verdict": "passed", "exit-code": "0"}


@pytest.mark.parametrize("inputs", [{"RUNS": "same", "POLICY": ""}, {"RUNS": " \n"}])
def test_what_the_gate_needs(workspace: Path, inputs: dict[str, str]) -> None:
    done, outputs = run_action(workspace, **inputs)
    assert (done.returncode, outputs) == (2, {"verdict": "error", "exit-code": "2"})
    assert all(word in done.stderr.split("::")[-1].split() for word in ("policy", "runs"))


def test_the_policy_expects_as_many_runs_as_the_jobs_record() -> None:
    policy = read_policy(CI / "gate.toml")
    assert policy.expect_runs == tomllib.loads((CI / "matrix.toml").read_text())["runs"]
    for name in ("github-baseline.yml", "gitlab-baseline.yml"):
        assert "for number in 1 2 3 4 5 6 7 8 9 10; do" in (CI / name).read_text()
    known = [metric.family for metric in load_catalog(load_library()).metrics]
    for rule in policy.rules:
        assert rule.pattern in known or rule.pattern == "command.duration_ns"


def test_actions_are_named_by_commit() -> None:
    """A tag can be moved to another commit; the version stands behind the hash."""
    for name in ("github-workflow.yml", "github-baseline.yml"):
        lines = [line for line in (CI / name).read_text().splitlines() if "uses: " in line]
        others = [line for line in lines if "OWNER/wbscope" not in line]
        assert len(others) >= 3
        for line in others:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


def pinned() -> dict[str, list[tuple[Requirement, int]]]:
    """Of requirements.txt: name -> each version (by Python) and its number of hashes."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    text = (CI / "requirements.txt").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            told = Requirement(line.partition(" --hash")[0].strip())
            found.setdefault(canonicalize_name(told.name), []).append((told, line.count("sha256:")))
    return found


def test_every_library_is_pinned() -> None:
    """Those that a gate and its pages need, with hashes; the command that makes it is in it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["gate"], *extras["plots"]]
    wanted += project["build-system"]["requires"]
    there = pinned()
    for text in wanted:
        one = Requirement(text)
        versions = there[canonicalize_name(one.name)]
        assert all(one.specifier.contains(str(v.specifier)[2:]) for v, _ in versions), text
    for versions in there.values():
        assert all(str(told.specifier).startswith("==") and count for told, count in versions)


def test_inputs_are_no_code(workspace: Path) -> None:
    run_action(workspace, RUNS='$(touch made); "; touch made #\n`touch made`')
    assert not (workspace / "made").exists()


# Options of gate that only the command line has.


def gate(workspace: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [BIN / "wbscope", "gate", "--policy", "gate.toml", *words]
    environment = {**os.environ, "WBSCOPE_CACHE_DIR": str(workspace / "cache"), **more}
    return subprocess.run(
        command, cwd=workspace, env=environment, capture_output=True, text=True, check=False
    )


def test_json_stays_one_document(workspace: Path) -> None:
    done = gate(workspace, "worse", "--baseline", "base.json", "--json", "--github")
    assert done.returncode == 1
    assert json.loads(done.stdout)["schema"] == "wbscope.gate/1"
    assert "::error " in done.stderr


def test_what_makes_a_baseline_is_told_where_there_is_none(workspace: Path) -> None:
    done = gate(workspace, "same", "--baseline", "none.json")
    assert done.returncode == 3
    check_error(done.stderr, "no-baseline", "none.json")
    fix = done.stderr.partition("fix: wbscope ")[2].partition("#")[0].split()
    assert fix == ["baseline", "save", "same", "-o", "none.json"]
    subprocess.run([BIN / "wbscope", *fix], cwd=workspace, check=True)
    assert (workspace / "none.json").exists()


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_a_file_that_is_there_is_kept(workspace: Path, option: str) -> None:
    (workspace / "there").write_text("mine")
    words = ("same", "--baseline", "base.json", option, "there")
    done = gate(workspace, *words)
    assert done.returncode == 2
    assert "output-exists" in done.stderr
    assert (workspace / "there").read_text() == "mine"
    assert gate(workspace, *words, "--force").returncode == 0
    assert (workspace / "there").read_text() != "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere",),
        ("same", "--self-check", "--against", "before"),
        ("same", "--baseline", "none.json"),
        (),
    ],
)
def test_what_is_replaced_is_gone_where_there_is_no_verdict(
    workspace: Path, words: tuple[str, ...]
) -> None:
    asked = ("--junit", "gate.xml", "--sarif", "gate.sarif")
    files = [workspace / name for name in ("gate.xml", "gate.sarif")]
    assert gate(workspace, "same", "--baseline", "base.json", *asked).returncode == 0
    yesterday = [file.read_bytes() for file in files]
    assert gate(workspace, *words, *asked).returncode == 2
    assert [file.read_bytes() for file in files] == yesterday
    assert gate(workspace, *words, *asked, "--force").returncode in (2, 3)
    assert not any(file.exists() for file in files)


def test_what_is_no_report_stays_where_there_is_no_verdict(workspace: Path) -> None:
    """Whatever has the name: it is replaced by a verdict, and else by nothing."""
    for name in ("gate.xml", "gate.sarif"):
        (workspace / name).write_text("<testsuites name='mine'/>")
    asked = ("--junit", "gate.xml", "--sarif", "gate.sarif", "--force")
    assert gate(workspace, "nowhere", "--against", "before", *asked).returncode == 3
    done, _ = run_action(workspace, RUNS="nowhere", BASELINE="base.json")
    assert done.returncode == 3
    for name in ("gate.xml", "gate.sarif"):
        assert (workspace / name).read_text() == "<testsuites name='mine'/>"


def test_the_action_never_removes_an_input(workspace: Path) -> None:
    before = (workspace / "base.json").read_bytes()
    done, _ = run_action(workspace, RUNS="same", BASELINE="base.json", JUNIT="base.json")
    assert done.returncode != 0
    assert (workspace / "base.json").read_bytes() == before


def test_an_input_is_never_replaced(workspace: Path) -> None:
    before = (workspace / "base.json").read_text()
    words = ("same", "--baseline", "base.json", "--junit", "base.json", "--force")
    done = gate(workspace, *words)
    assert done.returncode == 2
    assert (workspace / "base.json").read_text() == before
    words = ("same", "--baseline", "base.json", "--junit", "gate.toml", "--force")
    assert gate(workspace, *words).returncode == 2


def test_two_reports_in_one_file(workspace: Path) -> None:
    words = ("same", "--baseline", "base.json", "--junit", "x", "--sarif", "x")
    done = gate(workspace, *words)
    assert done.returncode == 2
    assert "two-reports" in done.stderr


def test_self_check_has_no_base(workspace: Path) -> None:
    done = gate(workspace, "same", "--against", "before", "--self-check")
    assert done.returncode == 2
    assert "--self-check" in done.stderr


def test_a_summary_that_cannot_be_written(workspace: Path) -> None:
    words = ("same", "--baseline", "base.json", "--github")
    done = gate(workspace, *words, GITHUB_STEP_SUMMARY=str(workspace / "no/folder"))
    assert done.returncode == 5
    assert "GITHUB_STEP_SUMMARY" in done.stderr


def test_a_report_stays_where_the_disk_is_at_fault(workspace: Path) -> None:
    """As every result: what was there is whole until the next one is."""
    (workspace / "gate.xml").write_text("of yesterday")
    (workspace / "no-folder").write_text("")
    words = ("same", "--junit", "gate.xml", "--sarif", "no-folder/gate.sarif", "--force")
    assert gate(workspace, *words, "--against", "before").returncode == 5
    assert (workspace / "gate.xml").read_text() == "of yesterday"
