# SPDX-License-Identifier: Apache-2.0
"""Test support: synthetic traces, independent oracles and the Perfetto engine."""
