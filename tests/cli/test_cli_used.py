"""What people are told of tokens and money."""

import pytest

from windlass.cli.used import used


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ((12_345, 678, 10_000, 0.0421), "12,345 tokens in (10,000 from the cache), 678 out, cost 0.0421"),
        ((5, 0, 0, 0.0), "5 tokens in, 0 out"),
        ((1, 96, 0, 0.0), "1 token in, 96 out"),
    ],
)
def test_what_was_used_is_told_with_what_came_from_the_cache(figures: tuple[int, int, int, float], told: str) -> None:
    """Else nobody sees whether the provider's cache works, which is most of what a long session costs."""
    assert used(*figures) == told
