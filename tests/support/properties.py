# SPDX-License-Identifier: Apache-2.0
"""Properties: what has to hold for all inputs, tried on a fixed number that Hypothesis makes.

A commit has examples of its own, the same wherever and however often it is tested. What fails
tells the seed; with WBSCOPE_SEED=N pytest makes the same examples once more.
"""

from __future__ import annotations

import functools
import os
import random
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import SearchStrategy

__all__ = ["SEED", "chances", "for_all", "some"]

_T = TypeVar("_T")
_ROOT = Path(__file__).resolve().parents[2]
_QUICK = bool(os.environ.get("WBSCOPE_QUICK"))  # of make check


def _seed() -> int:
    """Of the commit; 0 where there is none, as in an sdist."""
    if (given_one := os.environ.get("WBSCOPE_SEED")) is not None:
        return int(given_one)
    try:
        told = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(told.stdout[:8], 16)


SEED = _seed()

set_hypothesis_home_dir(_ROOT / "build/hypothesis")
_PROFILE = settings(
    database=None,
    deadline=None,  # no test knows how fast the machine is
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
# Hypothesis likes numbers of the modules that are loaded, which are others after other tests: the
# seed alone would not tell the examples.
assert callable(providers._get_local_constants)
providers._get_local_constants = lambda: providers._local_constants


def some(items: Iterable[_T], case: str = "") -> list[_T]:
    """All of them, in an order that is the commit's; with --part a third, others for each case."""
    found = list(items)
    random.Random(f"{SEED}/{case}").shuffle(found)
    return found[: -(-len(found) // 3)] if "WBSCOPE_PART" in os.environ else found


def for_all(
    examples: int, **inputs: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The test holds for so many examples of its arguments; a tenth of them in make check.

    Other arguments are fixtures, the same for all examples: of those of one test none, for a
    folder `tmp_path_factory`.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def told(*args: Any, **kwargs: Any) -> None:
            note(f"WBSCOPE_SEED={SEED} makes the same examples")
            test(*args, **kwargs)

        count = -(-examples // 10) if _QUICK else examples
        return seed(SEED)(settings(_PROFILE, max_examples=count)(given(**inputs)(told)))

    return decorate


def chances() -> SearchStrategy[Any]:
    """A random.Random for generators that are made by hand: what it draws is shrunk, too."""
    return st.randoms(use_true_random=False)
