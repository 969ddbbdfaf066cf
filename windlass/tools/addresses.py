"""Which addresses `fetch` may go to: URLs that say plainly where they lead, and hosts that are on the open internet."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from windlass import limits
from windlass.wire.tools import ToolError

_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\.?")
_UNICAST = ipaddress.ip_network("2000::/3")  # all that is given out for the open internet
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_FIRST_FREE_PORT = 1024  # below are services that are no web servers and might take what we send for commands


class Target(NamedTuple):
    """Where a URL leads: what must not change when it is followed."""

    scheme: str
    host: str
    port: int


def check_url(url: str, allow_private: bool) -> Target:
    """Where this URL leads, or ToolError. Names are not looked up here: their addresses are judged when connecting."""
    if len(url) > limits.FETCH_URL_CHARACTERS:
        raise ToolError(f"The URL is longer than {limits.FETCH_URL_CHARACTERS} characters.")
    if any(character <= " " or character in "\\\x7f" for character in url):
        raise ToolError("The URL has a space, a control character or a backslash in it. Percent-encode what is meant.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError("This is not a URL. Write it as https://host/path.") from None
    if parts.scheme not in ("http", "https"):
        raise ToolError("Only http:// and https:// URLs can be fetched.")
    if "@" in parts.netloc:
        raise ToolError("A URL with a user name or a password in it is not fetched. Leave that part out.")
    port = port if port is not None else 443 if parts.scheme == "https" else 80
    if port not in (80, 443) and port < _FIRST_FREE_PORT:
        raise ToolError(f"Port {port} is not one of a web server: it must be 80, 443 or {_FIRST_FREE_PORT} and above.")
    return Target(parts.scheme, _checked_host(parts, allow_private), port)


def _checked_host(parts: SplitResult, allow_private: bool) -> str:
    host = parts.hostname or ""
    if "[" in parts.netloc or _is_numeric(host):
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            # 2130706433, 0x7f.1 and 0177.0.0.1 are all 127.0.0.1 to some programs, and something else to a reader.
            raise ToolError("Write the address in the usual way, as four decimal numbers or in brackets.") from None
        if not allow_private and not is_public(str(address)):
            raise ToolError(private_address(host))
    elif _HOST.fullmatch(host) is None:
        # Letters of other alphabets look like ours: whoever is asked could not tell which host is meant.
        raise ToolError("The host must be ASCII letters, digits, - and dots. Write other names as xn--...")
    return host


def _is_numeric(host: str) -> bool:
    """Whether its last label is a number: then it is an address and no name, however it is written."""
    return _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def private_address(host: str) -> str:
    return (
        f"{host} is on this machine or on a private network, and is not fetched. If that is wanted, the user can set "
        "allow_private = true under [fetch] in the configuration."
    )


def is_public(address: str) -> bool:
    """Whether an IP address is on the open internet, also when it is wrapped in another kind of address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _inner(ip)
        if inner is None:
            return ip in _UNICAST and ip.teredo is None and ip.is_global
        ip = inner
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _inner(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that is really meant."""
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
