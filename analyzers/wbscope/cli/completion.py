# SPDX-License-Identifier: Apache-2.0
"""wbscope completion: what makes Tab work in a shell."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wbscope.cli.output import write_stdout

__all__ = ["Shell", "completion"]

_SCRIPTS = Path(__file__).with_name("completions")


class Shell(StrEnum):
    """Which one; the name of its script is that of the file that the shell looks for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"

    @property
    def script(self) -> Path:
        """What it reads."""
        names = {"bash": "wbscope.bash", "zsh": "_wbscope", "fish": "wbscope.fish"}
        return _SCRIPTS / names[self.value]


def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.", show_default=False)],
) -> None:
    """Print the script that completes words of wbscope in a shell.

    Commands, options, queries, columns, metrics, figures; of a RUN that was read
    before, its events, tasks, bdis and cgroups. The .deb installs the scripts.

    \b
    Examples:
      eval "$(wbscope completion bash)"    # in this shell; for all of them:
      wbscope completion bash > ~/.local/share/bash-completion/completions/wbscope
      wbscope completion fish > ~/.config/fish/completions/wbscope.fish
      wbscope completion zsh > ~/.zfunc/_wbscope    # fpath=(~/.zfunc $fpath)
    """
    write_stdout(shell.script.read_text(encoding="utf-8"))
