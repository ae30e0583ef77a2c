# SPDX-License-Identifier: Apache-2.0
"""The timeline of a run as a Perfetto trace."""
