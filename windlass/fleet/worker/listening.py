"""Where a worker listens, and what it is called there."""

import ipaddress
import socket
import ssl
from pathlib import Path

import msgspec

from windlass.errors import Invalid

_LOOPBACK_NAMES = ["127.0.0.1", "localhost", "[::1]"]


class Address(msgspec.Struct, frozen=True):
    """`HOST:PORT` as people write it, in its two parts. An IPv6 address has no brackets here."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def names(self) -> list[str]:
        """What may stand in a URL or an Origin for this host."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        return list(dict.fromkeys([own, *(_LOOPBACK_NAMES if self.is_loopback or self._is_wildcard else [])]))

    def url(self, port: int, *, tls: bool, path: str) -> str:
        name = self.names[1] if self._is_wildcard else self.names[0]  # nobody can connect to "everywhere"
        return f"{'wss' if tls else 'ws'}://{name}:{port}{path}"

    @property
    def _is_wildcard(self) -> bool:
        return self.host in ("0.0.0.0", "::")


def parse_address(text: str, *, tls: bool) -> Address:
    """Raises Invalid for what is no address, and for one that others could listen in on."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Invalid(f"{text!r} is no address to listen on. Say HOST:PORT, such as 127.0.0.1:0.")
    # One address, not all that the name has: with port 0 each of them would get a port of its own.
    address = Address("127.0.0.1" if host == "localhost" else host, int(port))
    if not address.is_loopback and not tls:
        raise Invalid(
            f"{text} can be reached from other machines, and anyone on the way could read along. "
            "Give --tls-cert and --tls-key, or listen on 127.0.0.1 and let ssh carry the port."
        )
    return address


def bind(address: Address) -> socket.socket:
    """A socket at that address, not listening yet. Blocks while a name is looked up."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Invalid(f"{address.host} cannot be listened on: {error.strerror or error}.") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise Invalid(f"{address.host}:{address.port} cannot be listened on: {error.strerror}.") from None
    return bound


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Raises Invalid when the files cannot be used."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise Invalid(f"The TLS certificate cannot be used: {error}.") from None
    return context
