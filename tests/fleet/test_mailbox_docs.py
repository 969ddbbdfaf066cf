"""The bounds on the page about the mailbox are those of the code. What it shows is executed by tests/docs."""

from pathlib import Path

from windlass import limits

PAGE = (Path(__file__).parents[2] / "docs" / "mailbox.md").read_text()


def test_the_bounds_on_the_page_are_those_of_the_code() -> None:
    """A bound that was changed would stay on the page."""
    assert f"{limits.MAILBOX_MESSAGES:,} messages and {limits.MAILBOX_BYTES // limits.MIB} MiB a mailbox" in PAGE
    assert f"{limits.MAIL_BYTES // limits.MIB} MiB a message" in PAGE
    assert limits.MAILBOX_ATTEMPTS == 5 and "claimed five times" in PAGE
