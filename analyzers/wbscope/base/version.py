# SPDX-License-Identifier: Apache-2.0
"""The version of wbscope, in one place."""

__all__ = ["__version__"]

__version__ = "0.2.0"
