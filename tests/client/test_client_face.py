"""The public face of the SDK."""

import windlass.client


def test_the_public_names_are_sorted_and_exist() -> None:
    """A name in the list that is not there breaks `from windlass.client import *` for everyone."""
    names = windlass.client.__all__
    assert names == sorted(names, key=str)
    assert all(hasattr(windlass.client, name) for name in names)
