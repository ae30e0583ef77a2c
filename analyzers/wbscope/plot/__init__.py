# SPDX-License-Identifier: Apache-2.0
"""Plots by matplotlib, as SVG to put into a page; imported only when one is wanted."""
