"""`GaveUp`: why a run cannot go on, in words for a person."""


class GaveUp(Exception):
    """The run cannot go on. `message` is for a person; `details` say more for whoever looks closer."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details
