# SPDX-License-Identifier: Apache-2.0
"""What a RUN argument is: a folder, a file, an archive, stdin."""
