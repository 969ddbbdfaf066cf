"""The guardian's own process: forks a keeper for each request of the server, and outlives it only to clean up.

A request is one byte that carries two to four descriptors: the keeper's socket to the server, the pipe for the
command's output, what is to be its standard input, if anything, and its standard error, if that is not to go where its
output goes. What to run goes over the keeper's socket, so nothing a command is or does can block this loop. A byte
with a single descriptor tells which ports confined commands are kept from, as JSON in a pipe.
"""

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable

from windlass import limits
from windlass.guardian.fence import port_ruleset
from windlass.guardian.keeper import keep
from windlass.guardian.tree import become_subreaper, kill_descendants, reap, stand_firm, wake_on_child_end

_QUIET_SWEEPS = 2  # rounds that must find nobody: what forks and ends during one look at /proc can be missed by it


def main(server_descriptor: int) -> None:
    """Serve until the server's end of the socket is closed, then return when nothing below this process is left."""
    become_subreaper()
    stand_firm()
    with socket.socket(fileno=server_descriptor) as server:
        try:
            server.send(b"r")
        except ConnectionError:
            return  # the command that we were started for was cancelled meanwhile
        guardian = _Guardian(server)
        guardian.serve()
    guardian.finish()


class _Guardian:
    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._wake = wake_on_child_end()
        # Nothing is ever written: keepers hold the reading end and see it end when this process does.
        self._life, self._held = os.pipe()
        self._keepers: set[int] = set()
        self._ports: int | None = None
        self._sweeps = 0

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self._server.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            pause = int(limits.SWEEP_SECONDS * 1000) if self._sweeps else None
            ready = {descriptor for descriptor, _ in poll.poll(pause)}
            self._look_after_children()
            if self._server.fileno() in ready and not self._take_request():
                return

    def finish(self) -> None:
        """End everything. The keepers do it; what they have not done within the grace is done here."""
        os.close(self._held)
        deadline = time.monotonic() + limits.KILL_GRACE_SECONDS
        while self._look_after_children():
            # A keeper that was stopped or hangs would be waited for without end.
            if time.monotonic() > deadline and kill_descendants().hopeless:
                return
            select.select([self._wake], [], [], limits.SWEEP_SECONDS)

    def _look_after_children(self) -> bool:
        """Reap, and kill what a dead keeper left to us; False when nothing at all is left below this process."""
        _drain(self._wake)
        reaped = reap()
        if any(reaped.ended[keeper] != 0 for keeper in self._keepers & reaped.ended.keys()):
            # A keeper that ended as it should leaves nothing; one that was killed made us the parent of its tree.
            self._sweeps = _QUIET_SWEEPS
        self._keepers -= reaped.ended.keys()
        if self._sweeps:
            sweep = kill_descendants(spare=self._keepers)
            self._sweeps = _QUIET_SWEEPS if sweep.alive > sweep.refused else self._sweeps - 1
        return reaped.left

    def _take_request(self) -> bool:
        """Fork a keeper for one request; False when the server is gone."""
        try:
            byte, descriptors, _, _ = socket.recv_fds(self._server, 1, 4)
        except ConnectionError:
            return False
        if not byte:
            return False
        if descriptors:
            try:
                self._prepare_ports(*descriptors) if len(descriptors) == 1 else self._fork(*descriptors)
            except OSError:
                # No process to be had. The server sees its socket closed and says so.
                _print_error()
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _prepare_ports(self, told: int) -> None:
        """Once, and all keepers inherit it: with its 65,535 rules it takes longer than most commands."""
        if self._ports is not None:
            os.close(self._ports)
            self._ports = None
        self._ports = port_ruleset(json.loads(os.read(told, 16 * limits.KIB)))

    def _fork(self, control: int, output: int, input: int | None = None, errors: int | None = None) -> None:
        pid = os.fork()
        if pid:
            self._keepers.add(pid)
            return
        _live_as_a_keeper(lambda: self._keep(control, output, input, errors))

    def _keep(self, control: int, output: int, input: int | None, errors: int | None) -> None:
        signal.set_wakeup_fd(-1)
        # The server's socket and the held end above all: while any keeper has them, nobody sees them end.
        for descriptor in (self._server.detach(), self._held, self._wake):
            os.close(descriptor)
        with socket.socket(fileno=control) as connection:
            keep(connection, output, input, errors, self._life, self._ports)


def _live_as_a_keeper(life: Callable[[], None]) -> None:
    """The border of a forked process: whatever happens, it never returns into the guardian's loop."""
    code = 1
    try:
        life()
        code = 0
    except BaseException:
        _print_error()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _print_error() -> None:
    """As the interpreter does it by itself: the library for it would be a tenth of a guardian's start."""
    sys.excepthook(*sys.exc_info())


def _drain(wake: int) -> None:
    try:
        os.read(wake, 4096)
    except BlockingIOError:
        pass
