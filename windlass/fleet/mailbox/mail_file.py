"""A message as a file: encoded within its bounds, and read with suspicion."""

from pathlib import Path

import msgspec

from windlass import limits
from windlass.fleet.mailbox.mail_names import MailName, digest
from windlass.fleet.mailbox.mailbox_errors import BadMail, MailTooLarge
from windlass.fleet.store.durable_files import Unreadable, read_whole
from windlass.wire.agents import Mail


def encoded(mail: Mail, most_bytes: int) -> bytes:
    """The file's content. Raises BadMail or MailTooLarge."""
    if not 0 < len(mail.id) <= limits.MAIL_ID_CHARACTERS:
        raise BadMail(f"A message's id has 1 to {limits.MAIL_ID_CHARACTERS} characters; this one has {len(mail.id)}.")
    try:
        content = msgspec.json.encode(mail)
        msgspec.json.decode(content, type=Mail)  # a struct may hold anything; what we store must be readable
    except (ValueError, TypeError, RecursionError) as error:
        raise BadMail(f"This is no message: {error}.") from error
    if len(content) > most_bytes:
        raise MailTooLarge(
            f"The message has {len(content)} bytes, and {most_bytes} are allowed. "
            "Put the content in a file and send its path."
        )
    return content


def decoded(content: bytes) -> Mail:
    """The message in a file's content. Raises Unreadable."""
    try:
        return msgspec.json.decode(content, type=Mail)
    except (ValueError, RecursionError) as error:  # ValueError: also what is no UTF-8
        raise Unreadable(str(error)) from error


def read(place: Path, name: MailName, most_bytes: int) -> tuple[Mail | None, str]:
    """The message in a file of this name, or None and what is wrong with it."""
    try:
        content = read_whole(place / str(name), most_bytes)
        if len(content) != name.size:
            return None, f"It has {len(content)} bytes, and its name says {name.size}."
        mail = decoded(content)
    except FileNotFoundError:
        return None, "It is not there any more."
    except Unreadable as problem:
        return None, f"It is no message: {problem}."
    if digest(mail.id) != name.digest:
        return None, "Its id is not the one it was delivered with."
    return mail, ""


def are_the_same(one: Mail, other: Mail) -> bool:
    """Whether two say the same. When is left out: who sends again after a failure may look at the clock again."""
    return msgspec.structs.replace(one, created_at=0) == msgspec.structs.replace(other, created_at=0)
