"""What an ablation is: a safeguard's removal, and who must notice."""

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Ablation(NamedTuple):
    """`last_found` is the seed that found it last: tried first, to save time, not to prove anything."""

    remove: Callable[[pytest.MonkeyPatch], None]
    found_by: tuple[str, ...]
    last_found: int = 0

    @property
    def name(self) -> str:
        return self.remove.__name__.replace("_", " ")

    @property
    def harm(self) -> str:
        """What is wrong in the world without the safeguard."""
        return (self.remove.__doc__ or "").strip()
