"""The keeper: starts one command and ends everything that came of it.

It speaks lines of JSON with the server over its own socket:

    server -> keeper    {"argv": [...], "cwd": "...", "env": {...}}   then, any time:  kill
                        with "fence": {"paths": [...], "ports": [...]} for a command that is to be confined
    keeper -> server    {"pid": 12}  or  {"errno": 2, "message": "..."}   at last:  {"exit_code": 0, "reason": "exited"}

The last line is sent when nothing of the command is left.
"""

import errno
import json
import os
import select
import signal
import socket
import subprocess
import time
from enum import Enum
from typing import Any, assert_never

from windlass import limits
from windlass.guardian.calls import call_filter, refuse_calls
from windlass.guardian.fence import enter, path_ruleset, version
from windlass.guardian.tree import (
    ask_descendants,
    become_subreaper,
    die_with_parent,
    kill_descendants,
    reap,
    wake_on_child_end,
)


def keep(
    control: socket.socket, output: int, input: int | None, errors: int | None, life: int, ports: int | None = None
) -> None:
    """Run the command the server names and return when all of it is gone. `life` ends with the guardian.

    `ports`: the ruleset for the ports that confined commands are kept from.
    """
    become_subreaper()
    wake = wake_on_child_end()
    try:
        command = _start(_read_spec(control), output, input, errors, ports)
    except OSError as error:
        _report(control, {"errno": error.errno or errno.EIO, "message": _explain(error)})
        return
    # Ours must be closed, or the server would never see the end of the output.
    os.close(output)
    if input is not None:
        os.close(input)  # or whoever writes to it would never see that nobody reads any more
    if errors is not None:
        os.close(errors)
    _report(control, {"pid": command})
    keeper = _Keeper(command, control, life, wake)
    keeper.watch()
    _report(control, {"exit_code": keeper.exit_code, "reason": keeper.reason})
    _hang_up(control)


def _read_spec(control: socket.socket) -> dict[str, Any]:
    control.settimeout(limits.GUARDIAN_SPAWN_SECONDS)
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = control.recv(min(65536, limits.GUARDIAN_MESSAGE_BYTES + 1 - len(line)))
        if not piece:
            raise ConnectionResetError(errno.ECONNRESET, "The server went away before it said what to run")
        line += piece
        if len(line) > limits.GUARDIAN_MESSAGE_BYTES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    spec: dict[str, Any] = json.loads(line)
    return spec


def _start(spec: dict[str, Any], output: int, input: int | None, errors: int | None, ports: int | None) -> int:
    rulesets = _rulesets(spec.get("fence"), ports)
    # Only what would lead to a port; without one to keep back there is nothing to filter.
    filter = call_filter() if len(rulesets) > 1 else None

    def before_exec() -> None:
        # If even the keeper is killed, at least the command itself goes with it. One thread, so this is safe here.
        die_with_parent()
        enter(rulesets)
        if filter is not None:
            refuse_calls(filter)

    try:
        process = subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=subprocess.DEVNULL if input is None else input,
            stdout=output,
            stderr=output if errors is None else errors,
            close_fds=True,
            start_new_session=True,
            preexec_fn=before_exec,
        )
    except (ValueError, IndexError) as error:
        raise OSError(errno.EINVAL, f"{error}") from None
    except subprocess.SubprocessError:
        # What went wrong between fork and exec is not told. It did not run: never unconfined instead (A36).
        raise OSError(errno.EPERM, "The kernel refused to confine the command") from None
    finally:
        for ruleset in rulesets[:1]:
            os.close(ruleset)  # the other one is shared
    # From here on only `reap` collects children.
    process.returncode = 0
    return process.pid


def _rulesets(fence: dict[str, Any] | None, ports: int | None) -> list[int]:
    """What the command is confined by, the large one last: the kernel copies what is there already."""
    if fence is None:
        return []
    if fence["ports"] and ports is None and version() >= 4:
        raise OSError(errno.EIO, "The ports that a confined command is kept from could not be prepared")
    return [path_ruleset(fence["paths"]), *([ports] if fence["ports"] and ports is not None else [])]


