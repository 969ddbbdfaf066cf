"""Streams, checked byte by byte: each is a stretch of the log without gap or repeat, never ahead of the disk.

I12, I13, I16, and B24 for what a stream is greeted with.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from windlass.testing.history import Chunk, Connection, History
from windlass.testing.shown_text import ShownText, TextViolation
from windlass.wire.runs import TERMINAL_STATES

_Event = dict[str, Any]
_decode = msgspec.json.Decoder(_Event).decode
_DATA = b"data: "
_TOLD_SECONDS = 0.05  # longer than the loop waits to hear of a commit


def check_streams(history: History) -> None:
    for connection in history.connections:
        try:
            _Checked(history, connection).check()
        except StreamViolation as problem:
            history.violate(problem.invariant, f"{connection}: {problem}")
        except TextViolation as problem:
            history.violate("I16", f"{connection}: {problem}")


class StreamViolation(Exception):
    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(text)
        self.invariant = invariant


def events(data: bytes) -> Iterator[bytes]:
    """The events of a piece of a stream, each with its ending."""
    for event in data.split(b"\n\n"):
        if event and not event.startswith(b":"):
            yield event + b"\n\n"


class _Checked:
    """One connection: `expected` is the number of the fact that must come next."""

    def __init__(self, history: History, connection: Connection) -> None:
        self._history = history
        self._ledger = history.ledgers[connection.workspace_id]
        self._connection = connection
        self._expected = 0
        self._shown = ShownText(connection.deltas)

    def check(self) -> None:
        self._check_greeting()
        for chunk in self._connection.chunks:
            for event in events(chunk.data):
                if event.startswith(b"id: "):
                    self._check_fact(event, chunk)
                else:
                    self._check_plain(_decode(event[len(_DATA) :]), chunk)
        if self._connection.complete and self._expected != len(self._ledger.facts) + 1:
            raise StreamViolation("I13", f"it was left open and ended before #{self._expected}")

    # -- the greeting -------------------------------------------------------------------------------------------------

    def _check_greeting(self) -> None:
        connection, ledger = self._connection, self._ledger
        greeting = [_decode(event[len(_DATA) :]) for event in events(connection.greeting)]
        hello = greeting[0]["payload"]["payload"]
        if hello["epoch"] != ledger.epoch:
            raise StreamViolation("I13", f"hello of another log: {hello['epoch']}")
        if hello["head"] and ledger.facts[hello["head"] - 1].at > connection.opened:
            raise StreamViolation("I12", f"hello told of #{hello['head']} before it was on disk")
        self._check_hello(hello)
        self._check_floor(hello["floor"])
        is_foreign = connection.epoch not in ("", ledger.epoch)
        if is_foreign and len(greeting) == 1:
            raise StreamViolation("I13", f"a place in the log {connection.epoch!r} was taken for one in this")
        if len(greeting) > 1:
            reset = greeting[1]["payload"]["payload"]
            can_go_on = connection.after is None or connection.after >= ledger.floor(connection.opened)
            if can_go_on and not is_foreign:
                raise StreamViolation("I13", f"it was reset without need: {reset}")
            self._expected = reset["head"] + 1
        elif connection.after is None:
            self._expected = hello["head"] + 1
        else:
            self._expected = (connection.after or hello["floor"]) + 1

    def _check_floor(self, told: int) -> None:
        """Where the log begins is told soon after a trim, and not before it is on disk (B41)."""
        connection, ledger = self._connection, self._ledger
        known = ledger.floor_since(connection.opened_time - _TOLD_SECONDS)
        if connection.opened_life in self._history.poisoned:
            known = 0  # a disk that refused may have trimmed all the same, and nobody in this process can know
        if not known <= told <= ledger.floor(connection.opened):
            raise StreamViolation("B41", f"hello says the log begins after #{told}: {self._ledger.floors}")

    def _check_hello(self, hello: dict[str, Any]) -> None:
        """What it says is open is what was open at its head (B24)."""
        runs: dict[str, Any] = {}
        permissions: dict[str, Any] = {}
        questions: dict[str, Any] = {}
        for stored in self._ledger.facts[: hello["head"]]:
            kind, body = stored.row.kind, stored.body
            if kind == "run":
                runs[body["id"]] = body
                if body["state"] in TERMINAL_STATES:
                    del runs[body["id"]]
            elif kind == "permission_request":
                permissions[body["id"]] = body
            elif kind == "permission_notification" and body["outcome"] != "asked":
                permissions.pop(body["id"], None)
            elif kind == "question_batch_request":
                questions[body["id"]] = body
            elif kind == "question_batch_notification":
                questions.pop(body["batch_id"], None)
        for name, expected in (("runs", runs), ("permissions", permissions), ("questions", questions)):
            if {body["id"]: body for body in hello[name]} != expected:
                raise StreamViolation("B24", f"hello at #{hello['head']} has {name} {hello[name]}, not {expected}")

    # -- events -------------------------------------------------------------------------------------------------------

    def _check_fact(self, event: bytes, chunk: Chunk) -> None:
        epoch, _, number = event[4 : event.index(b"\n")].decode().partition(".")
        seq = int(number)
        if epoch != self._ledger.epoch or seq != self._expected:
            raise StreamViolation("I13", f"#{epoch}.{seq} came where #{self._expected} was next")
        self._expected += 1
        if seq > len(self._ledger.facts) or self._ledger.facts[seq - 1].at > chunk.at:
            raise StreamViolation("I12", f"#{seq} came before it was on disk")
        stored = self._ledger.facts[seq - 1]
        if event != stored.event and not self._was_emptied(stored.row.session, chunk):
            raise StreamViolation("I13", f"#{seq} is not what is on disk: {event!r}")
        if stored.row.kind == "message" and event == stored.event:
            self._shown.fact(stored.body, catching_up=chunk.behind or chunk.joined)

    def _was_emptied(self, session: str, chunk: Chunk) -> bool:
        deleted = self._ledger.deleted.get(session)
        return deleted is not None and deleted <= chunk.at

    def _check_plain(self, event: dict[str, Any], chunk: Chunk) -> None:
        payload = event["payload"]["payload"]
        match event["type"]:
            case "message_delta":
                self._shown.delta(payload)
            case "message":
                self._shown.whole(payload, joined=chunk.joined)
            case "reset":
                if self._ledger.floor(chunk.at) < self._expected:
                    raise StreamViolation("I13", f"it was reset without need at #{self._expected}")
                self._expected = payload["head"] + 1
                self._shown.forget()
            case "presence":
                pass
            case kind:
                raise StreamViolation("I13", f"an event of kind {kind!r} without a number")
