"""Who is at the other end of a Unix socket: not a command that we started ourselves (A30).

The socket's file is the credential there, and a command runs as the same user. The kernel says which process connected.
"""

import socket
import struct
import sys
from pathlib import Path

_GENERATIONS = 1_000  # deeper than any tree of processes; a bound in case /proc changes while it is climbed


def is_own_command(connection: socket.socket, guardian: int) -> bool:
    """Whether the process that connected descends from the guardian, as all commands do.

    One that is gone already counts as one: nobody honest connects and leaves, and a command could, to hide whose child
    holds the connection now.
    """
    if sys.platform != "linux" or not guardian:
        return False
    size = struct.calcsize("=iII")
    pid, _, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if pid == 0:
        return False  # in a container around ours; commands are in ours, or in one inside it
    for _ in range(_GENERATIONS):
        if pid <= 1:
            return False
        parent = None if pid == guardian else _parent(pid)
        if parent is None:
            return True
        pid = parent
    return True


def _parent(pid: int) -> int | None:
    """None for a process that is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may itself hold brackets and spaces; what follows the last one is plain.
    return int(stat.rpartition(b")")[2].split()[1])
