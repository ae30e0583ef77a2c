# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces: read by Perfetto's own trace processor, loaded into a run database."""
