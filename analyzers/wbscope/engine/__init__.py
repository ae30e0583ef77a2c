# SPDX-License-Identifier: Apache-2.0
"""Open a database, build the library's views on it, run one SELECT."""
