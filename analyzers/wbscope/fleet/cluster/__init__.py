# SPDX-License-Identifier: Apache-2.0
"""A dataset by the executors of a Spark cluster, and on the file systems that Hadoop knows."""
