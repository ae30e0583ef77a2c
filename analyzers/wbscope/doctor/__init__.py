# SPDX-License-Identifier: Apache-2.0
"""What this machine can record, and the fix for what it cannot."""
