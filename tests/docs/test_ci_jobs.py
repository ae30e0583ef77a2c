# SPDX-License-Identifier: Apache-2.0
"""The jobs of examples/ci, run as GitHub and GitLab run them, on real traces.

Only what records is replaced (support/ci_runs.py), and actions of GitHub's own
(support/github_job.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.ci_runs import Machine
from support.github_job import GithubJob, run_github
from support.gitlab_job import GitlabJob, run_gitlab
from support.runs import REPOSITORY
from support.timeline import packets

CI = REPOSITORY / "examples/ci"
# Runs of 10 s with a spread of 1 %; seconds.
STEADY = [10.0, 10.1, 9.9, 10.05, 9.95, 10.12]
AGAIN = [10.03, 9.93, 10.08, 9.97, 10.06, 9.9]
SLOWER = [value * 1.3 for value in AGAIN]
# Each run is slower than any before: 4 % as estimated, 2 to 6 % by the interval.
A_LITTLE = [10.2, 10.3, 10.35, 10.45, 10.5, 10.75]
WIDE = [9.5, 10.6, 9.7, 10.4, 10.2, 9.4]
WIDE_AGAIN = [10.5, 9.5, 10.3, 9.6, 10.1, 10.6]
# As many as the jobs with a baseline record.
TEN = [10.0, 10.1, 9.9, 10.05, 9.95, 10.12, 9.88, 10.02, 9.98, 10.03]
TEN_AGAIN = [10.03, 9.93, 10.08, 9.97, 10.06, 9.9, 10.11, 9.99, 10.01, 9.96]


class Project:
    """A repository under test that has the examples, and a machine that records its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout = folder / "project"
        self.machine = Machine(folder / "machine")

    def reset(self) -> None:
        """Six runs a side, which take half of the time of ten."""
        shutil.rmtree(self.checkout, ignore_errors=True)
        ci = self.checkout / "ci"
        ci.mkdir(parents=True)
        shutil.copy(CI / "matrix.toml", ci)
        self.expect_runs(6)
        (ci / "workload.sh").write_text("#!/bin/sh\necho the workload ran as $(id -u)\n")
        (ci / "workload.sh").chmod(0o755)
        self.machine.records(STEADY, AGAIN)

    def expect_runs(self, count: int) -> None:
        text = (CI / "gate.toml").read_text()
        assert text.count("expect_runs = 10") == 1
        policy = text.replace("expect_runs = 10", f"expect_runs = {count}")
        (self.checkout / "ci/gate.toml").write_text(policy)

    def commit(self) -> None:
        git = ["git", "-C", self.checkout, "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "init", "-q", self.checkout], check=True)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)

    def github(self, name: str) -> GithubJob:
        self.commit()
        return run_github(CI / name, self.checkout, self.folder / "github", self.machine.bin)

    def gitlab(self, name: str) -> GitlabJob:
        self.commit()
        return run_gitlab(CI / name, self.checkout, self.folder / "gitlab", self.machine.bin)


@pytest.fixture(scope="module")
def kept_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("ci"))


@pytest.fixture
def project(kept_project: Project) -> Project:
    kept_project.reset()
    return kept_project


def in_turns(job: GithubJob) -> None:
    """Runs are uploaded whatever the gate said."""
    assert (job.uploads / "runs/base/run-1/trace.dat").exists(), job.log
    assert (job.uploads / "runs/head/run-6/meta.json").exists()


def suite(junit: Path) -> dict[str, str]:
    return dict(ElementTree.parse(junit).getroot().attrib)


# GitHub: base and head in turns.


@pytest.mark.core
def test_unchanged_code_is_green(project: Project) -> None:
    job = project.github("github-workflow.yml")
    assert job.result == "success", job.log
    assert job.outputs == {"verdict": "passed", "exit-code": "0"}
    assert (job.told("error"), job.told("warning")) == ([], [])
    assert job.summary.startswith("## wbscope gate: PASS")
    assert project.machine.calls == ["lab head/ci/matrix.toml -o runs"]
    # A B B A, whichever is first.
    rounds = [project.machine.order[at : at + 2] for at in range(0, 20, 2)]
    assert len(project.machine.order) == 20
    assert all(set(one) == {"base", "head"} for one in rounds)
    assert all(
        first == second[::-1] for first, second in zip(rounds[::2], rounds[1::2], strict=True)
    )
    in_turns(job)
    assert suite(job.uploads / "wbscope-gate.xml")["failures"] == "0"
    assert job.sarif is not None
    checkouts = (job.uploads.parent / "checkouts").read_text().split("\n")
    assert checkouts[0].strip() == "head"
    assert checkouts[1].startswith("base 0123456789abcdef")
    assert "qemu-system-x86" in (job.uploads.parent / "packages").read_text()