def _explain(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{what}: {error.filename}" if error.filename else what


def _report(control: socket.socket, line: dict[str, Any]) -> None:
    try:
        control.sendall(json.dumps(line).encode() + b"\n")
    except OSError:
        pass  # The server is gone: there is nobody left to tell.


def _hang_up(control: socket.socket) -> None:
    """Wait until the server has hung up too.

    To close a socket with something unread in it (a second `kill`) is to reset it, and the server would lose the report
    that it had not read yet.
    """
    try:
        control.shutdown(socket.SHUT_WR)
        control.settimeout(limits.KILL_GRACE_SECONDS)
        while control.recv(4096):
            pass
    except OSError:
        pass


class _Stage(Enum):
    RUNNING = "running"
    ASKED = "asked to end; force follows at the deadline"
    FORCED = "being killed until nothing is left"


class _Keeper:
    """Watches one command. `exit_code` and `reason` hold when `watch` has returned."""

    def __init__(self, command: int, control: socket.socket, life: int, wake: int) -> None:
        self._command = command
        self._control = control
        self._wake = wake
        self._life = life
        self._stage = _Stage.RUNNING
        self._deadline = 0.0
        self._ended = False
        self.exit_code = -signal.SIGKILL.value
        self.reason = "exited"
        self._poll = select.poll()
        for descriptor in (control.fileno(), life, wake):
            self._poll.register(descriptor, select.POLLIN)

    def watch(self) -> None:
        """Return when no process of the command is left, or only ones that we are not allowed to kill."""
        while self._children_left():
            if self._stage is not _Stage.FORCED and self._deadline and time.monotonic() >= self._deadline:
                self._stage = _Stage.FORCED
            if self._stage is _Stage.FORCED and self._force():
                return
            for descriptor, _ in self._poll.poll(self._patience()):
                self._notice(descriptor)

    def _children_left(self) -> bool:
        reaped = reap()
        if self._command in reaped.ended:
            self._ended = True
            self.exit_code = reaped.ended[self._command]
            if self._stage is _Stage.RUNNING:
                # What is in the middle of its last words (`tee >(wc -l)`) may say them; the rest is killed.
                self._stage = _Stage.ASKED
                self._deadline = time.monotonic() + limits.LEFTOVER_GRACE_SECONDS
        return reaped.left

    def _force(self) -> bool:
        """One round of killing; True when it is hopeless."""
        if not self._ended:
            # For systems without /proc; elsewhere the sweep reaches the group too.
            self._signal_group(signal.SIGKILL)
        return kill_descendants().hopeless

    def _patience(self) -> int | None:
        """Milliseconds to sleep unless something happens."""
        match self._stage:
            case _Stage.RUNNING:
                return None
            case _Stage.ASKED:
                return max(1, int((self._deadline - time.monotonic()) * 1000))
            case _Stage.FORCED:
                return int(limits.SWEEP_SECONDS * 1000)
            case _:
                assert_never(self._stage)

    def _notice(self, descriptor: int) -> None:
        if descriptor == self._wake:
            os.read(self._wake, 4096)
        elif descriptor == self._control.fileno() and self._asked_to_kill():
            self._ask()
        else:
            # The server or the guardian is gone. Its end is permanent, so listening on would be a busy loop.
            self._poll.unregister(descriptor)
            if self.reason == "exited" and not self._ended:
                self.reason = "lost"
            self._stage = _Stage.FORCED

    def _asked_to_kill(self) -> bool:
        try:
            return self._control.recv(4096) != b""
        except OSError:
            return False

    def _ask(self) -> None:
        if self._stage is not _Stage.RUNNING:
            return
        self.reason = "killed"
        self._stage = _Stage.ASKED
        self._deadline = time.monotonic() + limits.KILL_GRACE_SECONDS
        self._signal_group(signal.SIGTERM)
        # What has left the group may end politely too, and then nobody has to wait for the whole grace.
        ask_descendants(except_group=self._command)

    def _signal_group(self, number: signal.Signals) -> None:
        """Only while the command has not been reaped: until then its group is certainly its own."""
        try:
            os.killpg(self._command, number)
        except PermissionError:
            pass  # It runs as somebody else. The sweep finds out whether that holds for all that is left.
