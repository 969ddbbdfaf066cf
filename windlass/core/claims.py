"""Who keeps a workspace open: clients that just created it, that have a stream, or whose last stream just dropped.

Timers belong to the engine. A hold has an identity that its timer carries, so that an old timer cannot hurt a newer
claim of the same client (R30, R31). Claims and presence are memory only.
"""

from typing import Literal

import msgspec

from windlass import limits
from windlass.errors import Conflict, TooMany


class Hold(msgspec.Struct, frozen=True):
    """A claim that ends by itself: after a create until the first stream, or after the last stream dropped."""

    number: int
    client_id: str
    kind: Literal["create", "detach"]


class _Client:
    __slots__ = ("hold", "session_id", "streams")

    def __init__(self) -> None:
        self.hold: Hold | None = None
        self.streams: set[int] = set()
        self.session_id = ""


class Claims:
    """The claims on one workspace, and which session each attached client looks at."""

    def __init__(self) -> None:
        self._clients: dict[str, _Client] = {}
        self._next_hold = 1
        self._next_stream = 1

    @property
    def held(self) -> bool:
        return bool(self._clients)

    @property
    def client_ids(self) -> list[str]:
        return list(self._clients)

    def is_attached(self, client_id: str, stream: int) -> bool:
        """Whether this stream is still a claim: not after its client was released."""
        client = self._clients.get(client_id)
        return client is not None and stream in client.streams

    def create(self, client_id: str) -> Hold | None:
        """The client created the workspace: hold it until its first stream. None when it has a stream already."""
        client = self._client(client_id)
        return None if client.streams else self._hold(client_id, client, "create")

    def attach(self, client_id: str) -> int:
        """The client opened a stream: that is its claim from now on. Returns the stream's number."""
        client = self._client(client_id)
        if len(client.streams) >= limits.STREAMS_PER_CLIENT:
            raise TooMany(f"This client already has {len(client.streams)} streams open. Close one first.")
        number = self._next_stream
        self._next_stream += 1
        client.streams.add(number)
        client.hold = None
        return number

    def detach(self, client_id: str, stream: int) -> Hold | None:
        """A stream ended. If it was the client's last one, the workspace is held for a short while longer (R39)."""
        client = self._clients.get(client_id)
        if client is None or stream not in client.streams:
            return None
        client.streams.discard(stream)
        if client.streams:
            return None
        client.session_id = ""
        return self._hold(client_id, client, "detach")

    def expire(self, hold: Hold) -> bool:
        """A hold's time is over. False when a newer claim replaced it: then nothing happens."""
        client = self._clients.get(hold.client_id)
        if client is None or client.hold != hold:
            return False
        del self._clients[hold.client_id]
        return True

    def release(self, client_id: str) -> bool:
        """The client says goodbye: all of its claims go at once. False when it had none."""
        return self._clients.pop(client_id, None) is not None

    def look_at(self, client_id: str, session_id: str) -> str:
        """The client shows this session now ("" for none); returns the one it showed before."""
        client = self._clients.get(client_id)
        if client is None or not client.streams:
            raise Conflict("This client has no live event stream here. Open the stream first.")
        before = client.session_id
        client.session_id = session_id
        return before

    def looking_at(self, client_id: str) -> str:
        client = self._clients.get(client_id)
        return "" if client is None else client.session_id

    def attached_clients(self, session_id: str) -> int:
        return sum(1 for client in self._clients.values() if client.session_id == session_id)

    def _client(self, client_id: str) -> _Client:
        client = self._clients.get(client_id)
        if client is None:
            if len(self._clients) >= limits.CLIENTS_PER_WORKSPACE:
                raise TooMany("Too many clients are attached to this workspace.", retry_after=10)
            client = self._clients[client_id] = _Client()
        return client

    def _hold(self, client_id: str, client: _Client, kind: Literal["create", "detach"]) -> Hold:
        hold = Hold(self._next_hold, client_id, kind)
        self._next_hold += 1
        client.hold = hold
        return hold


class Retired:
    """Clients that said goodbye for good, remembered for a while so that a late create is refused (R33, R34)."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, client_id: str, now: float) -> None:
        self._until.pop(client_id, None)
        self._until[client_id] = now + limits.RETIRED_SECONDS
        while len(self._until) > limits.RETIRED_CLIENTS:
            del self._until[next(iter(self._until))]

    def holds(self, client_id: str, now: float) -> bool:
        until = self._until.get(client_id)
        if until is None:
            return False
        if until <= now:
            del self._until[client_id]
            return False
        return True
