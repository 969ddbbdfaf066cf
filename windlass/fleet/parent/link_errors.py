"""Why a run cannot go on over a link.

LinkError             the run fails
 +- Unreachable       nobody is there, or not a worker that lets us in: no run was begun
 +- ProtocolError     the worker said something that it may not say
 +- LinkLost          the run is interrupted: what the worker was doing when it was lost is not known
 +- GaveUp            the run was to stop, and the worker did not end it in its time
"""

from windlass import limits


class LinkError(Exception):
    """The message is for a person."""


class Unreachable(LinkError):
    pass


class ProtocolError(LinkError):
    def __init__(self, what: str) -> None:
        super().__init__(f"The worker broke the protocol: {shortened(what)}.")


class LinkLost(LinkError):
    pass


class GaveUp(LinkError):
    pass


def shortened(text: str) -> str:
    """A worker's words, fit for a sentence: bounded, on one line."""
    line = " ".join(text[: 2 * limits.LINK_REASON_CHARACTERS].split()).rstrip(".")
    return line if len(line) <= limits.LINK_REASON_CHARACTERS else line[: limits.LINK_REASON_CHARACTERS] + "…"
