"""At which addresses a browser may open the page: what the server listens on, under the names its door answers to."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from windlass.server.door import answers_to, host_name, is_loopback

_DEFAULT_PORTS = {"http": 80, "https": 443}


def page_addresses(listening: Iterable[str], allow_hosts: Iterable[str]) -> list[str]:
    """Addresses such as `https://box.local:4747`, those that another machine can reach first.

    `listening` are the URLs of the listeners; Unix sockets are not for browsers. Left out is what the door would
    refuse: a wildcard is no name, and an address of the network is one only if it was allowed.
    """
    allowed = frozenset(host.lower() for host in allow_hosts)
    found: dict[str, bool] = {}  # each once, in order: whether it is for this machine only
    for url in listening:
        if url.startswith("unix:"):
            continue
        for host in _hosts(str(urlsplit(url).hostname), sorted(allowed)):
            shown = f"[{host}]" if ":" in host else host
            name = host_name(shown)
            if answers_to(name, allowed):
                found[_address(url, shown)] = is_loopback(name)
    return sorted(found, key=lambda address: found[address])


def client_address(url: str, allow_hosts: Iterable[str]) -> str:
    """Where programs on this machine find the listener of this URL: at a name that its door answers to.

    A wildcard is no place to go to: then it is loopback, also with TLS. They know the certificate itself, not a name.
    """
    found = page_addresses([url], allow_hosts)
    return url if url in found or not found else found[-1]


def _hosts(listened: str, allowed: Sequence[str]) -> Iterator[str]:
    """Names under which a browser reaches what is listened on, whether or not the door answers to them."""
    address = ipaddress.ip_address(listened) if _is_address(listened) else None
    if address is not None and address.is_unspecified:
        yield from allowed
        yield "127.0.0.1" if address.version == 4 else "::1"
        return
    if not is_loopback(listened):
        yield from (name for name in allowed if not _is_address(name))  # another address leads elsewhere
    yield listened


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _address(url: str, host: str) -> str:
    parts = urlsplit(url)
    port = "" if parts.port == _DEFAULT_PORTS[parts.scheme] else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"
