"""Rendered texts are remembered, and only so many of them."""

import asyncio

import pytest

from windlass import limits
from windlass.errors import TooMany
from windlass.server.rendered import Rendered


async def test_a_text_is_rendered_once() -> None:
    """Everyone who opens a conversation would have all of it rendered again."""
    rendered = Rendered()
    assert await rendered.html("*a*") is await rendered.html("*a*")


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is looked at for months would fill its memory with HTML (A38)."""
    monkeypatch.setattr(limits, "MARKDOWN_ENTRY_CHARACTERS", 0)
    monkeypatch.setattr(limits, "MARKDOWN_REMEMBERED_CHARACTERS", 100)
    rendered = Rendered()
    first = await rendered.html("text 0")
    for number in range(1, 50):
        await rendered.html(f"text {number}")
    assert sum(map(len, rendered._html.values())) <= 100
    assert await rendered.html("text 0") is not first


async def test_the_one_used_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversation that everyone looks at would be forgotten first."""
    monkeypatch.setattr(limits, "MARKDOWN_ENTRY_CHARACTERS", 0)
    monkeypatch.setattr(limits, "MARKDOWN_REMEMBERED_CHARACTERS", 40)  # two of them
    rendered = Rendered()
    first = await rendered.html("text a")
    await rendered.html("text b")
    await rendered.html("text a")
    await rendered.html("text c")
    assert await rendered.html("text a") is first


async def test_the_same_text_asked_for_at_once_is_remembered_once() -> None:
    """Its size would be counted twice, and the bound be reached with half of what fits."""
    rendered = Rendered()
    await asyncio.gather(*(rendered.html("*a*") for _ in range(5)))
    assert rendered._size == len(await rendered.html("*a*")) + limits.MARKDOWN_ENTRY_CHARACTERS


async def test_texts_of_which_nothing_is_left_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A definition of a link renders to nothing: a stream of them would be remembered for ever (A38)."""
    monkeypatch.setattr(limits, "MARKDOWN_REMEMBERED_CHARACTERS", 20 * limits.MARKDOWN_ENTRY_CHARACTERS)
    rendered = Rendered()
    for number in range(50):
        assert await rendered.html(f"[{number}]: http://example.com") == ""
    assert len(rendered._html) <= 20


async def test_only_so_many_texts_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests whose clients have left go on: their texts would pile up faster than they are rendered (A38)."""
    monkeypatch.setattr(limits, "MARKDOWN_WAITING", 2)
    rendered = Rendered()
    asked = [asyncio.create_task(rendered.html(f"text {number}")) for number in range(5)]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(result) for result in results] == [str, str, str, TooMany, TooMany]
    assert await rendered.html("text 9")
