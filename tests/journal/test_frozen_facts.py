"""A fact is what it was when it was appended, whatever becomes of the objects it was made from (R27)."""

from tests.journal.facts import body, message_fact, read, session_fact
from tests.journal.readers import open_reader
from windlass.journal.log import Log
from windlass.wire.messages import Text, TextData


async def test_a_message_that_changes_after_it_was_appended_is_sent_and_stored_as_it_was(log: Log) -> None:
    """Readers would see half of a change, or the disk would hold another message than they were sent (B19 I13)."""
    fact = message_fact(text="as it was", done=True)
    head = log.append([fact])
    fact.body.parts[0] = Text(TextData("changed meanwhile"))  # before the writer has even looked at it
    fact.body.parts.clear()
    await log.durable(head)
    (sent,) = await read(open_reader(log, 0, deltas=False), 1)
    stored, _ = await log.page(0)
    assert body(sent)["parts"][0]["data"]["text"] == "as it was"
    assert b"as it was" in stored


async def test_text_that_was_not_published_yet_is_in_no_whole_message(log: Log) -> None:
    """A reader would be shown words ahead of the facts they rest on, and then be shown them again (I12 I16)."""
    await log.durable(log.append([message_fact()]))
    log.delta("m1", 0, "shown", "text")
    log._flush()
    log.append([session_fact()])
    log.delta("m1", 0, " and not yet", "text")
    shown = log.live["m1"].published()
    staged = log.staged_message("m1")
    assert staged is not None
    assert (shown.text, staged.text) == ("shown", "shown and not yet")
    await log.durable(log.head)
