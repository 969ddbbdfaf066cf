"""What a mailbox refuses.

WindlassError
 +- Invalid
 |   +- BadMail         422  not a message: the shape is wrong, or the id is
 +- TooLarge
 |   +- MailTooLarge    413  one message over its bound
 +- TooMany
 |   +- MailboxFull     429  too many messages, or too many bytes, wait to be read
 +- Conflict
     +- OtherMail       409  another message with this id is there
     +- ClaimLost       409  the lease was over, and the message was given back or handed on
"""

from windlass.errors import Conflict, Invalid, TooLarge, TooMany


class BadMail(Invalid):
    pass


class MailTooLarge(TooLarge):
    pass


class MailboxFull(TooMany):
    pass


class OtherMail(Conflict):
    pass


class ClaimLost(Conflict):
    pass
