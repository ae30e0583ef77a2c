# SPDX-License-Identifier: Apache-2.0
"""Statistics over runs: arrays in, numbers out."""
