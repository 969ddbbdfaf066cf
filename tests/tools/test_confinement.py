"""What a confined command is kept from, and what it can still do: real commands under the real kernel."""

import asyncio
import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from bash_kit import Shell, a_run, plan, run

from windlass.guardian.handle import Guardian
from windlass.tools.bash import Bash
from windlass.tools.confinement import landlock_version
from windlass.tools.files import WorkspaceRoot
from windlass.tools.jobs import Jobs
from windlass.wire.tools import ToolOutput

pytestmark = [
    pytest.mark.skipif(landlock_version() < 6, reason="this kernel's Landlock cannot confine a command wholly"),
    pytest.mark.asyncio(loop_scope="module"),
]
CANARY = "canary-4f1c"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home directory as people have it, with Windlass's own things at their usual places in it."""
    # Beside the temporary directory of the tests and not in it: there too much lies on the way.
    home = Path(os.path.realpath("/var/tmp")) / f"home-{os.getpid()}-{time.monotonic_ns()}"
    for name in (".cache", ".config/other", ".local/share/windlass", ".local/share/other", "project"):
        (home / name).mkdir(parents=True)
    for name in ("token", "journal.db", "server.json"):
        (home / ".local/share/windlass" / name).write_text(CANARY)
    (home / "notes").write_text("mine\n")
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def door() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.setblocking(False)
        yield door


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guardian() -> AsyncIterator[Guardian]:
    """One for all, as a server has one for all its commands: preparing the ports takes longer than most of them."""
    guardian = await Guardian.start()
    yield guardian
    await guardian.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def store(guardian: Guardian) -> AsyncIterator[Jobs]:
    store = Jobs(guardian)
    yield store
    await store.aclose()


@pytest.fixture
def root(home: Path) -> Iterator[WorkspaceRoot]:
    # Empty for each test: what another one made there would be in the way of this one's names.
    shutil.rmtree(home / "project")
    (home / "project").mkdir()
    root = WorkspaceRoot(str(home / "project"))
    yield root
    root.close()


@pytest.fixture
def shell(store: Jobs, root: WorkspaceRoot, home: Path, door: socket.socket) -> Shell:
    paths = [str(home / ".local/share/windlass"), str(home / ".config/windlass")]
    environ = {**os.environ, "HOME": str(home), "ANTHROPIC_API_KEY": CANARY}
    return a_run(store, root, paths=paths, ports=[door.getsockname()[1]], environ=environ)


@pytest.fixture
def bash(shell: Shell) -> Bash:
    return shell.bash


def code(output: ToolOutput) -> int:
    number: int = json.loads(output.metadata)["exit_code"]
    return number


