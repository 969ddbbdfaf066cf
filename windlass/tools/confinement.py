"""What commands are kept from, and what people are told of it: the truth, also where the kernel can do less (A36).

The fence itself is put up by the guardian (`guardian/fence.py`). It is there so that a command cannot act as its own
user: read a token, change the config or answer its own permission request. It is no jail.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from windlass import limits
from windlass.wire.tools import Fence

Sandbox = Literal["auto", "off", "require"]

_CREATE_RULESET = 444  # the same number on every architecture
_VERSION_FLAG = 1
_WHOLE_VERSION = 6  # the first that also keeps signals in
_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}  # the machines whose calls we know by their numbers
_IS_AVAILABLE, _ANSWER_ERROR = 2, 0x00050000
_FREE = "it can reach everything the user of this server can"


@dataclass(frozen=True, slots=True)
class Confinement:
    """`is_whole`: a command is kept from everything we promise. `says`: in one clause, for people who are asked.

    `refusal`: why no command may be run at all. `closed`: directories in which a command can make, rename and remove
    nothing directly, because they are on the way to what it is kept from.
    """

    fence: Fence | None
    is_whole: bool
    says: str
    refusal: str = ""
    closed: tuple[str, ...] = ()

    @property
    def hint(self) -> str:
        """For a command that was refused something."""
        if self.fence is None:
            return ""
        return (
            f"The command was confined. It cannot make, rename or remove anything directly in {', '.join(self.closed)} "
            "(what is in their other subdirectories is free), touch Windlass's own files, connect to its port, signal "
            "programs that it did not start (use job_kill for background jobs), mount anything or use sudo. The user "
            'can turn this off with [bash] sandbox = "off".'
        )


@cache
def landlock_version() -> int:
    """Which Landlock the kernel has; 0 for none, or one that was turned off."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


@cache
def can_filter_calls() -> bool:
    """Whether system calls that Landlock does not see can be refused too (as `guardian/calls.py` does)."""
    number = _SECCOMP.get(os.uname().machine, 0) if sys.platform == "linux" else 0
    answer = ctypes.c_uint32(_ANSWER_ERROR)
    return bool(number) and ctypes.CDLL(None).syscall(number, _IS_AVAILABLE, 0, ctypes.byref(answer)) == 0


def confinement(
    sandbox: str, paths: Sequence[str], ports: Sequence[int], root: str, version: int | None = None
) -> Confinement:
    """What commands in `root` are kept from; looks at the file system for symlinks."""
    known = landlock_version() if version is None else version
    reason = _obstacle(sandbox, paths, root, known)
    if reason:
        return _unconfined(sandbox, reason)
    fence = Fence(tuple(paths), tuple(ports))
    missing = missing_in(known)
    if missing and sandbox == "require":
        return _unconfined(sandbox, f"the kernel's Landlock is too old: a command {missing}")
    says = "confined: it is kept from Windlass's own files and port and from other programs, else " + _FREE
    if missing:
        says = f"partly confined: it is kept from Windlass's own files, but {missing}, and else {_FREE}"
    return Confinement(fence, not missing, says, closed=_closed(paths))


def missing_in(version: int) -> str:
    """What a command still can where Landlock is of that version, "" for nothing that we promise to prevent."""
    gaps = {
        "can cut Windlass's files short": version < 3,
        "can connect to Windlass's port": version < 4 or not can_filter_calls(),
        "can signal any program of the user": version < _WHOLE_VERSION,
    }
    return " and ".join(gap for gap, is_open in gaps.items() if is_open)


def _obstacle(sandbox: str, paths: Sequence[str], root: str, version: int) -> str:
    if sandbox == "off":
        return 'the config says [bash] sandbox = "off"'
    if not paths:
        return "there is nothing to keep it from"
    if version < limits.LANDLOCK_VERSION:
        return "this kernel has no Landlock (Linux 5.19 or newer)"
    for path in paths:
        real = os.path.realpath(path)
        if _is_below(real, root) or _is_below(root, real):
            return f"{path} and the workspace lie one inside the other"
    return ""


def _unconfined(sandbox: str, reason: str) -> Confinement:
    refusal = ""
    if sandbox == "require":
        refusal = (
            f'Commands are not run here: the config says [bash] sandbox = "require", and {reason}. '
            "The user can change either; there is no way around it."
        )
    return Confinement(None, False, f"unconfined ({reason}): {_FREE}", refusal)


def _closed(paths: Sequence[str]) -> tuple[str, ...]:
    closed: set[str] = set()
    for path in paths:
        for way in (os.path.abspath(path), os.path.realpath(path)):
            parent = os.path.dirname(way)
            while parent not in closed:
                closed.add(parent)
                parent = os.path.dirname(parent)
    return tuple(sorted(closed))


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
