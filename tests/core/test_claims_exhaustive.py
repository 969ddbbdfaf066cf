"""Every order of creates, streams, goodbyes and timers of three clients, over the real `Claims`.

What is checked is written in `claim_world.py`: I17, B30, B34, R28-R31, R33, R34, R39. The last test takes out one
safeguard at a time and expects the search to find what that breaks.
"""

from collections.abc import Callable

import pytest

from tests.core.claim_world import ClaimWorld
from tests.core.search import Violation, explore
from windlass.core.claims import Claims, Hold, Retired


def test_no_order_of_creates_streams_timers_and_goodbyes_breaks_an_invariant() -> None:
    """Else a workspace closes under a client, or stays open for ever after the last one left (I17 R28-R34 R39)."""
    report = explore(ClaimWorld())
    print(report)
    assert report.states > 1_000


def an_old_timer_ends_a_newer_claim(patch: pytest.MonkeyPatch) -> None:
    def expire(claims: Claims, hold: Hold) -> bool:
        return claims._clients.pop(hold.client_id, None) is not None

    patch.setattr(Claims, "expire", expire)


def holds_of_one_kind_are_alike(patch: pytest.MonkeyPatch) -> None:
    def expire(claims: Claims, hold: Hold) -> bool:
        client = claims._clients.get(hold.client_id)
        if client is None or client.hold is None or client.hold.kind != hold.kind:
            return False
        del claims._clients[hold.client_id]
        return True

    patch.setattr(Claims, "expire", expire)


def a_stream_leaves_the_hold_in_place(patch: pytest.MonkeyPatch) -> None:
    original = Claims.attach

    def attach(claims: Claims, client_id: str) -> int:
        hold = claims._client(client_id).hold
        stream = original(claims, client_id)
        claims._clients[client_id].hold = hold
        return stream

    patch.setattr(Claims, "attach", attach)


def the_last_stream_takes_the_claim_with_it(patch: pytest.MonkeyPatch) -> None:
    original = Claims.detach

    def detach(claims: Claims, client_id: str, stream: int) -> Hold | None:
        hold = original(claims, client_id, stream)
        if hold is not None:
            claims.expire(hold)
        return None

    patch.setattr(Claims, "detach", detach)


def any_stream_that_ends_begins_the_grace(patch: pytest.MonkeyPatch) -> None:
    def detach(claims: Claims, client_id: str, stream: int) -> Hold | None:
        client = claims._clients.get(client_id)
        if client is None:
            return None
        client.streams.discard(stream)
        return None if client.streams else claims._hold(client_id, client, "detach")

    patch.setattr(Claims, "detach", detach)


def a_goodbye_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Retired, "holds", lambda retired, client_id, now: False)


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    an_old_timer_ends_a_newer_claim: "R31",
    holds_of_one_kind_are_alike: "R31",
    a_stream_leaves_the_hold_in_place: "R30",
    the_last_stream_takes_the_claim_with_it: "R39",
    any_stream_that_ends_begins_the_grace: "R39",
    a_goodbye_is_forgotten: "R34",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_search_finds_what_a_missing_safeguard_breaks(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the search is blind for this rule, and its silence about the real object means nothing."""
    mutant(monkeypatch)
    with pytest.raises(Violation, match=MUTANTS[mutant]) as found:
        explore(ClaimWorld())
    print(found.value)
