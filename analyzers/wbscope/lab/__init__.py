# SPDX-License-Identifier: Apache-2.0
"""Experiments: a matrix of settings, n interleaved runs of each, in guests or on machines."""
