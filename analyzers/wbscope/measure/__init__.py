# SPDX-License-Identifier: Apache-2.0
"""What other tools measured in a run: fio, perf stat, time, /proc/vmstat, lines of one's own."""

from wbscope.measure.collect import Measured, measurements
from wbscope.measure.files import files_of_folder, files_of_run
from wbscope.measure.known_metrics import TOOLS

__all__ = ["TOOLS", "Measured", "files_of_folder", "files_of_run", "measurements"]
