# SPDX-License-Identifier: Apache-2.0
"""The verdict of a gate in the formats that CI systems read."""
