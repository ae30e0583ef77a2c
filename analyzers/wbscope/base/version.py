# SPDX-License-Identifier: Apache-2.0
"""The version of wbscope, in one place."""

__version__ = "0.2.0"
