"""What `windlass doctor` asks of the server, and with --online of the providers."""

import http.client
import os
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from windlass import __version__, config, limits
from windlass.cli.finding import Finding, Level
from windlass.cli.options import ServerOptions
from windlass.cli.pair import is_loopback
from windlass.client import Client, ServerAddress, ServerNotFound, WindlassError, find_server
from windlass.client.transport import trust_in

_DEFAULT_PORT = 4747


async def check_server(server: ServerOptions) -> list[Finding]:
    """Is there one, is it well, does it take our token, is it of our version? And who else can reach it?"""
    try:
        address = find_server(server.data_directory, server.url, server.token_file)
    except ServerNotFound as error:
        return [Finding("WARN", "Server", error.message), check_port(_DEFAULT_PORT)]
    try:
        # Without retries: whoever runs this wants to know how it is now.
        async with Client(address.url, address.token, retries=0, certificate=address.certificate) as client:
            await client.health()
            version = await client.version()
    except WindlassError as error:
        return [Finding("FAIL", "Server", error.message)]
    if version.version != __version__:
        says = f"{address.url} is version {version.version}, this is {__version__}. Restart it after an update."
        found = Finding("WARN", "Server", says)
    else:
        found = Finding("OK", "Server", f"{address.url} is healthy, version {version.version}.")
    return [found, check_reach(address.url), *check_page(address)]


def check_port(port: int) -> Finding:
    """Whether the port that `windlass serve` takes is free, as long as no server of ours has it."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limits.DOCTOR_PORT_SECONDS):
            pass
    except OSError:
        return Finding("OK", "Port", f"{port} is free for `windlass serve`.")
    says = f"something listens on port {port} of this machine. Start with: windlass serve --listen 127.0.0.1:0"
    return Finding("WARN", "Port", says)


def check_reach(url: str) -> Finding:
    """Who can reach the server, and what they could read on the way."""
    if url.startswith("unix:"):
        return Finding("OK", "Network", "a Unix socket: you alone can reach it there.")
    if is_loopback(url):
        return Finding("OK", "Network", "only this machine can reach it. `windlass pair` says how to let a phone in.")
    if url.startswith("https:"):
        return Finding("OK", "Network", "other machines can reach it, over TLS.")
    says = "it is reached over plain HTTP: whoever is on the way can read the token. Use --tls-cert and --tls-key."
    return Finding("WARN", "Network", says)


def check_page(address: ServerAddress) -> list[Finding]:
    """Whether a browser would get the page."""
    parts = urlsplit(address.url)
    if parts.hostname is None or parts.scheme not in ("http", "https"):
        return []
    if parts.scheme == "https":
        trust = trust_in(address.certificate) if address.certificate else ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=limits.CLIENT_CONNECT_SECONDS, context=trust
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=limits.CLIENT_CONNECT_SECONDS)
    try:
        headers = {"Accept": "text/html", "Authorization": f"Bearer {address.token}"}
        connection.request("GET", "/", headers=headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return [Finding("WARN", "Page", f"{address.url}/ could not be opened: {error}.")]
    finally:
        connection.close()
    if status == 200:
        return [Finding("OK", "Page", "served. `windlass pair --open` opens it.")]
    return [Finding("WARN", "Page", f"{address.url}/ answers {status}. Is something else between, or an old server?")]


async def check_providers(config_file: Path | None) -> list[Finding]:
    """Whether the providers of the config take their keys and have the models. Asks them over the network."""
    from windlass.cli.model_report import make_report

    try:
        settings = config.load(config_file)
    except config.ConfigError:
        return []  # what is wrong with the file is said already
    report = await make_report(settings, dict(os.environ), check=True)
    chosen = settings.model.partition("/")[0]
    found = []
    for row in report.providers:
        level: Level = "OK" if row.usable else "FAIL" if row.name == chosen else "WARN"
        found.append(Finding(level, f"Provider {row.name}", row.says or "answers from this machine."))
    return found
