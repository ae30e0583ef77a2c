# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG to put into a page; matplotlib is imported only when one needs it."""
