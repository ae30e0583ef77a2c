# SPDX-License-Identifier: Apache-2.0
"""From a trace to a database or a Perfetto trace, by the program wbscope-ingest."""