@pytest.mark.core
def test_slower_code_is_red_and_has_its_pages(project: Project) -> None:
    project.machine.records(STEADY, SLOWER, pages=True)
    job = project.github("github-workflow.yml")
    assert job.result == "failure"
    assert job.outputs == {"verdict": "failed", "exit-code": "1"}
    (error,) = (one for one in job.annotations if one.kind == "error")
    assert (error.title, error.file) == ("FAIL: command.duration_ns", "base/ci/gate.toml")
    assert "change +29" in error.message
    assert job.summary.startswith("## wbscope gate: FAIL")
    in_turns(job)
    assert suite(job.uploads / "wbscope-gate.xml")["failures"] == "1"
    assert job.sarif is not None
    (result,) = json.loads(job.sarif.read_text())["runs"][0]["results"]
    assert result["ruleId"] == "command.duration_ns"
    pages = job.uploads / "wbscope-pages"
    assert sorted(page.name for page in pages.iterdir()) == [
        "compare.html", "report.html", "timeline.pftrace",
    ]  # fmt: skip
    assert "duration_ns" in (pages / "compare.html").read_text()
    assert (pages / "report.html").read_text().startswith("<!DOCTYPE html>")
    tracks = {packet.track_descriptor.name for packet in packets(pages / "timeline.pftrace")}
    assert {"A: runs/head/run-1", "B: runs/base/run-1"} <= tracks
    assert "no page" not in job.log


def test_too_wide_a_spread_is_no_red_build(project: Project) -> None:
    project.machine.records(WIDE, WIDE_AGAIN)
    job = project.github("github-workflow.yml")
    assert job.result == "success", job.log
    assert job.outputs == {"verdict": "inconclusive", "exit-code": "4"}
    assert job.told("error") == []
    assert job.told("warning") == ["INCONCLUSIVE: command.duration_ns", "wbscope gate"]
    (metric, _) = (one for one in job.annotations if one.kind == "warning")
    assert "unchanged code would pass 4 times in 5" in metric.message
    assert job.summary.startswith("## wbscope gate: INCONCLUSIVE")
    # How often that will be, and what would help.
    expected = next(one for one in job.log.split("\n") if one.startswith("expected: "))
    assert "unchanged code would pass " in expected
    assert "runs a side each metric would pass 8 of 10 times" in expected
    assert expected in job.summary.replace("\\", "")
    in_turns(job)
    assert suite(job.uploads / "wbscope-gate.xml")["failures"] == "0"


def test_surely_worse_is_red(project: Project) -> None:
    project.machine.records(STEADY, A_LITTLE)
    job = project.github("github-workflow.yml")
    assert job.result == "failure", job.log
    assert job.outputs == {"verdict": "worse", "exit-code": "4"}
    assert "WORSE: command.duration_ns" in job.told("warning")
    assert job.summary.startswith("## wbscope gate: WORSE")
    in_turns(job)
    assert suite(job.uploads / "wbscope-gate.xml")["failures"] == "1"


def test_another_setting_is_refused_and_red(project: Project) -> None:
    project.machine.records(STEADY, AGAIN, sources=("before-2", "lower-2"))
    job = project.github("github-workflow.yml")
    assert job.result == "failure"
    assert job.outputs == {"verdict": "refused", "exit-code": "4"}
    assert any(title.startswith("REFUSED: ") for title in job.told("error"))
    assert "sysctl.vm.dirty_bytes" in job.summary.replace("\\", "")
    in_turns(job)


def test_a_run_that_left_nothing_is_red(project: Project) -> None:
    for file in (project.machine.recorded / "head/run-5").iterdir():
        file.unlink()
    job = project.github("github-workflow.yml")
    assert job.result == "failure"
    assert job.outputs == {"verdict": "error", "exit-code": "3"}
    assert "error[no-trace]: runs/head/run-5" in job.log
    assert job.told("error") == ["wbscope gate"]
    assert (job.sarif, job.summary) == (None, "")
    in_turns(job)
    assert not (job.uploads / "wbscope-gate.xml").exists()


def test_a_run_too_few_is_red(project: Project) -> None:
    shutil.rmtree(project.machine.recorded / "head/run-5")
    job = project.github("github-workflow.yml")
    assert (job.result, job.outputs["verdict"]) == ("failure", "refused")
    assert "REFUSED: number-of-runs" in job.told("error")


def test_a_wrong_policy_is_red(project: Project) -> None:
    (project.checkout / "ci/gate.toml").write_text('[metrics."command.duration_ns"]\nmargn = "5%"')
    job = project.github("github-workflow.yml")
    assert job.result == "failure"
    assert job.outputs == {"verdict": "error", "exit-code": "2"}
    assert "margn" in job.log
    in_turns(job)


