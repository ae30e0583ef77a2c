# SPDX-License-Identifier: Apache-2.0
"""Runs a job of a .gitlab-ci.yml as GitLab's shell executor does.

Script lines are one bash with `set -eo pipefail`, begun in the checkout; after_script is another
one that runs whatever happened, and whose end does not count. Artifacts are taken at the end of
both. An exit code that allow_failure names is an orange job.

Source: docs.gitlab.com, "CI/CD YAML syntax reference"; shells/bash.go of gitlab-runner.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

__all__ = ["GitlabJob", "run_gitlab"]

_KEYS = {"stage", "tags", "rules", "variables", "script", "after_script", "allow_failure",
         "artifacts"}  # fmt: skip


@dataclass(frozen=True)
class GitlabJob:
    """A job that has ended.

    colour     green, orange (allowed to fail) or red
    artifacts  what was kept
    junit      the report for the merge request, None without one
    """

    colour: str
    code: int
    artifacts: Path
    junit: Path | None
    log: str


def run_gitlab(template: Path, project: Path, folder: Path, programs: Path) -> GitlabJob:
    """The only job of a template, for a merge request of `project` (a git repository)."""
    (job,) = YAML(typ="safe").load(template.read_text(encoding="utf-8")).values()
    assert set(job) <= _KEYS, set(job) - _KEYS
    checkout, kept = folder / "builds/project", folder / "kept"
    for path in (checkout, kept):
        shutil.rmtree(path, ignore_errors=True)
    kept.mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", project, checkout], check=True)
    revision = subprocess.run(
        ["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder),
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(checkout),
        "CI_COMMIT_SHA": revision,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": revision,
        **job.get("variables", {}),
    }
    code, log = _script(job["script"], checkout, environment)
    _, more = _script(job.get("after_script", []), checkout, environment)
    _keep(job["artifacts"], checkout, kept, code)
    junit = kept / job["artifacts"]["reports"]["junit"]
    allowed = job.get("allow_failure", {}).get("exit_codes", [])
    colour = "green" if code == 0 else "orange" if code in allowed else "red"
    return GitlabJob(colour, code, kept, junit if junit.exists() else None, log + more)


def _script(lines: list[str], checkout: Path, environment: dict[str, str]) -> tuple[int, str]:
    evaluated = (f"eval {shlex.quote(line)}" for line in lines)
    script = "\n".join(["set -eo pipefail", f"cd {shlex.quote(str(checkout))}", *evaluated])
    done = subprocess.run(
        ["bash"],
        input=script,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _keep(artifacts: dict[str, Any], checkout: Path, kept: Path, code: int) -> None:
    if artifacts["when"] != "always" and (code == 0) != (artifacts["when"] == "on_success"):
        return
    for name in [*artifacts["paths"], *artifacts["reports"].values()]:
        there = checkout / name
        if there.is_dir():
            shutil.copytree(there, kept / name)
        elif there.exists():
            shutil.copy(there, kept / name)
