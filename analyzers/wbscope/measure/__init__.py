# SPDX-License-Identifier: Apache-2.0
"""What other tools measured in a run: fio, perf stat, time, /proc/vmstat, lines of one's own."""

from wbscope.measure.files import Measured, files_of_folder, files_of_run, measurements
from wbscope.measure.metric import TOOLS

__all__ = ["TOOLS", "Measured", "files_of_folder", "files_of_run", "measurements"]
