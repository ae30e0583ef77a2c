# SPDX-License-Identifier: Apache-2.0
"""The SQL library over a database: its files, views, sessions."""
