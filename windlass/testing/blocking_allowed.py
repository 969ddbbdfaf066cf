"""Where our code may block its event loop, and why that is right there. Anything else in a test raises."""

_START = (
    "before the first connection is accepted nobody waits for this loop, and a start that fails must say so at once"
)
_STOP = "the last connection is closed: nobody waits for this loop any more"
_TOKENS = "one small file of our own, read only when it changed; whoever knocks cannot be judged without it"
_GUARDIAN = "a millisecond or two, once; awaited, a cancel could lose the child, and its keepers watch this very thread"

ALLOWED = {
    "app.py:Server.run": _START,
    "app.py:Server._journal": _START,
    "app.py:Server._serve": _START,
    "server/listener.py:Listener.bind": _START,
    "app.py:Server._stop": _STOP,
    "server/listener.py:Listener.stop": _STOP,
    "server/tokens.py:TokenStore.refresh": _TOKENS,
    "server/peers.py:_parent": "a line that the kernel makes up on the spot; no disk is behind it",
    "guardian/handle.py:_start_process": _GUARDIAN,
    "guardian/handle.py:_Link._notice_end": "its other end is closed, so it is ending or has ended",
    "tools/searching/search.py:_start": "a millisecond or two; in a thread, a cancel could lose the child",
    "app.py:Server._reload": "one small file of the owner's, when the owner asks for it",
    "engine/runner.py:Runner._judge": "the lines of our own source that a traceback shows: only when we have a bug",
}
