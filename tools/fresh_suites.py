# SPDX-License-Identifier: Apache-2.0
"""Systems that debootstrap makes a minimal root of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BOOKWORM", "ELSEWHERE", "MIRROR", "Suite"]

MIRROR = "http://deb.debian.org/debian"
_UBUNTU = "http://archive.ubuntu.com/ubuntu"
_SCRIPTS = "/usr/share/debootstrap/scripts"


@dataclass(frozen=True)
class Suite:
    """One of them: what it is called, where its packages are, and who signs for them."""

    name: str
    title: str
    mirror: str = MIRROR
    components: tuple[str, ...] = ("main",)
    keyring: str = "/usr/share/keyrings/debian-archive-keyring.gpg"
    script: str = ""  # of another suite, which fits a debootstrap that is older than this one

    def why_not(self) -> str | None:
        """Why no root can be made of it here, if that can be told before."""
        return None if Path(self.keyring).is_file() else f"there is no {self.keyring}"

    def words(self) -> list[str]:
        """What debootstrap is told beside the suite, the folder and the mirror."""
        return [f"--keyring={self.keyring}", f"--components={','.join(self.components)}"]

    def script_words(self) -> list[str]:
        """What comes behind them."""
        return [f"{_SCRIPTS}/{self.script}"] if self.script else []


BOOKWORM = Suite("bookworm", "Debian 12")
# Where the wheel is tried, too.
ELSEWHERE = (
    Suite("trixie", "Debian 13"),
    Suite(
        "noble",
        "Ubuntu 24.04",
        _UBUNTU,
        ("main", "universe"),
        "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
        "jammy",
    ),
)
