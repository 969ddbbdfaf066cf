"""A client that finds no server starts one that follows its clients: one, whatever happens in the same instant."""

import json
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

import pytest
from fake_windlass import TOKEN, FakeWindlass, refusal

import windlass
from windlass import limits
from windlass.client import starting
from windlass.client.discovery import SERVER_FILE, is_alive
from windlass.client.errors import ServerNotStarted
from windlass.testing import canary
from windlass.testing.processes import alive
from windlass.testing.server_process import ServerProcess, until
from windlass.testing.stem import Forked

STARTED = "Started a server"


class Command:
    """A `windlass` that was started, its output in files."""

    def __init__(self, process: Forked, out: IO[bytes], err: IO[bytes]) -> None:
        self.process = process
        self._files = (out, err)

    async def ended(self) -> tuple[int, str, str]:
        """Its exit code and what it printed."""
        await until(lambda: self.process.poll() is not None, "the command has ended")
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read().decode())
            file.close()
        canary.check_text("".join(texts), "what the program printed")
        return self.process.returncode or 0, texts[0], texts[1]


class Place:
    """A home without a server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data_dir = root / "share" / "windlass"
        self.config = root / "config" / "windlass" / "config.toml"
        self.project = root / "project"
        self.project.mkdir()
        self.config.parent.mkdir(parents=True)
        self._commands: list[Command] = []

    def run(self, *arguments: str, **variables: str) -> Command:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(windlass.__file__).parent.parent),
            "XDG_DATA_HOME": str(self.root / "share"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            **canary.ENVIRONMENT,
            **variables,
        }
        assert ServerProcess.stem is not None
        number = len(self._commands)
        out, err = (self.root / f"out{number}").open("w+b"), (self.root / f"err{number}").open("w+b")
        argv = ["windlass", *arguments, "-C", str(self.project)]
        command = Command(ServerProcess.stem.fork(argv, environment, out.fileno(), err.fileno()), out, err)
        self._commands.append(command)
        return command

    def registered(self, server: dict[str, object]) -> Path:
        """Leave an address in the data directory, as a server does; the file."""
        self.data_dir.mkdir(mode=0o700, parents=True)
        file = self.data_dir / SERVER_FILE
        file.touch(mode=0o600)
        file.write_text(json.dumps(server))
        return file

    @property
    def server_pid(self) -> int:
        return int(json.loads((self.data_dir / SERVER_FILE).read_bytes())["pid"])

    def starts(self) -> int:
        """How many servers were ready here so far."""
        return (self.data_dir / starting.LOG_FILE).read_text().count(" is ready at ")

    async def stop_server(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the server, and return when it is gone."""
        pid = self.server_pid
        os.kill(pid, number)
        # Looked at by its state: a system may take seconds to hear of the end of a process that nobody waits for.
        await until(lambda: not alive({pid}), "the server is gone")

    async def close(self) -> None:
        for command in self._commands:
            command.process.kill()
        if (self.data_dir / SERVER_FILE).exists() and self.server_pid != os.getpid() and is_alive(self.server_pid):
            await self.stop_server()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    await place.close()


async def test_a_first_run_needs_no_server(place: Place) -> None:
    """R45: a newcomer would be told to open a second terminal; and must be told what runs there now."""
    code, out, err = await place.run("run", "hello").ended()
    assert (code, err.count(STARTED)) == (0, 1)
    assert "built-in demo" in out
    log = place.data_dir / starting.LOG_FILE
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    # Each request would be in it, for as long as the server lives: its own log is bounded, this is not.
    assert '"event"' not in log.read_text() and '"request"' in (place.data_dir / "windlass.log").read_text()
    code, _, err = await place.run("sessions").ended()
    assert (code, STARTED in err, place.starts()) == (0, False, 1)


async def test_a_script_says_what_may_be_done_and_waits_for_nobody(place: Place) -> None:
    """I10: what it allowed would be asked for all the same, or what it did not would be done, or waited for."""
    code, _, err = await place.run("run", "--no-wait", "--allow", "bash:echo *", "run echo good").ended()
    assert code == 0 and "Denied" not in err and "good" in err
    code, _, err = await place.run("run", "--no-wait", "run echo bad > file").ended()
    assert code == 0 and "Denied: nobody is waited for" in err
    assert not (place.project / "file").exists()


async def test_a_run_in_plan_mode_changes_nothing(place: Place) -> None:
    """B39: whoever wants to see a plan first would find the work done."""
    code, _, _ = await place.run("run", "--plan", "--allow", "write", "write file.txt words").ended()
    assert code == 0 and not (place.project / "file.txt").exists()


async def test_ten_clients_in_one_instant_get_one_server(place: Place) -> None:
    """R45: two servers would fight for the data directory, and some clients would fail for no reason of theirs."""
    ends = [await command.ended() for command in [place.run("sessions", "--json") for _ in range(10)]]
    assert [code for code, _, _ in ends] == [0] * 10, [err for _, _, err in ends]
    assert sum(STARTED in err for _, _, err in ends) == 1
    assert place.starts() == 1
    assert "Another server" not in (place.data_dir / starting.LOG_FILE).read_text()  # none was started in vain


async def test_after_a_crash_another_server_is_started(place: Place) -> None:
    """R46: the address of a server that was killed would have to be removed by hand."""
    await place.run("sessions").ended()
    await place.stop_server(signal.SIGKILL)
    assert (place.data_dir / SERVER_FILE).exists()
    code, _, err = await place.run("sessions").ended()
    assert (code, err.count(STARTED), place.starts()) == (0, 1, 2)


async def test_an_address_at_which_nobody_answers_is_none(place: Place) -> None:
    """R46: after a crash the server's number may be another process's; every command would fail until that ends."""
    place.registered({"url": "http://127.0.0.1:9", "token": "x", "pid": os.getpid()})
    assert (await place.run("sessions").ended())[0] == 0
    assert place.starts() == 1


