# SPDX-License-Identifier: Apache-2.0
"""What a run says in words: its verdict, the story of one wait, and what to change."""
