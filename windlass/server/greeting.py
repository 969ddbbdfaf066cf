"""What a person sees when a server starts."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from windlass import __version__, limits
from windlass.server.addresses import client_address
from windlass.server.services import Services
from windlass.server.tokens import Identity

_OPERATOR = Identity("terminal", "operate")  # whoever started the server: no token of theirs could be taken back


def page_link(services: Services) -> str:
    """A link to the page that works once. It is a key, so it is for a terminal only, never for a file or a log."""
    if not services.addresses:
        return ""
    # The last one: whoever sits at this terminal needs no other machine's way here.
    return f"{services.addresses[-1]}/?ticket={services.tickets.issue(_OPERATOR)}"


def asked_with_curl(urls: Iterable[str], allow_hosts: Iterable[str], certificate: str | None) -> str:
    """What to tell `curl` to reach the server from here, "" where only Unix sockets are listened on.

    Not the listener's own URL: 0.0.0.0 is no Host that is answered, and curl knows no certificate made at home.
    """
    url = next((url for url in urls if not url.startswith("unix:")), "")
    if not url:
        return ""
    trust = f"--cacert {shlex.quote(certificate)} " if certificate else ""
    return trust + client_address(url, allow_hosts)


def greeting(urls: list[str], curl: str, model: str, token_file: Path, data_dir: Path | None, page: str) -> str:
    """What a person sees: where the server is, how to open the page, how to attach, and a request that works as
    pasted. `curl` is of `asked_with_curl`; `page` is a link to the page, "" where none may be shown."""
    lines = [f"Windlass {__version__} is ready at {', '.join(urls)} (model: {model})", ""]
    if model == "scripted/demo":
        lines += ["No model is configured, so the built-in demo answers. It needs no key.", ""]
    option = f" --data-dir {shlex.quote(str(data_dir))}" if data_dir is not None else ""
    pair = f"{sys.argv[0]} pair{option}"
    if page:
        minutes = limits.TICKET_SECONDS // 60
        once = f"  (works once, for {minutes} minutes; more: {pair})"
        lines += ["Open the page in a browser:", f"  {page}", once, ""]
    elif curl:
        lines += ["Open the page in a browser:", f"  {pair}", ""]
    lines += ["Attach a terminal, as many as you like:", f"  {sys.argv[0]} attach{option}", ""]
    if curl:
        bearer = f'-H "Authorization: Bearer $(cat {shlex.quote(str(token_file))})"'
        lines += ["Or over HTTP:", f"  curl {bearer} {curl}/v1/version", ""]
    return "\n".join([*lines, "Ctrl-C stops the server; what it was doing is kept."])
