# SPDX-License-Identifier: Apache-2.0
"""The ground: errors, units, results, outputs, the cache. Imports nothing above it."""
