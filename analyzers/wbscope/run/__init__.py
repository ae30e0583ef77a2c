# SPDX-License-Identifier: Apache-2.0
"""A run: where it is, what is asked of it, its report."""
