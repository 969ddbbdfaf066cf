"""Claims: presence, and the bounds on how many there are. Their order is in `test_claims_exhaustive.py`."""

import pytest

from windlass import limits
from windlass.core.claims import Claims, Retired
from windlass.errors import Conflict, TooMany


def test_a_client_without_a_stream_cannot_look_at_a_session() -> None:
    """Else presence would show people who cannot see anything (B29)."""
    claims = Claims()
    claims.create("ann")
    with pytest.raises(Conflict):
        claims.look_at("ann", "s1")


def test_looking_at_a_session_returns_the_one_before() -> None:
    """Else nobody could be told that a client left the session it looked at (B29)."""
    claims = Claims()
    claims.attach("ann")
    assert [claims.look_at("ann", "s1"), claims.look_at("ann", "s2")] == ["", "s1"]


def test_a_session_counts_the_clients_that_look_at_it() -> None:
    """Else `attached_clients` of a session is wrong (B29)."""
    claims = Claims()
    for client, session in (("ann", "s1"), ("bob", "s1"), ("cat", "s2")):
        claims.attach(client)
        claims.look_at(client, session)
    assert claims.attached_clients("s1") == 2


def test_a_client_whose_last_stream_dropped_looks_at_nothing() -> None:
    """Else a client that fell asleep is shown as present until its grace is over (B29)."""
    claims = Claims()
    stream = claims.attach("ann")
    claims.look_at("ann", "s1")
    claims.detach("ann", stream)
    assert (claims.looking_at("ann"), claims.attached_clients("s1")) == ("", 0)


def test_a_client_that_is_not_here_looks_at_nothing() -> None:
    """Else a client that said goodbye is still shown beside a session (B29)."""
    assert Claims().looking_at("ann") == ""


def test_a_client_with_another_stream_keeps_looking() -> None:
    """Else closing one of two tabs makes a person vanish (B29)."""
    claims = Claims()
    stream = claims.attach("ann")
    claims.attach("ann")
    claims.look_at("ann", "s1")
    claims.detach("ann", stream)
    assert claims.looking_at("ann") == "s1"


def test_one_client_may_not_open_more_streams_than_the_limit() -> None:
    """Else one broken client takes every connection."""
    claims = Claims()
    for _ in range(limits.STREAMS_PER_CLIENT):
        claims.attach("ann")
    with pytest.raises(TooMany):
        claims.attach("ann")


@pytest.mark.parametrize("claim", ["create", "attach"])
def test_a_client_that_is_one_too_many_is_refused_and_holds_nothing(claim: str) -> None:
    """Else memory grows with every made-up client id, or a refused one keeps the workspace open."""
    claims = Claims()
    for number in range(limits.CLIENTS_PER_WORKSPACE):
        claims.create(f"client {number}")
    with pytest.raises(TooMany) as refusal:
        getattr(claims, claim)("one more")
    assert "one more" not in claims.client_ids
    assert refusal.value.retry_after  # others leave: it is worth coming back


def test_a_goodbye_is_forgotten_after_its_time() -> None:
    """Else memory grows with every client that ever left (B34)."""
    retired = Retired()
    retired.add("ann", now=0)
    late = limits.RETIRED_SECONDS
    assert [retired.holds("ann", late - 1), retired.holds("ann", late)] == [True, False]


def test_when_too_many_said_goodbye_the_oldest_is_forgotten_first() -> None:
    """Else a flood of goodbyes takes all memory, or the newest, whose late create is still to come, is lost (R34)."""
    retired = Retired()
    for number in range(limits.RETIRED_CLIENTS + 1):
        retired.add(f"client {number}", now=0)
    newest = f"client {limits.RETIRED_CLIENTS}"
    assert [retired.holds("client 0", 1), retired.holds(newest, 1)] == [False, True]


def test_as_many_goodbyes_as_the_limit_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the bound forgets more than it must, and a late create brings a client back that left (R34)."""
    monkeypatch.setattr(limits, "RETIRED_CLIENTS", 2)
    retired = Retired()
    for client in ("ann", "bob"):
        retired.add(client, now=0)
    assert [retired.holds(client, 1) for client in ("ann", "bob")] == [True, True]


def test_a_second_goodbye_counts_as_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a client that came back and left again is forgotten before those that left long ago (R34)."""
    monkeypatch.setattr(limits, "RETIRED_CLIENTS", 2)
    retired = Retired()
    for client in ("ann", "bob", "ann", "cat"):
        retired.add(client, now=0)
    assert [retired.holds(client, 1) for client in ("ann", "bob", "cat")] == [True, False, True]
