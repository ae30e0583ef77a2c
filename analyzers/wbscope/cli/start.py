# SPDX-License-Identifier: Apache-2.0
"""The first step of the program: Ctrl-C while it is still imported ends it without a traceback."""

import signal


def main() -> int:
    """Import the program and run the command line; the exit code of the process."""
    python = signal.getsignal(signal.SIGINT)
    # Ignored by who started us, it stays so.
    if python is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from wbscope.cli.main import main as run

    signal.signal(signal.SIGINT, python)
    return run()
