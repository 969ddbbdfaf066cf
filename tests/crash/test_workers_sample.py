"""A small sample of the workers' crash suite; `make crash` kills fifty servers."""

from pathlib import Path

import pytest

from .workers import BOUND_SECONDS, run_rounds


@pytest.mark.timeout(120)
async def test_nothing_of_a_killed_server_is_alive_five_seconds_later(tmp_path: Path) -> None:
    """B36 I22: else every crash leaves agents that nobody can see or stop."""
    took, left = await run_rounds(2, 7, tmp_path)
    assert left == []
    assert max(took) < BOUND_SECONDS
