# SPDX-License-Identifier: Apache-2.0
"""How this machine reaches its registries, for a root in a folder: apt, pip, npm, certificates.

Only how they are reached: other sources of packages, pins and hooks would not be a fresh Debian.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from fresh_suites import Suite

__all__ = ["environment", "hand_in", "local_folders", "mirror"]

_COMPONENT = "main"
_HOME = Path.home()
# The same place in the root; what is in the home folder, in root's.
_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/npmrc")
_OF_HOME = (".npmrc", ".config/pip", ".pip")
_FOLDERS = (
    "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/apt/keyrings", "/etc/apt/trusted.gpg",
    "/etc/apt/trusted.gpg.d", "/usr/local/share/ca-certificates",
)  # fmt: skip
_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_VARIABLES = re.compile(
    r"PIP_\w+|(?:https?|ftp|no|all)_proxy|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS"
    r"|(?:CURL|REQUESTS)_CA_BUNDLE|GIT_SSL_CAINFO|npm_config_\w+",
    re.IGNORECASE,
)
# Of apt's settings, how a file is fetched; not the lists of index files, which have a default.
_FETCHING = re.compile(
    r'^(?:Acquire::(?!IndexTargets|CompressionTypes|Changelogs)|APT::Sandbox::User ).*";$'
)


def environment() -> dict[str, str]:
    """The variables that say how a registry is reached."""
    return {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}


def local_folders() -> list[str]:
    """Folders of the machine that a setting of pip names."""
    words = os.environ.get("PIP_FIND_LINKS", "").split()
    return [word for word in words if word.startswith("/") and Path(word).is_dir()]


def sources() -> list[tuple[str, str, str]]:
    """URI, suite and component of the machine's package sources."""
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = _said("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    rows = (line.split() for line in listed.splitlines())
    return list(dict.fromkeys((row[0], row[1], row[2]) for row in rows if len(row) == 3))


def mirror(suite: str) -> str | None:
    """The machine's own for this suite."""
    return next((uri for uri, name, part in sources() if (name, part) == (suite, _COMPONENT)), None)


def hand_in(root: Path, suite: Suite) -> None:
    """Put the settings into the root."""
    for name in (*_FILES, *_FOLDERS):
        _copy(Path(name), root / name.lstrip("/"))
    for name in _OF_HOME:
        _copy(_HOME / name, root / "root" / name)
    if _BUNDLE.is_file():
        _copy(_BUNDLE.resolve(), root / str(_BUNDLE).lstrip("/"))
    of_suite = [
        f"deb {uri} {name} {part}\n"
        for uri, name, part in sources()
        if part == _COMPONENT and name.startswith(suite.name)
    ]
    parts = " ".join(suite.components)
    text = "".join(of_suite) or f"deb {suite.mirror} {suite.name} {parts}\n"
    (root / "etc/apt/sources.list").write_text(text, encoding="utf-8")
    dumped = _said("apt-config", "dump").splitlines()
    kept = [line for line in dumped if _FETCHING.match(line)]
    (root / "etc/apt/apt.conf.d/99machine").write_text("\n".join([*kept, ""]), encoding="utf-8")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # it may be a link to a place outside
        shutil.copy2(source, target)


def _said(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""  # a machine without apt
