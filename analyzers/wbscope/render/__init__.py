# SPDX-License-Identifier: Apache-2.0
"""Results as text, JSON and CSV; units for people; progress on a terminal."""
