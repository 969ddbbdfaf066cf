"""Processes found again by a marker in their command line, looked at and stopped, through /proc."""

import os
import signal
from pathlib import Path

from windlass.testing.server_process import until


def marked(marker: str) -> dict[int, str]:
    """Living processes whose command line holds the marker: pid -> command line. Zombies have none."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it ended while we looked
            if marker in line:
                found[int(entry.name)] = line
    return found


def descendants(pid: int) -> set[int]:
    """Everything below this process, whatever session or group it has made for itself."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(status.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, left = set(), [pid]
    while left:
        for child in children.get(left.pop(), []):
            found.add(child)
            left.append(child)
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that still run; one that ended and was not yet waited for does not."""
    return {pid for pid in pids if not _is_over(pid)}


async def stand_still(pid: int) -> None:
    """Stop it, and return when all of it has stopped.

    A thread that runs goes on until another one was given the signal, and may answer something on a busy machine.
    """
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: _is_still(pid), f"process {pid} has stopped")


def _is_still(pid: int) -> bool:
    return {_state(thread) for thread in Path(f"/proc/{pid}/task").iterdir()} == {"T"}


def _is_over(pid: int) -> bool:
    try:
        return _state(Path(f"/proc/{pid}")) in "ZX"
    except OSError:
        return True


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


def open_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def resident_bytes(pid: int) -> int:
    """What the process holds in memory of its own: not what it maps from files, such as its database."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("this kernel does not tell RssAnon")
