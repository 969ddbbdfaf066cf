"""What a person sees when a server starts."""

import shlex
import sys
from pathlib import Path

from windlass import __version__, limits
from windlass.server.services import Services
from windlass.server.tokens import Identity

_OPERATOR = Identity("terminal", "operate")  # whoever started the server: no token of theirs could be taken back


def page_link(services: Services) -> str:
    """A link to the page that works once. It is a key, so it is for a terminal only, never for a file or a log."""
    if not services.addresses:
        return ""
    # The last one: whoever sits at this terminal needs no other machine's way here.
    return f"{services.addresses[-1]}/?ticket={services.tickets.issue(_OPERATOR)}"


def greeting(urls: list[str], model: str, token_file: Path, data_dir: Path | None, page: str) -> str:
    """What a person sees: where the server is, how to open the page, how to attach, and a request that works as
    pasted. `page` is a link to the page, "" where none may be shown."""
    url = next((url for url in urls if not url.startswith("unix:")), "")
    lines = [f"Windlass {__version__} is ready at {', '.join(urls)} (model: {model})", ""]
    if model == "scripted/demo":
        lines += ["No model is configured, so the built-in demo answers. It needs no key.", ""]
    option = f" --data-dir {shlex.quote(str(data_dir))}" if data_dir is not None else ""
    pair = f"{sys.argv[0]} pair{option}"
    if page:
        minutes = limits.TICKET_SECONDS // 60
        once = f"  (works once, for {minutes} minutes; more: {pair})"
        lines += ["Open the page in a browser:", f"  {page}", once, ""]
    elif url:
        lines += ["Open the page in a browser:", f"  {pair}", ""]
    lines += ["Attach a terminal, as many as you like:", f"  {sys.argv[0]} attach{option}", ""]
    if url:
        bearer = f'-H "Authorization: Bearer $(cat {shlex.quote(str(token_file))})"'
        lines += ["Or over HTTP:", f"  curl {bearer} {url}/v1/version", ""]
    return "\n".join([*lines, "Ctrl-C stops the server; what it was doing is kept."])
