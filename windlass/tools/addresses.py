"""Which addresses `fetch` may go to: URLs that say plainly where they lead, and hosts that are on the open internet."""

import ipaddress
import re
import string
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from windlass import limits
from windlass.wire.tools import ToolError

_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\.?")
_UNICAST = ipaddress.ip_network("2000::/3")  # all that is given out for the open internet
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# What means the same with and without percent-encoding.
_UNRESERVED = string.ascii_letters + string.digits + "-._~"
_PATH_PLAIN = _UNRESERVED + "!$&'()*,:;=@"
_QUERY_PLAIN = _UNRESERVED + "!$'()*,/:?@"
_FIRST_FREE_PORT = 1024  # below are services that are no web servers and might take what we send for commands


class Target(NamedTuple):
    """Where a URL leads: what must not change when it is followed."""

    scheme: str
    host: str
    port: int


def plain_url(url: str, allow_private: bool) -> str:
    """The one way to write this URL, or ToolError. It is what people are asked for, what rules are about, and what is
    fetched: `https://HOST:443/a/%2e%2e/b` must not get around a rule about `https://host/b`."""
    target = check_url(url, allow_private)
    parts = urlsplit(url)
    host = target.host.rstrip(".")
    host = f"[{host}]" if ":" in host else host
    port = "" if target.port == _usual_port(target.scheme) else f":{target.port}"
    path = _without_dots(_spelt(parts.path or "/", _PATH_PLAIN, "+/"))
    return urlunsplit((target.scheme, host + port, path, _spelt(parts.query, _QUERY_PLAIN, "&+;="), ""))


def _spelt(text: str, plain: str, others: str) -> str:
    """With `plain` characters as they are, `others` as they came, and everything else percent-encoded."""

    def one(found: re.Match[str]) -> str:
        piece = found.group()
        if len(piece) == 1:
            return piece if piece in plain or piece in others else quote(piece, safe="", errors="replace")
        meant = chr(int(piece[1:], 16))
        return meant if meant in plain else piece.upper()

    return re.sub(r"%[0-9A-Fa-f]{2}|.", one, text, flags=re.DOTALL)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/".join(["", *kept, *([""] if segments[-1] in (".", "..") else [])])


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
    port = port if port is not None else _usual_port(parts.scheme)
    if port not in (80, 443) and port < _FIRST_FREE_PORT:
        raise ToolError(f"Port {port} is not one of a web server: it must be 80, 443 or {_FIRST_FREE_PORT} and above.")
    return Target(parts.scheme, _checked_host(parts, allow_private), port)


def _usual_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


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