async def test_a_server_that_is_just_leaving_is_followed_by_another(place: Place) -> None:
    """R36: a client that comes in the moment in which the last one left would be refused."""
    assert (await place.run("sessions").ended())[0] == 0
    os.kill(place.server_pid, signal.SIGTERM)
    code, _, err = await place.run("sessions").ended()
    assert code == 0, err


async def test_a_server_that_refuses_because_it_leaves_is_followed_by_another(place: Place) -> None:
    """R36: it decided to leave between being found and being asked, and the client would be told to come again."""
    async with FakeWindlass().serve() as leaving:
        file = place.registered({"url": leaving.url, "token": TOKEN, "pid": os.getpid()})
        for _ in range(limits.CLIENT_RETRIES + 1):
            leaving.refuse("/v1/workspaces", refusal(503, "This server is leaving."))
        command = place.run("sessions")
        await leaving.asked_for("/v1/workspaces")
        file.unlink()
        code, _, err = await command.ended()
    assert (code, err.count(STARTED)) == (0, 1), err


async def test_a_server_that_cannot_start_says_why(place: Place) -> None:
    """A mistake in the config would only be found by looking for a file that nobody knows of."""
    place.config.write_text("model = 3\n")
    began = time.monotonic()
    code, _, err = await place.run("run", "hello").ended()
    assert code == 1
    assert "Expected `str`, got `int`" in err and "Mend what it says" in err
    assert time.monotonic() - began < limits.START_SECONDS


@pytest.mark.parametrize("how", ["option", "variable"])
async def test_a_client_that_may_not_start_one_says_so(place: Place, how: str) -> None:
    """Where a server is somebody else's business, a forgotten one would be hidden by a second."""
    arguments, variables = (["--no-start"], {}) if how == "option" else ([], {"WINDLASS_NO_START": "1"})
    code, _, err = await place.run("sessions", *arguments, **variables).ended()
    assert code == 1 and "Start one with `windlass serve`" in err
    assert not place.data_dir.exists()


async def test_a_named_server_that_is_not_there_is_not_replaced(place: Place) -> None:
    """Whoever means a server elsewhere would get an empty one here, and look for their sessions."""
    token = place.root / "token"
    token.touch(mode=0o600)
    token.write_text("x")
    named = {"WINDLASS_URL": "http://127.0.0.1:9", "WINDLASS_TOKEN_FILE": str(token)}
    code, _, err = await place.run("sessions", **named).ended()
    assert code == 1 and "http://127.0.0.1:9" in err
    assert not place.data_dir.exists()


async def test_the_started_server_belongs_to_no_terminal_and_stays_a_moment(place: Place) -> None:
    """B32: Ctrl-C in the client's terminal would end it, with everyone else's runs; and the next command needs it."""
    await place.run("sessions").ended()
    pid = place.server_pid
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/fd/0") == os.devnull
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


# -- the same without the program around it ---------------------------------------------------------------------------


async def test_a_long_log_of_earlier_servers_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A45: what servers print over the years would fill the disk."""
    monkeypatch.setattr(starting, "_SERVE", (sys.executable, "-c", "raise SystemExit('no luck')"))
    monkeypatch.setattr(limits, "START_LOG_BYTES", 10)
    (tmp_path / starting.LOG_FILE).write_text("of last year\n")
    with pytest.raises(ServerNotStarted) as failed:
        await starting.start(tmp_path)
    assert failed.value.log == ("no luck",)
    assert (tmp_path / f"{starting.LOG_FILE}.1").read_text() == "of last year\n"


async def test_only_the_words_of_this_start_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People would mend what was wrong last week."""
    monkeypatch.setattr(starting, "_SERVE", (sys.executable, "-c", "raise SystemExit('no luck')"))
    (tmp_path / starting.LOG_FILE).write_text("of last week\n")
    with pytest.raises(ServerNotStarted) as failed:
        await starting.start(tmp_path)
    assert failed.value.log == ("no luck",)


async def test_a_server_that_is_never_ready_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script would hang on a disk that hangs."""
    waits = "import os, sys; print(os.getpid(), flush=True); sys.stdin = None; __import__('signal').pause()"
    monkeypatch.setattr(starting, "_SERVE", (sys.executable, "-c", waits))
    monkeypatch.setattr(limits, "START_SECONDS", 2.0)
    with pytest.raises(ServerNotStarted, match="is not ready after 2 s") as failed:
        await starting.start(tmp_path)
    os.kill(int(failed.value.log[0]), signal.SIGKILL)


@pytest.mark.parametrize("name", [starting.LOCK_FILE, starting.LOG_FILE])
async def test_a_link_that_was_laid_there_is_not_followed(tmp_path: Path, name: str) -> None:
    """A13: what it points to would be written to with our rights."""
    (tmp_path / "theirs").touch()
    (tmp_path / name).symlink_to(tmp_path / "theirs")
    with pytest.raises(ServerNotStarted, match=name):
        await starting.start(tmp_path)
    assert (tmp_path / "theirs").read_bytes() == b""


async def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """A traceback says nothing to whoever mistyped --data-dir."""
    (tmp_path / "file").touch()
    with pytest.raises(ServerNotStarted, match="--data-dir"):
        await starting.start(tmp_path / "file" / "data")


async def test_whoever_waits_for_another_client_to_start_one_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is stopped (Ctrl-Z) in the middle of a start would stop all others."""
    monkeypatch.setattr(limits, "START_TURN_SECONDS", 0.2)
    async with starting._alone(tmp_path):
        with pytest.raises(ServerNotStarted, match="windlass serve"):
            await starting.start(tmp_path)
