"""The real `Claims` and `Retired` beside a naive model: which client holds the workspace, and why.

Every hold and every stream ever made is remembered, so that the search can fire a timer that is long superseded, and
end a stream a second time or after its client said goodbye. The three clients are alike, so states that differ only in
their names, or in how many stale timers there are, count as one.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

from tests.core.search import Move
from windlass.core.claims import Claims, Hold, Retired, _Client

CLIENTS = ("ann", "bob", "cat")
STREAMS = 2  # of one client at once: the second shows that only the last one matters
STALE_HOLDS = 2  # of one client: the newest ones; an older one is as stale as these
STALE_STREAMS = 1
NOW = 1_000.0


class Member(NamedTuple):
    """What the model knows of one client."""

    hold: Hold | None = None
    streams: tuple[int, ...] = ()
    stale_holds: tuple[Hold, ...] = ()
    stale_streams: tuple[int, ...] = ()
    retired: bool = False

    @property
    def has_claim(self) -> bool:
        return self.hold is not None or bool(self.streams)

    def without_claims(self) -> "Member":
        holds = self.stale_holds if self.hold is None else (*self.stale_holds, self.hold)
        streams = (*self.stale_streams, *self.streams)
        return Member(None, (), holds[-STALE_HOLDS:], streams[-STALE_STREAMS:], self.retired)

    def held_by(self, hold: Hold) -> "Member":
        return self.without_claims()._replace(hold=hold)

    def shape(self) -> tuple[str, int, int, int, bool]:
        kind = self.hold.kind if self.hold else ""
        return kind, len(self.streams), len(self.stale_holds), len(self.stale_streams), self.retired


class ClaimWorld:
    def __init__(self) -> None:
        self.claims = Claims()
        self.retired = Retired()
        self.members = {client: Member() for client in CLIENTS}

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.members = dict(self.members)
        other.claims = copy_claims(self.claims)
        other.retired = Retired()
        other.retired._until = dict(self.retired._until)
        return other

    def key(self) -> object:
        return tuple(sorted(member.shape() for member in self.members.values()))

    def moves(self) -> Iterator[Move]:
        for client, member in self.members.items():
            yield ("create", client)
            if not member.retired and len(member.streams) < STREAMS:
                yield ("attach", client)
            for stream in (*member.streams, *member.stale_streams):
                yield ("detach", client, str(stream))
            for hold in member.stale_holds if member.hold is None else (*member.stale_holds, member.hold):
                yield ("expire", client, str(hold.number))
            yield ("release", client)
            yield ("retire", client)

    def apply(self, move: Move) -> None:
        client = move[1]
        member = self.members[client]
        match move:
            case ("create", _):
                self._create(client, member)
            case ("attach", _):
                stream = self.claims.attach(client)
                streams = (*member.streams, stream)
                assert len(set(streams)) == len(streams), "two streams have one number"
                ended = member.without_claims()
                self.members[client] = ended._replace(streams=streams, stale_streams=member.stale_streams)
            case ("detach", _, number):
                self._detach(client, member, int(number))
            case ("expire", _, number):
                self._expire(client, member, int(number))
            case ("release", _):
                assert self.claims.release(client) == member.has_claim, "B34: told whether there was a claim to give up"
                self.members[client] = member.without_claims()
            case ("retire", _):
                self.claims.release(client)
                self.retired.add(client, NOW)
                self.members[client] = member.without_claims()._replace(retired=True)
            case _:
                raise ValueError(move)
        self.check()

    def _create(self, client: str, member: Member) -> None:
        assert self.retired.holds(client, NOW) == member.retired, "B34 R33 R34: a late create is known to be late"
        if member.retired:
            return
        hold = self.claims.create(client)
        assert (hold is None) == bool(member.streams), "B30: a create holds until the first stream, and not after it"
        if hold is not None:
            assert hold.kind == "create"
            self.members[client] = member.held_by(hold)

    def _detach(self, client: str, member: Member, stream: int) -> None:
        hold = self.claims.detach(client, stream)
        left = tuple(other for other in member.streams if other != stream)
        was_last = stream in member.streams and not left
        assert (hold is not None) == was_last, "R39: exactly the last stream's end begins the detach grace"
        if hold is not None:
            assert hold.kind == "detach"
            self.members[client] = member.held_by(hold)
        elif stream in member.streams:
            stale = (*member.stale_streams, stream)[-STALE_STREAMS:]
            self.members[client] = member._replace(streams=left, stale_streams=stale)

    def _expire(self, client: str, member: Member, number: int) -> None:
        known = [*member.stale_holds, *([member.hold] if member.hold else [])]
        (hold,) = (hold for hold in known if hold.number == number)
        ended = self.claims.expire(hold)
        assert ended == (hold == member.hold), "R30 R31: a timer ends its own hold and never a newer claim"
        if ended:
            self.members[client] = member.without_claims()

    def check(self) -> None:
        claiming = {client for client, member in self.members.items() if member.has_claim}
        assert self.claims.held == bool(claiming), "I17 R28 R29: open exactly while somebody has a claim"
        assert set(self.claims.client_ids) == claiming, f"B30: {self.claims.client_ids} hold it, should be {claiming}"
        for client, member in self.members.items():
            for stream in (*member.streams, *member.stale_streams):
                attached = self.claims.is_attached(client, stream)
                assert attached == (stream in member.streams), "B34: a stream is a claim until it ends or is given up"


def copy_claims(claims: Claims) -> Claims:
    other = object.__new__(type(claims))
    other.__dict__.update(claims.__dict__)
    other._clients = {}
    for id, client in claims._clients.items():
        twin = other._clients[id] = _Client()
        twin.hold, twin.session_id, twin.streams = client.hold, client.session_id, set(client.streams)
    return other
