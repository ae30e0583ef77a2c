# SPDX-License-Identifier: Apache-2.0
"""A run in the Perfetto UI: the link, the commands it carries, the server of the file."""
