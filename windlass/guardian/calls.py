"""The system calls that lead round the fence: ways to a TCP port about which Landlock is not asked.

A socket for Multipath TCP or SMC becomes a plain TCP one when the other end knows nothing else. Data that is sent with
the first packet (fast open) needs no `connect`. And io_uring does either where no filter sees it. All of these are
answered as by a kernel that does not have them, so that programs go on in the usual way. Programs of 32 bits get no
sockets at all: theirs pass their arguments where a filter cannot look.
"""

import ctypes
import errno
import os
import struct
from typing import NamedTuple

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 38, 22
_MODE_FILTER = 2
_IS_AVAILABLE = 2  # asks whether the kernel knows an answer that a filter can give
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # where the kernel puts them; each argument takes eight bytes
_AF_SMC = 43
_MPTCP, _SMC = 262, 256  # protocols
_FAST_OPEN = 0x20000000  # a flag for sending
_OTHER_ABI = 0x40000000  # x32: the same calls by other numbers
_IO_URING = 425  # on every architecture


class _Machine(NamedTuple):
    architecture: int
    seccomp: int
    socket: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    small: int = 0  # the architecture of its programs of 32 bits
    small_sockets: tuple[int, ...] = ()


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 317, 41, 44, 46, 307, 0x40000003, (102, 359)),
    "aarch64": _Machine(0xC00000B7, 277, 198, 206, 211, 269, 0x40000028, (281,)),
    "riscv64": _Machine(0xC00000F3, 277, 198, 206, 211, 269),
}
_LIBC = ctypes.CDLL(None, use_errno=True)


def call_filter() -> bytes | None:
    """The filter for `refuse_calls`; None where there is none, for this machine or this kernel."""
    machine = _MACHINES.get(os.uname().machine)
    if machine is None or struct.pack("=H", 1) != struct.pack("<H", 1):
        return None
    answer = ctypes.c_uint32(_ERRNO)
    is_known = _LIBC.syscall(machine.seccomp, _IS_AVAILABLE, 0, ctypes.byref(answer)) == 0
    return _program(machine) if is_known else None


def refuse_calls(program: bytes) -> None:
    """Have this process and all it will start live without those calls, for good. Called between fork and exec."""
    code = ctypes.create_string_buffer(program, len(program))
    # A short, padding and a pointer, as the compiler would lay them out.
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    if _LIBC.prctl(_PR_SET_SECCOMP, _MODE_FILTER, described, 0, 0) == 0:
        return
    # Who is not root must first give up what set-user-id programs could give.
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.prctl(_PR_SET_SECCOMP, _MODE_FILTER, described, 0, 0):
        number = ctypes.get_errno() or errno.EIO
        raise OSError(number, f"The kernel took no filter for system calls: {os.strerror(number)}")


def _program(machine: _Machine) -> bytes:
    """What the kernel asks before each call: instructions that jump forward only, to labels."""
    steps: list[tuple[str, int, int, str]] = [  # label, operation, value, where to jump if it holds
        ("", _LOAD, _ARCHITECTURE, ""),
        ("", _IF_EQUAL, machine.architecture, "native"),
        ("", _IF_EQUAL, machine.small or machine.architecture, "small"),
        ("", _RETURN, _ERRNO | errno.ENOSYS, ""),
        ("native", _LOAD, _NUMBER, ""),
        ("", _IF_AT_LEAST, _OTHER_ABI, "unknown"),
        ("", _IF_EQUAL, _IO_URING, "unknown"),
        ("", _IF_EQUAL, machine.socket, "socket"),
        ("", _IF_EQUAL, machine.sendto, "flags in the fourth"),
        ("", _IF_EQUAL, machine.sendmmsg, "flags in the fourth"),
        ("", _IF_EQUAL, machine.sendmsg, "flags in the third"),
        ("", _RETURN, _ALLOW, ""),
        ("socket", _LOAD, _ARGUMENTS, ""),
        ("", _IF_EQUAL, _AF_SMC, "no protocol"),
        ("", _LOAD, _ARGUMENTS + 16, ""),
        ("", _IF_EQUAL, _MPTCP, "no protocol"),
        ("", _IF_EQUAL, _SMC, "no protocol"),
        ("", _RETURN, _ALLOW, ""),
        ("flags in the third", _LOAD, _ARGUMENTS + 16, ""),
        ("", _IF_ANY_BIT, _FAST_OPEN, "no fast open"),
        ("", _RETURN, _ALLOW, ""),
        ("flags in the fourth", _LOAD, _ARGUMENTS + 24, ""),
        ("", _IF_ANY_BIT, _FAST_OPEN, "no fast open"),
        ("", _RETURN, _ALLOW, ""),
        ("small", _LOAD, _NUMBER, ""),
        *[("", _IF_EQUAL, number, "unknown") for number in (*machine.small_sockets, _IO_URING)],
        ("", _RETURN, _ALLOW, ""),
        ("unknown", _RETURN, _ERRNO | errno.ENOSYS, ""),
        ("no protocol", _RETURN, _ERRNO | errno.EPROTONOSUPPORT, ""),
        ("no fast open", _RETURN, _ERRNO | errno.EOPNOTSUPP, ""),
    ]
    places = {label: place for place, (label, *_) in enumerate(steps) if label}
    return b"".join(
        struct.pack("=HBBI", operation, places[jump] - place - 1 if jump else 0, 0, value)
        for place, (_, operation, value, jump) in enumerate(steps)
    )
