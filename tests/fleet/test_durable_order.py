"""What is synced, and when. A kill does not show this (the page cache survives it); the order of calls does.

The calls are the real ones; they are only written down as they pass.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fleet.mailbox_kit import a_mail
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.fleet.store.store import Store
from windlass.wire.agents import AgentSession


class Calls:
    """The system calls that matter to what survives a power cut, in order, each with the place it acted on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        for name in ("fsync", "link", "rename", "replace", "unlink"):
            monkeypatch.setattr(os, name, self._noted(name, getattr(os, name)))

    def _noted(self, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            target = arguments[-1] if name != "unlink" else arguments[0]
            path = Path(os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else target)
            place = path.name if path.is_dir() or name == "replace" else f"{path.parent.name}/*"
            result = plain(*arguments, **options)
            self.made.append(f"{name} {place}")
            return result

        return call


@pytest.fixture
def box(tmp_path: Path) -> Mailbox:
    made = Mailbox(tmp_path / "box")
    made.deliver(a_mail("first"))  # makes the directories and reserves numbers, once
    return made


def test_a_message_is_on_disk_before_it_has_a_name_and_its_name_before_its_sender_is_told(
    box: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B71: a power cut would leave an empty message, or none although its sender was told that it is safe."""
    calls = Calls(monkeypatch)
    box.deliver(a_mail("second"))
    assert calls.made == ["fsync tmp/*", "link new/*", "rename ids/*", "fsync new"]


def test_a_message_that_was_there_already_is_synced_again(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """B71: whoever delivered it first may have been killed between the name and the sync."""
    calls = Calls(monkeypatch)
    box.deliver(a_mail("first"))
    assert calls.made[-1] == "fsync new"
    box.claim()
    calls.made.clear()
    box.deliver(a_mail("first"))
    assert "fsync cur" in calls.made


def test_a_claim_is_counted_on_disk_before_its_reader_has_it(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """B71: a message that takes the machine down with it would come for ever, each time for the first time."""
    calls = Calls(monkeypatch)
    box.claim()
    assert calls.made == ["rename cur/*", "fsync cur", "fsync new"]


def test_acks_of_many_are_one_sync(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """B71: an ack is durable when it returns; what was done would be done again otherwise."""
    box.deliver(a_mail("second"))
    claims = box.claim(2)
    calls = Calls(monkeypatch)
    box.ack(*claims)
    assert calls.made == ["unlink cur/*", "unlink ids/*"] * 2 + ["fsync cur"]


def test_a_session_is_replaced_only_by_one_that_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B70: a power cut would leave an empty file where a whole session was."""
    store = Store(tmp_path / "agents")
    session = AgentSession("agent", "idle", payload=msgspec.Raw(b"1"))
    store.save(Path("/a"), "kid", session, parent="top")
    calls = Calls(monkeypatch)
    store.save(Path("/a"), "kid", session)
    assert calls.made == [
        *("fsync kid/*", "replace session.json", "fsync kid"),
        *("fsync top/*", "replace children.json", "fsync top"),
    ]
