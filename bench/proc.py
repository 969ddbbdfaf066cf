"""What the kernel knows of a process: its CPU time, memory and open files."""

import os
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of another process, in nanosecond precision (not its children's)."""
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) computes on Linux


def memory_bytes(pid: int) -> int:
    """Resident memory, shared pages counted in full: what `ps` shows."""
    return _rollup(pid, "Rss:")


def _rollup(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def descendants(pid: int) -> set[int]:
    """Everything below this process, whatever session or group it has made for itself."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:  # it ended since it was listed
                continue
            parent = int(status.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    left = [pid]
    while left:
        below = children.get(left.pop(), [])
        found.update(below)
        left += below
    return found


def open_sockets(pid: int) -> int:
    links = Path(f"/proc/{pid}/fd")
    count = 0
    for name in os.listdir(links):
        try:
            count += os.readlink(links / name).startswith("socket:")
        except FileNotFoundError:  # closed since it was listed
            continue
    return count
