# SPDX-License-Identifier: Apache-2.0
"""The prompt of `wbscope sql RUN`."""

from wbscope.cli.shell.loop import Shell

__all__ = ["Shell"]
