"""A process that writes to a mailbox or reads from it, ours or the least that could be called one."""

import os
from pathlib import Path

from bench.child import Answer, obey
from windlass.fleet.mailbox.mailbox import Mailbox
from windlass.wire.agents import Mail, MailFrom

_BODY = "Please look at the parser: the third test fails since yesterday. " * 5
_CLAIMS = 4  # outstanding, as an agent that is busy would have


async def _start() -> int:
    return 0


async def _act(command: Answer) -> Answer:
    """`deliver` or `read` so many messages; `bare` without us."""
    work = {
        ("deliver", False): _deliver,
        ("deliver", True): _bare_deliver,
        ("read", False): _read,
        ("read", True): _bare_read,
    }[command["what"], command["bare"]]
    work(Path(command["directory"]), command["name"], command["count"])
    return {}


def _deliver(directory: Path, name: str, count: int) -> None:
    box = Mailbox(directory)
    for number in range(count):
        box.deliver(Mail(id=f"{name}-{number}", sender=MailFrom("bench"), kind="task", body=_BODY, created_at=number))


def _bare_deliver(directory: Path, name: str, count: int) -> None:
    """Written, synced, renamed, the directory synced; no numbers, no bounds, no second look."""
    tmp, new = directory / "tmp", directory / "new"
    tmp.mkdir(parents=True, exist_ok=True)
    new.mkdir(exist_ok=True)
    content = _BODY.encode()
    for number in range(count):
        temporary = f"{tmp}/{name}-{number}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, content)
        os.fsync(descriptor)
        os.close(descriptor)
        os.rename(temporary, f"{new}/{name}-{number}")
        _sync(new)


def _read(directory: Path, name: str, count: int) -> None:
    box = Mailbox(directory)
    left = count
    while left:
        claims = box.claim(min(_CLAIMS, left))
        box.ack(*claims)
        left -= len(claims)


def _bare_read(directory: Path, name: str, count: int) -> None:
    """Renamed and the directory synced, read, removed and synced again, as many at a time."""
    new, cur = directory / "new", directory / "cur"
    cur.mkdir(exist_ok=True)
    names = sorted(os.listdir(new))[:count]
    for first in range(0, len(names), _CLAIMS):
        claimed = names[first : first + _CLAIMS]
        for file in claimed:
            os.rename(f"{new}/{file}", f"{cur}/{file}")
        _sync(cur)
        for file in claimed:
            (cur / file).read_bytes()
        for file in claimed:
            os.unlink(f"{cur}/{file}")
        _sync(cur)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    obey(_start, _act)
