"""JSON on a page, held against the wire type that a remark above it names."""

import importlib
import json
from typing import Any

import msgspec

from tests.docs.pages import Block


def documents(block: Block) -> list[str]:
    """The JSON documents of a block: one, or one a line."""
    try:
        json.loads(block.body)
    except json.JSONDecodeError:
        return block.body.splitlines()
    return [block.body]


def is_of_its_type(document: str, said: str) -> bool:
    """Whether it is of one of the types (`windlass.wire.frames.ParentFrame or ...`), with nothing they do not know."""
    return any(_fits(document, _type(name.strip())) for name in said.split(" or "))


def _type(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _fits(document: str, wanted: Any) -> bool:
    try:
        decoded = msgspec.json.decode(document, type=wanted)
    except msgspec.MsgspecError:
        return False
    known = json.loads(msgspec.json.encode(decoded))
    return _is_within(json.loads(document), known)


def _is_within(shown: Any, known: Any) -> bool:
    """A page may leave out what has a default, and show nothing else."""
    if isinstance(shown, dict) and isinstance(known, dict):
        return all(name in known and _is_within(value, known[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(known, list):
        return len(shown) == len(known) and all(map(_is_within, shown, known))
    return bool(shown == known)
