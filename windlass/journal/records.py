"""What is handed to the disk: one batch of these is one transaction."""

import msgspec


class FactRow(msgspec.Struct, frozen=True):
    """A fact with its number, encoded once: the same bytes go to the disk and to every reader."""

    workspace: str
    seq: int
    time: float
    by: bytes
    session: str
    run: str
    kind: str
    change: str
    key: str
    body: bytes
    private: bytes | None


class NewWorkspace(msgspec.Struct, frozen=True):
    id: str
    path: str
    epoch: str
    created_at: float


class Checkpoint(msgspec.Struct, frozen=True):
    """The text so far of a message that is being written."""

    workspace: str
    message: str
    session: str
    body: bytes


class Trim(msgspec.Struct, frozen=True):
    """Forget facts up to and with `floor`, but for the newest of each key: those are the snapshot."""

    workspace: str
    floor: int


Record = FactRow | NewWorkspace | Checkpoint | Trim
