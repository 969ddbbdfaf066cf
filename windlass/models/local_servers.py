"""Looking for model servers on this machine, at the ports they usually have, and saying what to put into the config.

Only loopback is asked, all ports at once, and for a moment only. `WINDLASS_LOCAL_SERVERS` names other ports, as in
`ollama=11435,vllm=8001`; empty, it says not to look at all.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from windlass import limits
from windlass.models.catalogue import is_loopback, profile
from windlass.models.known_providers import KNOWN_PROVIDERS
from windlass.models.listing import ListedModel, Listing, ask
from windlass.models.refusals import Refusals

PORTS_VARIABLE = "WINDLASS_LOCAL_SERVERS"
TITLES = {"ollama": "Ollama", "llamacpp": "llama.cpp", "vllm": "vLLM", "lmstudio": "LM Studio"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_PORT = re.compile(r"[0-9]{1,5}")
_OWNERS = {"llamacpp": "llamacpp", "vllm": "vllm", "library": "ollama"}  # as the servers sign their lists
# Its own advice for agents. It starts with far less on most machines, and then drops the beginning of what it is sent
# without a word.
_OLLAMA_CONTEXT_TOKENS = 64_000


class LocalServer(msgspec.Struct, frozen=True):
    """A model server that answered. `name` is what to call its provider; it has no models if it `wants_key`."""

    name: str
    base_url: str
    models: tuple[ListedModel, ...] = ()
    wants_key: bool = False


def local_ports(environment: Mapping[str, str]) -> dict[str, int]:
    """Where to look, by name: the usual ports, or those that the environment names. What is no port is left out."""
    said = environment.get(PORTS_VARIABLE)
    if said is not None:
        pairs = (pair.strip().partition("=") for pair in said.split(","))
        named = {name: int(port) for name, _, port in pairs if _NAME.fullmatch(name) and _PORT.fullmatch(port)}
        return {name: port for name, port in named.items() if 0 < port < 65536}
    addresses = {known.name: known.base_url for known in KNOWN_PROVIDERS.values() if is_loopback(known.base_url)}
    return {name: urlsplit(base_url).port or 0 for name, base_url in addresses.items()}


async def find_local_servers(ports: Mapping[str, int]) -> list[LocalServer]:
    """The model servers among those that answer. Whatever else listens there is passed over in silence."""
    found = await asyncio.gather(*(_look_at(name, port) for name, port in ports.items()))
    servers: dict[str, LocalServer] = {}
    for server in found:
        if server is not None:
            taken = server.name in servers
            name = f"{server.name}{urlsplit(server.base_url).port}" if taken else server.name
            servers[name] = msgspec.structs.replace(server, name=name)
    return list(servers.values())


async def _look_at(name: str, port: int) -> LocalServer | None:
    base_url = f"http://127.0.0.1:{port}/v1"
    listing = await _ask(f"{base_url}/models", name)
    if listing.state == "other":
        listing = await _ask(f"http://127.0.0.1:{port}/api/tags", name)  # an Ollama that is too old for the other
    if listing.state == "refused" and listing.in_json:
        return LocalServer(name, base_url, wants_key=True)
    if listing.state != "answers":
        return None
    signed = {_OWNERS[model.owner] for model in listing.models if model.owner in _OWNERS}
    return LocalServer(signed.pop() if len(signed) == 1 else name, base_url, listing.models)


async def _ask(url: str, name: str) -> Listing:
    return await ask(url, {}, Refusals(name, url, ""), name, limits.LOCAL_SERVER_SECONDS)


def config_for(server: LocalServer) -> str:
    """What to put into the config to use a server: valid TOML, with the first of its models that can talk."""
    model = next((one for one in server.models if "embed" not in one.id.lower()), None)
    id = model.id if model is not None else "NAME-OF-A-MODEL"
    lines = [f"model = {_quoted(f'{server.name}/{id}')}"]
    provider = []
    known = KNOWN_PROVIDERS.get(server.name)
    if known is None or known.base_url != server.base_url:
        provider += ['type = "openai"', f"base_url = {_quoted(server.base_url)}"]
    if server.wants_key:
        provider.append('api_key_env = "NAME_OF_A_VARIABLE"')
    tokens = _context_to_use(server, model)
    if tokens:
        provider.append(f"models = [{{ id = {_quoted(id)}, context_window = {tokens} }}]")
    if provider:
        lines += ["", f"[providers.{server.name}]", *provider]
    if server.name == "ollama":
        lines.append(
            f"# Start it with OLLAMA_CONTEXT_LENGTH={tokens or _OLLAMA_CONTEXT_TOKENS}, or it forgets silently."
        )
    return "\n".join(lines) + "\n"


def _context_to_use(server: LocalServer, model: ListedModel | None) -> int:
    if model is None:
        return 0
    if model.context_window or server.name != "ollama":
        return model.context_window
    return min(_OLLAMA_CONTEXT_TOKENS, profile(model.id).context_window)


def _quoted(text: str) -> str:
    # JSON's strings are TOML's too, but for the pairs that JSON makes of characters beyond the first 65,536.
    return json.dumps(text, ensure_ascii=False)
