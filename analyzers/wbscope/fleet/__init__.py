# SPDX-License-Identifier: Apache-2.0
"""Many runs of many machines as one dataset of Parquet files, and what it is asked."""
