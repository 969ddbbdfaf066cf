"""The fence: Landlock keeps a command, and all that comes of it, away from what is ours.

Landlock can only grant. So everything is granted *except* what is to be kept back: beside every protected path, and
beside every directory on the way to it, each entry gets a rule of its own. A rule covers all that is below it, so the
directories on the way get none: in them a command can make, rename and remove nothing directly (`fenced.py` says which
they are). Two rulesets, because the one for ports has a rule for each of 65,535 and is made once a guardian:

    paths   reading, writing, making, moving; signals and abstract sockets that lead outside     made for each command
    ports   connecting by TCP to anything but the ports that are kept back                       made once, then shared

The look of a directory and the kernel's use of it happen once, before the command starts: what others make beside a
protected path afterwards cannot be used by a command that is already running.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator, Sequence

from windlass import limits
from windlass.guardian.fenced import Fenced, fenced

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_RULE_PATH_BENEATH, _RULE_NET_PORT = 1, 2
_VERSION_FLAG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_DROP = 24
# SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, PERFMON, BPF: with these root reads the memory and the environment of
# any process, by ways that Landlock is not asked about.
_POWERS = (16, 17, 19, 21, 38, 39)
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_CONNECT_TCP = 2
# Listing directories and executing files are not handled, so they stay as they are: names are no secret, and what may
# not be read cannot be executed.
_WRITE_FILE, _READ_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 14
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
_MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 10, 1 << 11, 1 << 12
_REFER = 1 << 13  # moving and linking from one directory to another; without it that is never allowed
_FILE = _WRITE_FILE | _READ_FILE | _TRUNCATE
_MAKE = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_DIRECTORY = _FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER
_NEVER = _MAKE_CHAR | _MAKE_BLOCK  # a device node of one's own would be a second way to the disk, for root
_LIBC = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Which Landlock this kernel has: 0 for none."""
    return max(0, int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)))


def path_ruleset(paths: Sequence[str]) -> int:
    """A ruleset that grants everything but `paths`; raises OSError when there is none to be had."""
    known = version()
    if known < limits.LANDLOCK_VERSION:
        raise OSError(errno.ENOSYS, "This kernel cannot confine a command: it has no Landlock, or an early one")
    handled = (_DIRECTORY | _NEVER) & _known_rights(known)
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if known >= 6 else 0
    ruleset = _create(handled, 0, scopes)
    try:
        for rule in _rules(fenced(paths), handled):
            _add(ruleset, _RULE_PATH_BENEATH, rule)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def port_ruleset(ports: Sequence[int]) -> int | None:
    """A ruleset that grants connecting to every port but these; None where the kernel cannot (before version 4)."""
    if version() < 4:
        return None
    # Moving and linking between directories is denied by every ruleset that does not grant it, also by one that has
    # nothing to do with files.
    ruleset = _create(_REFER, _CONNECT_TCP, 0)
    for everywhere in _rule("/", _REFER):
        _add(ruleset, _RULE_PATH_BENEATH, everywhere)
    kept_back = set(ports)
    rule = ctypes.create_string_buffer(16)
    for port in range(65_536):
        if port not in kept_back:
            struct.pack_into("=QQ", rule, 0, _CONNECT_TCP, port)
            if _LIBC.syscall(_ADD_RULE, ruleset, _RULE_NET_PORT, rule, 0):
                os.close(ruleset)
                raise _failure("A port could not be added to a Landlock ruleset")
    return ruleset


def enter(rulesets: Sequence[int]) -> None:
    """Confine this process and all it will start, for good; nothing, without rulesets. Called between fork and exec."""
    if rulesets:
        _drop_powers()
    for ruleset in rulesets:
        if _LIBC.syscall(_RESTRICT_SELF, ruleset, 0) == 0:
            continue
        # Who is not root must first give up what set-user-id programs could give.
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _LIBC.syscall(_RESTRICT_SELF, ruleset, 0):
            raise _failure("Landlock refused to confine the command")


def _drop_powers() -> None:
    """Take what would lead round the fence even from root. It shows with the next exec, which follows at once."""
    for capability in _POWERS:
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to who has none to drop


def _known_rights(known: int) -> int:
    return ~_TRUNCATE if known < 3 else ~0


def _rules(kept: Fenced, handled: int) -> Iterator[bytes]:
    """A rule for each entry beside what is kept back."""
    entries = 0
    for directory, names in kept.items():
        try:
            listing = os.scandir(directory)
        except PermissionError:
            continue  # its other entries are not ours to name; the way through it stays
        with listing:
            for entry in listing:
                entries += 1
                if entries > limits.FENCE_ENTRIES:
                    raise OSError(
                        errno.E2BIG, f"Too many entries to confine a command around, the last ones in {directory}"
                    )
                rights = 0 if entry.name in names else _rights(entry, directory)
                if rights & handled:
                    yield from _rule(entry.path, rights & handled)


def _rights(entry: "os.DirEntry[str]", directory: str) -> int:
    if entry.is_symlink():
        return 0  # a link gives nothing by itself, and a rule for what it leads to could open what is kept back
    if entry.is_dir(follow_symlinks=False):
        return _DIRECTORY
    if directory == "/dev" and stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode):
        return 0  # the disk itself, with our files on it
    return _FILE


def _rule(path: str, rights: int) -> Iterator[bytes]:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone again, or not for us; without a rule it stays closed
    try:
        yield struct.pack("=Qi", rights, descriptor)
    finally:
        os.close(descriptor)


def _create(files: int, ports: int, scopes: int) -> int:
    # Longer than an old kernel knows is fine as long as the rest is nought.
    attributes = struct.pack("=QQQ", files, ports, scopes)
    ruleset: int = _LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise _failure("Landlock gave no ruleset")
    return ruleset


def _add(ruleset: int, kind: int, rule: bytes) -> None:
    if _LIBC.syscall(_ADD_RULE, ruleset, kind, rule, 0):
        if ctypes.get_errno() in (errno.EBADFD, errno.EINVAL):
            return  # no place in the tree, or not the kind of thing any more that was listed; it stays closed
        raise _failure("A path could not be added to a Landlock ruleset")


def _failure(what: str) -> OSError:
    number = ctypes.get_errno() or errno.EIO
    return OSError(number, f"{what}: {os.strerror(number)}")
