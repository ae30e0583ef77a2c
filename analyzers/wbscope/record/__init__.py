# SPDX-License-Identifier: Apache-2.0
"""Recording: a run folder from a command, by trace-cmd or by plain tracefs."""
