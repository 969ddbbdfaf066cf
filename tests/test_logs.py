"""Log lines are for people: nobody else decides what their terminal does."""

from windlass.logs import escaped


def test_no_control_or_invisible_character_reaches_the_terminal() -> None:
    """A request's path could clear the operator's screen, or show another name than it has (A26 A41)."""
    event = escaped(None, "info", {"path": "/\x1b]0;pwned\x07\u202etxt", "status": 421})
    assert event == {"path": "/\\x1b]0;pwned\\x07\\u202etxt", "status": 421}


def test_a_traceback_keeps_its_lines() -> None:
    """Nobody could read it."""
    assert escaped(None, "error", {"exception": "one\ntwo\x07"}) == {"exception": "one\ntwo\\x07"}
