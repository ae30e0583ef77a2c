# SPDX-License-Identifier: Apache-2.0
"""Runs against runs: what is measured in each, what differs, and the verdict."""
