"""Everything that can be refused, as one tree. Each has one HTTP status; the message says what to do.

WindlassError
 +- BadRequest            400  malformed, or a field is missing
 +- Unauthorized          401  no or wrong credential
 +- Forbidden             403  the token's scope does not allow it, or the Origin is foreign
 +- NotFound              404  unknown here (also: another workspace's id)
 +- TooSlow               408  a body that did not arrive in time
 +- Conflict              409  not possible in the present state
 +- TooLarge              413  a body over its limit
 +- UnsupportedMedia      415  a body that is not JSON
 +- Misdirected           421  a Host this server does not answer to
 +- Invalid               422  well-formed, but a value is not acceptable
 +- TooMany               429  a limit was reached; `retry_after` says when to come back
 +- Unavailable           503  the server is leaving
     +- JournalPoisoned   503  the disk refused a write: nothing more is acknowledged
"""


class WindlassError(Exception):
    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(WindlassError):
    status = 400


class Unauthorized(WindlassError):
    status = 401


class Forbidden(WindlassError):
    status = 403


class NotFound(WindlassError):
    status = 404


class TooSlow(WindlassError):
    status = 408


class Conflict(WindlassError):
    status = 409


class TooLarge(WindlassError):
    status = 413


class UnsupportedMedia(WindlassError):
    status = 415


class Misdirected(WindlassError):
    status = 421


class Invalid(WindlassError):
    status = 422


class TooMany(WindlassError):
    status = 429

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(WindlassError):
    status = 503


class JournalPoisoned(Unavailable):
    """A commit failed. An fsync is never retried: what the disk holds after a failed one is unknown."""