FORBIDDEN = {
    "read a token": "cat ~/.local/share/windlass/token",
    "read the journal by another way": "cd ~/.local/share; cat ./other/../windlass/journal.db",
    "read through a link": "ln -s ~/.local/share/windlass here; cat here/token",
    "read through /proc": "cat /proc/self/root$HOME/.local/share/windlass/token",
    "read with another program": 'python3 -c \'import os; print(open(os.environ["HOME"] + '
    '"/.local/share/windlass/server.json").read())\'',
    "write a token": "echo evil > ~/.local/share/windlass/token",
    "append to it": "echo evil >> ~/.local/share/windlass/token",
    "cut it short": 'python3 -c \'import os; os.truncate(os.environ["HOME"] + "/.local/share/windlass/token", 0)\'',
    "remove it": "rm -f ~/.local/share/windlass/token",
    "rename over it": "echo evil > evil; mv -f evil ~/.local/share/windlass/token",
    "link it out": "ln ~/.local/share/windlass/token out; cat out",
    "move the directory": "mv ~/.local/share/windlass ~/.local/share/other/",
    "move a directory above it": "mv ~/.local ~/moved",
    "exchange a directory above it": "mv -T --exchange ~/.local project ||"
    ' python3 -c \'import ctypes,os; h=os.environ["HOME"].encode(); '
    'raise SystemExit(ctypes.CDLL(None).syscall(316, -100, h+b"/.local", -100, h+b"/project", 2) != 0)\'',
    "make the config that is not there": "mkdir ~/.config/windlass",
    "link the config that is not there": "mkdir evil; ln -s $PWD/evil ~/.config/windlass",
    "move one there": "mkdir evil; mv evil ~/.config/windlass",
    "connect to the port": "echo > /dev/tcp/127.0.0.1/PORT",
    "connect over another address": "echo > /dev/tcp/localhost/PORT",
    "connect by Multipath TCP": "python3 -c 'import socket; "
    's = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(("127.0.0.1", PORT))\'',
    "connect with the first packet": "python3 -c 'import socket; "
    's = socket.socket(); s.settimeout(5); s.sendto(b"x", 0x20000000, ("127.0.0.1", PORT))\'',
    "connect with the first message": "python3 -c 'import socket; "
    's = socket.socket(); s.settimeout(5); s.sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", PORT))\'',
    "do it where no filter sees it": "python3 -c 'import ctypes; "
    "raise SystemExit(ctypes.CDLL(None).syscall(425, 1, bytes(120)) < 0)'",
    "signal the server": "kill -0 SERVER",
    "read the server's environment": "cat /proc/SERVER/environ",
    "read the server's memory": "head -c 1 /proc/SERVER/mem",
    "read its open files": "ls -l /proc/SERVER/fd/",
    "trace it": "python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).ptrace(16, SERVER, 0, 0) != 0)'",
    "mount over it": "mount -t tmpfs none ~/.local/share/windlass",
    "mount it elsewhere": "mkdir -p m; mount --bind ~/.local/share m && cat m/windlass/token",
    "in a namespace of its own": (
        "unshare -Urm sh -c 'mkdir -p m; mount --bind ~/.local/share m && cat m/windlass/token'"
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
async def test_a_confined_command_cannot(what: str, bash: Bash, home: Path, door: socket.socket) -> None:
    """A23 A30 A33 A34: a command could act as its own user: read a token and allow itself everything."""
    line = FORBIDDEN[what].replace("PORT", str(door.getsockname()[1])).replace("SERVER", str(os.getpid()))
    output = await run(bash, line)
    assert code(output) != 0 and CANARY not in output.content
    assert all((home / ".local/share/windlass" / name).read_text() == CANARY for name in ("token", "journal.db"))
    assert not (home / ".config/windlass").is_symlink() and not (home / ".config/windlass").exists()
    with pytest.raises(BlockingIOError):
        door.accept()


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf repo && git init -q repo && cd repo && touch a && git add a && "
        "git -c user.name=a -c user.email=a@b commit -qm first && git mv a b && git gc -q && git status",
        "mkdir -p d/e && echo x > d/f && mv d/f d/e/g && ln d/e/g d/h && ln -s h d/i && ln d/h ~/.cache/h && rm -r d",
        'mkdir d && python3 -c \'import os; os.rename("d", os.environ["HOME"] + "/.cache/d")\'',
        "printf 'all:\\n\\techo made > out\\n' > Makefile && make && cat out",
        "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"x\")'",
        "python3 -m venv --without-pip env && env/bin/python -c 'print(1)'",
        "mkdir -p ~/.cache/pip && echo x > ~/.cache/pip/x && mv ~/.cache/pip/x . && mv x ~/.cache/pip/",
        "echo more >> ~/notes && cat ~/notes",
        "echo x > ~/.config/other/settings && echo x > ~/.local/share/other/data",
        "echo x > /tmp/confined-$$ && rm /tmp/confined-$$",
        "ls -la ~ ~/.config / > /dev/null",
        "sleep 60 & kill %1; ps > /dev/null; cat /proc/self/status > /dev/null; echo x > /dev/null",
        "mkfifo p && (echo x > p &) && cat p",
        "echo x | tee /dev/stderr | cat > /dev/shm/confined-$$ && rm /dev/shm/confined-$$",
        "exec 3<>/dev/tcp/127.0.0.1/OTHER",
    ],
)
async def test_a_confined_command_can_do_the_usual_things(line: str, bash: Bash) -> None:
    """People would turn the confinement off on the first day."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        output = await run(bash, f"set -e; {line.replace('OTHER', str(other.getsockname()[1]))}")
    assert code(output) == 0, output.content


SMALL = """
import ctypes, mmap, struct
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("53b867010000bb02000000b901000000ba06010000cd805bc3"))  # socket(AF_INET, SOCK_STREAM, MPTCP)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
raise SystemExit(7 if call() >= 0 else 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for this machine")
async def test_the_calls_of_32_bit_programs_are_no_way_round(bash: Bash) -> None:
    """A30: the same call by another number, which a filter for the usual ones does not know."""
    assert code(await run(bash, f"python3 -c {shlex.quote(SMALL)}")) != 7  # nor is a kernel without such programs


async def test_a_background_job_is_confined_too(shell: Shell, home: Path) -> None:
    """A36: whoever asks for the background would be free."""
    output = await run(shell.bash, "cat ~/.local/share/windlass/token", background=True)
    assert code(output) == 1 and CANARY not in output.content


async def test_what_is_refused_is_explained(bash: Bash, home: Path) -> None:
    """The model would try the same in ten ways, and nobody know why it fails."""
    output = await run(bash, "mkdir ~/go")
    assert f"directly in /, {home.parent.parent}, {home.parent}, {home}, {home}/.config" in output.content
    assert 'sandbox = "off"' in output.content
    assert "confined" not in (await run(bash, "ls /nowhere")).content


async def test_the_ask_says_that_it_is_confined(bash: Bash) -> None:
    """People would decide by something that is not so."""
    ask = plan(bash, "true").ask
    assert ask.confined and "Run a command, confined: it is kept from" in ask.description


async def test_a_command_finds_no_credential(bash: Bash) -> None:
    """A30 A39: in its environment, or in anything below the home directory that it may read."""
    output = await run(bash, f"env; grep -rs {CANARY[:-1]} ~; echo looked")
    assert CANARY not in output.content and "looked\n" in output.content


async def test_temporary_files_work_where_the_data_lies_in_the_temporary_directory(store: Jobs, tmp_path: Path) -> None:
    """`mktemp` makes its file directly in a directory that leads to what is protected, and would be refused."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "token").write_text(CANARY)
    (tmp_path / "space").mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    root = WorkspaceRoot(str(tmp_path / "space"))
    try:
        bash = a_run(store, root, paths=[str(tmp_path / "data")], environ=environ).bash
        output = await run(bash, f"set -e; mktemp; mktemp -d; echo x > new; ! cat {tmp_path}/data/token")
        assert code(output) == 0 and CANARY not in output.content
    finally:
        root.close()


@pytest.mark.parametrize("written", ["through a link", "as it is"])
async def test_a_path_is_protected_behind_links_and_the_links_with_it(
    written: str, store: Jobs, tmp_path: Path
) -> None:
    """A13: whoever keeps the config in a repository of dotfiles would have an unprotected one."""
    for name in ("dotfiles/windlass", "config", "space", "free"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dotfiles/windlass/config.toml").write_text(CANARY)
    (tmp_path / "config/windlass").symlink_to("../dotfiles/windlass")
    root = WorkspaceRoot(str(tmp_path / "space"))
    try:
        bash = a_run(store, root, paths=[str(tmp_path / "config/windlass")]).bash
        where = "dotfiles" if written == "as it is" else "config"
        assert CANARY not in (await run(bash, f"cat {tmp_path}/{where}/windlass/config.toml")).content
        assert code(await run(bash, f"ln -sfn {tmp_path}/free {tmp_path}/config/windlass")) != 0
        assert code(await run(bash, f"rm {tmp_path}/config/windlass")) != 0
        assert code(await run(bash, f"touch {tmp_path}/free/x")) == 0
    finally:
        root.close()


async def test_a_single_file_is_protected_and_its_neighbours_are_not(store: Jobs, tmp_path: Path) -> None:
    """A config file lies where the user put it: its whole directory would be closed, or it itself be open."""
    (tmp_path / "space").mkdir()
    (tmp_path / "windlass.toml").write_text(CANARY)
    (tmp_path / "other").write_text("other\n")
    root = WorkspaceRoot(str(tmp_path / "space"))
    try:
        bash = a_run(store, root, paths=[str(tmp_path / "windlass.toml")]).bash
        output = await run(bash, "cat ../other; echo x >> ../other; cat ../windlass.toml; mv ../other ../windlass.toml")
        assert output.content.startswith("other\n") and CANARY not in output.content
        assert (tmp_path / "windlass.toml").read_text() == CANARY
        assert (tmp_path / "other").read_text() == "other\nx\n"
    finally:
        root.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
async def test_a_directory_that_is_mounted_twice_is_protected_at_both_places(store: Jobs, tmp_path: Path) -> None:
    """Containers and sandboxes mount homes a second time, and the second way would be open."""
    for name in ("data/windlass", "again", "space"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data/windlass/token").write_text(CANARY)
    mount = ["mount", "--bind", str(tmp_path / "data"), str(tmp_path / "again")]
    if (await asyncio.to_thread(subprocess.run, mount)).returncode:
        pytest.skip("nothing may be mounted here")
    root = WorkspaceRoot(str(tmp_path / "space"))
    try:
        bash = a_run(store, root, paths=[str(tmp_path / "data/windlass")]).bash
        assert CANARY not in (await run(bash, "cat ../again/windlass/token ../data/windlass/token")).content
    finally:
        root.close()
        await asyncio.to_thread(subprocess.run, ["umount", str(tmp_path / "again")], check=True)


async def test_a_confined_command_starts_quickly(shell: Shell, root: WorkspaceRoot) -> None:
    """The agent runs hundreds of commands; half a second for each would be minutes of a run."""
    free = a_run(shell.store, root).bash
    await run(shell.bash, "true")  # the first one prepares the ports, once
    seconds = {}
    for name, bash in (("free", free), ("confined", shell.bash)):
        best = 10.0
        for _ in range(5):
            began = time.perf_counter()
            await run(bash, "true")
            best = min(best, time.perf_counter() - began)
        seconds[name] = best
    assert seconds["confined"] < seconds["free"] + 0.25  # some 30 ms on an idle machine


async def test_commands_of_a_server_are_python_free(bash: Bash) -> None:
    """Whatever confines a command must not be left in its process, with our modules and descriptors in it."""
    output = await run(bash, "ls /proc/$$/fd; readlink /proc/$$/exe")
    assert "python" not in output.content
    assert output.content.split("\n")[:3] == ["0", "1", "2"]
    assert sys.executable not in output.content