def test_a_recording_that_fails_is_red_and_is_not_judged(project: Project) -> None:
    (project.checkout / "ci/matrix.toml").unlink()
    job = project.github("github-workflow.yml")
    assert job.result == "failure"
    assert "Gate" not in job.steps
    assert (job.sarif, job.outputs.get("verdict", "")) == (None, "")


# GitHub: a stored baseline.


@pytest.fixture
def ten(project: Project) -> Project:
    """As shipped: ten runs."""
    project.expect_runs(10)
    project.machine.records(TEN, TEN_AGAIN)
    return project


def test_the_first_job_tells_how_to_accept_a_baseline(ten: Project) -> None:
    job = ten.github("github-baseline.yml")
    assert job.result == "failure"
    assert job.outputs == {"verdict": "no-baseline", "exit-code": "3"}
    accept = "mkdir -p ci && cp wbscope-baseline.json ci/baseline.json && git add ci/baseline.json"
    (error,) = (one for one in job.annotations if one.kind == "error")
    assert error.title == "No baseline yet"
    assert accept in error.message
    assert accept in job.summary
    assert "self-check: " in job.log, job.log
    # As the message says.
    shutil.copy(job.uploads / "wbscope-baseline.json", ten.checkout)
    subprocess.run(["bash", "-ec", accept], cwd=ten.checkout, check=True)
    ten.machine.records(TEN_AGAIN, TEN, name="next")
    job = ten.github("github-baseline.yml")
    assert (job.result, job.outputs["verdict"]) == ("success", "passed"), job.log
    assert len(ten.machine.calls) == 10
    assert job.log.count("the workload ran as") == 10
    assert (job.uploads / "runs/10/trace.dat").exists()
    assert not (job.uploads / "wbscope-baseline.json").exists()


# GitLab.


def test_gitlab_unchanged_code_is_green(project: Project) -> None:
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code) == ("green", 0), job.log
    assert project.machine.calls == ["lab head/ci/matrix.toml -o runs"]
    assert job.junit is not None
    assert suite(job.junit)["failures"] == "0"
    assert sorted(page.name for page in (job.artifacts / "pages").iterdir()) == [
        "compare.html", "report.html", "timeline.pftrace",
    ]  # fmt: skip


def test_gitlab_slower_code_is_red(project: Project) -> None:
    project.machine.records(STEADY, SLOWER)
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code) == ("red", 1)
    assert job.junit is not None
    assert suite(job.junit)["failures"] == "1"
    assert (job.artifacts / "runs/head/run-1/trace.dat").exists()


def test_gitlab_surely_worse_is_red(project: Project) -> None:
    project.machine.records(STEADY, A_LITTLE)
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code) == ("red", 4), job.log


def test_gitlab_too_wide_a_spread_is_orange(project: Project) -> None:
    project.machine.records(WIDE, WIDE_AGAIN)
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code) == ("orange", 75)
    assert "expected: unchanged code would pass " in job.log
    assert job.junit is not None
    assert suite(job.junit)["failures"] == "0"


def test_gitlab_what_is_refused_is_red(project: Project) -> None:
    project.machine.records(STEADY, AGAIN, sources=("before-2", "lower-2"))
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code) == ("red", 4)
    assert job.junit is not None
    assert suite(job.junit)["errors"] != "0"


def test_gitlab_a_run_that_left_nothing_is_red(project: Project) -> None:
    for file in (project.machine.recorded / "head/run-5").iterdir():
        file.unlink()
    job = project.gitlab("gitlab-ci.yml")
    assert (job.colour, job.code, job.junit) == ("red", 3, None)
    assert "error[no-trace]: runs/head/run-5" in job.log


def test_gitlab_the_first_job_has_no_baseline(ten: Project) -> None:
    job = ten.gitlab("gitlab-baseline.yml")
    assert (job.colour, job.code, job.junit) == ("red", 3, None)
    assert "error[no-baseline]: ci/baseline.json: does not exist" in job.log
    accept = "cp pages/baseline.json ci/baseline.json && git add ci/baseline.json"
    assert accept in job.log
    shutil.copytree(job.artifacts / "pages", ten.checkout / "pages")
    (ten.checkout / ".gitignore").write_text("pages\n")
    subprocess.run(["bash", "-ec", accept], cwd=ten.checkout, check=True)
    ten.machine.records(TEN_AGAIN, TEN, name="next")
    job = ten.gitlab("gitlab-baseline.yml")
    assert (job.colour, job.code) == ("green", 0), job.log
    assert job.log.count("the workload ran as") == 10
