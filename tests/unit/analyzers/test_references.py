# SPDX-License-Identifier: Apache-2.0
"""What the captured event formats tell of traces that have none."""

from __future__ import annotations

import pytest
from wbscope.perfetto.stream import load_references


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("balance_dirty_pages", "writeback"),
        ("global_dirty_state", "writeback"),
        ("block_touch_buffer", "block"),  # by its first word: no kernel's format is there
        ("cpu_frequency", ""),
    ],
)
def test_system(name: str, system: str) -> None:
    assert load_references("6.1.0").system_of(name) == system


def test_types_come_from_the_nearest_kernel_that_has_the_field() -> None:
    types = load_references("7.2.13").types("vmscan", "mm_vmscan_write_folio")
    assert types["pfn"] == "unsigned long"
    both = load_references("6.12.1").types("vmscan", "mm_shrink_slab_start")
    assert both["shrink"] == "void *"
    assert load_references("6.1").types("block", "block_rq_issue")["dev"] == "dev_t"


def test_labels_of_the_release_itself_and_between_two_that_differ() -> None:
    def reasons(release: str) -> dict[int, str]:
        labels = load_references(release).labels("writeback", "writeback_start")
        return {label.value: label.label for label in labels if label.field == "reason"}

    assert reasons("6.1.0-56-cloud-amd64")[7] == "foreign_flush"
    assert reasons("4.4.1")[5] == "free_more_memory"
    # 4.15 took free_more_memory out, so 5 means two things between 4.4 and 5.10.
    assert 5 not in reasons("4.19.0")
    assert reasons("4.19.0")[0] == "background"
    assert 5 not in reasons("")
