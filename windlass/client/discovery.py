"""How a client finds its server.

What the user names wins: an address and a token file, by option or by WINDLASS_URL and WINDLASS_TOKEN_FILE. Else it is
the server of the data directory, which leaves its address in `server.json` there. That file and a token file hold a
secret, so one that others can read is refused: the secret is no longer one, and saying nothing would hide that.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from windlass import limits
from windlass.client.errors import NoServer, ServerNotFound
from windlass.client.transport import UNIX_PREFIX
from windlass.config import default_data_dir

SERVER_FILE = "server.json"
URL_VARIABLE = "WINDLASS_URL"
TOKEN_FILE_VARIABLE = "WINDLASS_TOKEN_FILE"


class ServerAddress(msgspec.Struct, frozen=True):
    """`certificate`: the very one (PEM) that a local server with TLS uses, "" for one that authorities vouch for."""

    url: str
    token: str | None = None
    pid: int | None = None
    certificate: str = ""

    def __repr__(self) -> str:
        # The default repr would print the token, and a repr ends up in logs and tracebacks (A39).
        return f"ServerAddress(url={self.url!r})"


class _ServerFile(msgspec.Struct):
    url: str
    token: str = ""
    pid: int = 0
    certificate: str = ""


def find_server(
    data_dir: Path | None = None,
    url: str | None = None,
    token_file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServerAddress:
    """The server to talk to. Raises ServerNotFound, saying what to do, when there is none."""
    variables = os.environ if environment is None else environment
    data_dir = data_dir or default_data_dir()
    url = url or variables.get(URL_VARIABLE) or None
    if token_file is None and variables.get(TOKEN_FILE_VARIABLE):
        token_file = Path(variables[TOKEN_FILE_VARIABLE])
    if url is None:
        found = local_server(data_dir)
        return found if token_file is None else msgspec.structs.replace(found, token=read_token(token_file))
    if token_file is not None:
        return ServerAddress(url, read_token(token_file))
    if url.startswith(UNIX_PREFIX):
        return ServerAddress(url)
    return _token_of_local_server(data_dir, url)


def read_token(path: Path) -> str:
    """The token in a file: alone on a line, or as `token` in JSON (a ready file)."""
    content = _read_private(path, "token file").strip()
    if content.startswith("{"):
        content = _parse(path, content).token
    if not content or not content.isascii() or not content.isprintable() or " " in content:
        raise ServerNotFound(f"{path} holds no token. `windlass token create NAME` prints one.")
    return content


def local_server(data_dir: Path) -> ServerAddress:
    """The server that left its address in the data directory. Raises NoServer when none did, or when it is gone."""
    path = data_dir / SERVER_FILE
    if not path.exists():
        raise NoServer(f"No server is running for {data_dir}. Start one with `windlass serve`, or name one with --url.")
    server = _parse(path, _read_private(path, "server file"))
    if server.pid and not is_alive(server.pid):
        # After a crash anyone may be listening on that port: sending the token there would give it away.
        raise NoServer(
            f"The server of {data_dir} (process {server.pid}) is gone. Start it again with `windlass serve`; "
            "if it runs elsewhere, name it with --url and --token-file."
        )
    return ServerAddress(server.url, server.token or None, server.pid or None, server.certificate)


def _token_of_local_server(data_dir: Path, url: str) -> ServerAddress:
    """An address without a token: good when it is the local server's, whose token is known."""
    try:
        found = local_server(data_dir)
    except ServerNotFound:
        found = None
    if found is None or found.url.rstrip("/") != url.rstrip("/"):
        raise ServerNotFound(f"There is no token for {url}. Give one with --token-file or {TOKEN_FILE_VARIABLE}.")
    return found


def _read_private(path: Path, what: str) -> str:
    try:
        # Non-blocking: opening a FIFO of that name would otherwise wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ServerNotFound(f"The {what} {path} cannot be read: {error.strerror}.") from None
    try:
        # The open file is examined, not the name: the name may mean another file a moment later.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ServerNotFound(f"The {what} {path} is not a regular file.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise ServerNotFound(
                f"Others can read the {what} {path}. Its token may be known: `chmod 600` it and make a new token."
            )
        return os.read(descriptor, limits.TOKEN_FILE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _parse(path: Path, content: str) -> _ServerFile:
    try:
        return msgspec.json.decode(content, type=_ServerFile)
    except msgspec.MsgspecError:
        raise ServerNotFound(f"{path} is damaged. Restart the server: it writes a new one.") from None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # someone else's, but alive
    return True
