"""`windlass pair`: lets a phone or a browser in, with a code to scan or a link to open."""

import ipaddress
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

import click

from windlass.cli.connection import connected, run_async
from windlass.cli.options import ServerOptions, json_option, server_options
from windlass.cli.qr import qr_lines
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal, has_colours, styled
from windlass.cli.times import duration
from windlass.client import find_server
from windlass.wire.http import Ticket

_DEFAULT_PORT = 4747
_ELSEWHERE = ("192.0.2.1", 9)  # an address that is nobody's (RFC 5737)


@click.command()
@click.option("--here", is_flag=True, help="Only print the link for a browser on this machine.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in a browser on this machine.")
@click.option("--read-only", is_flag=True, help="Whoever uses it may look, and change nothing.")
@click.option("--ascii", is_flag=True, help="Draw the code with # instead of block characters.")
@click.option("--invert", is_flag=True, help="Without colours: for a terminal with dark text on a light ground.")
@json_option
@server_options
def pair(
    here: bool, open_browser: bool, read_only: bool, ascii: bool, invert: bool, as_json: bool, server: ServerOptions
) -> None:
    """Show a code that a phone scans to open the page, and the link for any other browser.

    A code is good for one browser and a few minutes. The browser stays signed in until its token is revoked:
    `windlass token list` shows it as browser-..., and `windlass token revoke NAME` ends it.

    \b
    Examples:
      windlass pair
      windlass pair --open
      windlass pair --read-only
    """
    ticket, links = run_async(_ticket(server, read_only))
    reachable = [link for link in links if not is_loopback(link)]
    local = next((link for link in links if is_loopback(link)), links[0] if links else "")
    terminal = Terminal()
    if as_json:
        terminal.json(_as_json(ticket, links, reachable, read_only))
    elif here or open_browser:
        terminal.line(exact(local) if local else "")
    elif reachable:
        _show(terminal, reachable[0], links, ascii=ascii, invert=invert)
    else:
        terminal.line(exact(local))
    if not as_json:
        _explain(terminal, ticket, reachable, read_only=read_only, here=here or open_browser)
    if open_browser:
        _open(terminal, local)


async def _ticket(server: ServerOptions, read_only: bool) -> tuple[Ticket, list[str]]:
    """The ticket, and the links that lead in with it, those for other machines first."""
    async with connected(server) as client:
        ticket = await client.ticket("read" if read_only else "operate")
    links = list(ticket.urls)
    if not links:  # a server behind something that it cannot know of: the address we used ourselves is good
        base = find_server(server.data_directory, server.url, server.token_file).url
        links = [] if base.startswith("unix:") else [base.rstrip("/") + ticket.path]
    if not links:
        raise click.ClickException(
            "This server listens on a Unix socket only, which no browser can open. "
            "Start it with another --listen beside it: windlass serve --listen 127.0.0.1:4747"
        )
    return ticket, links


def is_loopback(link: str) -> bool:
    """Whether an address means the machine it is opened on."""
    host = (urlsplit(link).hostname or "").rstrip(".")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _as_json(ticket: Ticket, links: list[str], reachable: list[str], read_only: bool) -> dict[str, Any]:
    return {
        "url": (reachable or links)[0],
        "reachable": bool(reachable),
        "urls": links,
        "scope": "read" if read_only else "operate",
        "expires_in_seconds": ticket.expires_in_seconds,
    }


def _show(terminal: Terminal, link: str, links: list[str], *, ascii: bool, invert: bool) -> None:
    # Black on white whatever the terminal's own colours are: not every phone reads a code that is inverted.
    coloured = has_colours(sys.stdout) and not ascii
    for line in qr_lines(link, ascii=ascii, draw_dark=coloured or invert):
        terminal.line(styled(sys.stdout, line, fg="black", bg="bright_white") if coloured else line)
    terminal.line()
    terminal.line(f"Scan it, or open {exact(link)}")
    for other in links:
        if other != link:
            terminal.line(f"{'On this machine' if is_loopback(other) else 'Or'}: {exact(other)}")


def _explain(terminal: Terminal, ticket: Ticket, reachable: list[str], *, read_only: bool, here: bool) -> None:
    may = "look at everything, and change nothing" if read_only else "do everything you can, short of managing tokens"
    terminal.status(f"It works once, within {duration(ticket.expires_in_seconds)}. Whoever opens it may {may}.")
    if here:
        return
    if not reachable:
        for line in how_to_be_reached(ticket.urls, *this_machine()):
            terminal.status(line)
    elif reachable[0].startswith("http:"):
        terminal.status(
            "This is plain HTTP: whoever is on that network can read along and act as you. Use it only on one that "
            "you trust, or serve HTTPS with --tls-cert and --tls-key.",
            fg="yellow",
        )
    terminal.status(
        "`windlass token list` shows browsers you let in, as browser-...; `windlass token revoke` ends one."
    )


def how_to_be_reached(links: list[str], name: str, address: str) -> list[str]:
    """What to do when the server can only be reached from its own machine, with this machine's names filled in."""
    port = next((urlsplit(link).port for link in links), None) or _DEFAULT_PORT
    hosts = " ".join(f"--allow-host {host}" for host in (name, address) if host)
    return [
        "Only a browser on this machine can open that. To let a phone in, start the server so that it listens on the",
        "network, with a certificate that the phone trusts:",
        f"  windlass serve --listen 0.0.0.0:{port} {hosts} --tls-cert cert.pem --tls-key key.pem",
        "Without the certificate (leave both --tls options out) everything goes over plain HTTP: whoever is on the",
        "same network can read along and act as you. Do that only on a network that you trust.",
    ]


def this_machine() -> tuple[str, str]:
    """Its name, and the address it has on the network; "" for what is not known."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)  # sends nothing: it only asks which of our addresses would be used
            address = str(probe.getsockname()[0])
        except OSError:
            address = ""
    return socket.gethostname(), "" if address.startswith("127.") else address


def _open(terminal: Terminal, link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        terminal.status("No browser could be started here. Open the link yourself.")
