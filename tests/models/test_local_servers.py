"""Model servers on this machine: found at their ports, told from whatever else listens there, and put to use."""

import asyncio
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from list_server import list_server, listed

from windlass import config, limits
from windlass.models.listing import Listing, list_models
from windlass.models.local_servers import LocalServer, config_for, find_local_servers, local_ports
from windlass.testing.canary import KEY, MARK


async def found(answers: dict[str, tuple[int, Any]], name: str = "ollama") -> tuple[list[LocalServer], int]:
    async with list_server(answers) as server:
        return await find_local_servers({name: server.port}), server.port


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/v1/models", listed("qwen3:8b", owned_by="library")),
        ("/api/tags", (200, {"models": [{"name": "qwen3:8b", "size": 1}]})),
    ],
)
async def test_a_server_is_found_by_its_list_of_models(path: str, answer: tuple[int, Any]) -> None:
    """Else whoever has a model on the machine would have to know its address by heart."""
    servers, port = await found({path: answer})
    assert [(one.name, one.base_url, [model.id for model in one.models]) for one in servers] == [
        ("ollama", f"http://127.0.0.1:{port}/v1", ["qwen3:8b"])
    ]


async def test_a_server_is_called_what_it_calls_itself() -> None:
    """Several of them share a port; a name that is wrong would confuse people."""
    servers, _ = await found({"/v1/models": listed("some-model", owned_by="vllm")}, "llamacpp")
    assert servers[0].name == "vllm"


@pytest.mark.parametrize(
    "answer",
    [
        (200, "<html>Jenkins</html>"),
        (200, {"hello": "world"}),
        (200, ["a", "list"]),
        (200, {"data": [{"id": 7}, "x", {"id": "a\x1b[31m"}, {"id": "y" * 201}]}),
        (302, "<html>log in</html>"),
        (401, "<html>log in</html>"),
        (500, {"error": "no"}),
    ],
)
async def test_whatever_else_listens_there_is_passed_over(answer: tuple[int, Any]) -> None:
    """These ports are everybody's: a web server of somebody's own is no model server."""
    assert (await found({"/v1/models": answer, "/api/tags": answer}))[0] == []


async def test_a_server_that_wants_a_key_is_named_all_the_same() -> None:
    """Else people would look for a server that is there."""
    servers, _ = await found({"/v1/models": (401, {"error": {"message": "no key"}})}, "vllm")
    assert servers[0].wants_key and "api_key_env" in config_for(servers[0])


async def test_all_ports_are_looked_at_together_and_only_for_a_moment() -> None:
    """One server that accepts and never answers would hold everyone up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with list_server({"/v1/models": listed("m")}) as server:
            began = asyncio.get_running_loop().time()
            servers = await find_local_servers({"a": port, "b": port, "c": port, "vllm": server.port})
            assert asyncio.get_running_loop().time() - began < 3 * limits.LOCAL_SERVER_SECONDS
    assert [one.name for one in servers] == ["vllm"]


@pytest.mark.parametrize("models", [[], None])
async def test_a_server_without_models_still_gets_a_config(models: list[str] | None) -> None:
    """An Ollama right after its installation has none."""
    servers, _ = await found({"/v1/models": (200, {"object": "list", "data": models})})
    assert tomllib.loads(config_for(servers[0]))["model"].startswith("ollama/")


@pytest.mark.parametrize("fields", [{}, {"max_model_len": 32768}, {"meta": {"n_ctx": 32768}}])
async def test_what_is_printed_is_a_config_that_uses_it(tmp_path: Path, fields: dict[str, Any]) -> None:
    """People copy it."""
    servers, port = await found({"/v1/models": listed("nomic-embed-text", 'odd"name/x:1', **fields)}, "vllm")
    file = tmp_path / "config.toml"
    file.write_text(config_for(servers[0]))
    settings = config.load(file, {})
    provider = settings.providers["vllm"]
    assert (settings.model, provider.base_url) == ('vllm/odd"name/x:1', f"http://127.0.0.1:{port}/v1")
    assert [model.context_window for model in provider.models] == ([32768] if fields else [])


def test_ollama_is_given_a_window_that_it_is_told_to_have() -> None:
    """It starts with a small one and forgets the beginning of a conversation without saying so."""
    from windlass.models.listing import ListedModel

    text = config_for(LocalServer("ollama", "http://127.0.0.1:11434/v1", (ListedModel("qwen3-coder:30b"),)))
    assert "context_window = 64000" in text and "OLLAMA_CONTEXT_LENGTH=64000" in text
    assert "base_url" not in text  # its name says where it is


@pytest.mark.parametrize(
    ("said", "ports"),
    [
        (None, {"ollama": 11434, "llamacpp": 8080, "vllm": 8000, "lmstudio": 1234}),
        ("", {}),
        ("ollama=1, mine=2", {"ollama": 1, "mine": 2}),
        ("x=0,y=70000,z=http,[a]=1,=5,=", {}),
    ],
)
def test_the_environment_can_name_other_ports(said: str | None, ports: dict[str, int]) -> None:
    """Else a server that was moved would never be found, and a test would find those of the machine it runs on."""
    assert local_ports({} if said is None else {"WINDLASS_LOCAL_SERVERS": said}) == ports


# -- asking a provider -------------------------------------------------------------------------------------------------


async def asked(type: str, answers: dict[str, tuple[int, Any]], key: str = KEY) -> tuple[Listing, dict[str, str]]:
    async with list_server(answers) as server:
        listing = await list_models("some", type, server.base_url, key, 5.0)
        return listing, dict(server.asked[0].headers) if server.asked else {}


@pytest.mark.parametrize(
    ("type", "header", "value"),
    [
        ("openai", "Authorization", f"Bearer {KEY}"),
        ("openai-responses", "Authorization", f"Bearer {KEY}"),
        ("anthropic", "x-api-key", KEY),
    ],
)
async def test_a_provider_is_asked_in_the_words_of_its_protocol(type: str, header: str, value: str) -> None:
    """Else a key that is right would be called wrong."""
    listing, headers = await asked(type, {"/v1/models": listed("a", "b")})
    assert (listing.state, [model.id for model in listing.models]) == ("answers", ["a", "b"])
    assert headers[header] == value


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        ((401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}), "refused", "refused the API key"),
        ((403, {"error": {"message": f"{KEY} may not"}}), "refused", "refused the API key"),
        ((404, {"error": "no"}), "other", "has no list of models"),
        ((500, {"error": {"message": f"boom {KEY}"}}), "other", "problem of its own"),
        ((302, "x"), "other", "redirects"),
        ((200, "<html>hello</html>"), "other", "not with a list"),
    ],
)
async def test_what_a_provider_refuses_is_said_without_the_key(answer: tuple[int, Any], state: str, words: str) -> None:
    """A39: providers repeat keys in their errors, and this is printed on screens that are shared."""
    listing, _ = await asked("openai", {"/v1/models": answer})
    assert listing.state == state and words in listing.says
    assert MARK not in repr(listing)


@pytest.mark.parametrize(
    ("base_url", "key", "state"),
    [
        ("http://127.0.0.1:1/v1", KEY, "unreachable"),
        ("http://127.0.0.1:1/v1", f"{KEY}\r\nX-Evil: 1", "other"),
        (f"http://me:{KEY}@127.0.0.1:1/v1", "", "other"),
        ("http://[::1/v1", "", "other"),
        ("ftp://127.0.0.1/v1", "", "other"),
    ],
)
async def test_an_address_that_leads_nowhere_is_said(base_url: str, key: str, state: str) -> None:
    """Else a slip in the config would be a traceback, perhaps with the key in it."""
    listing = await list_models("some", "openai", base_url, key, 5.0)
    assert listing.state == state and listing.says and MARK not in repr(listing)


async def test_a_list_without_end_is_not_read_to_its_end() -> None:
    """A server that never stops would fill our memory."""
    async with list_server({"/v1/models": (200, "x" * (limits.MODEL_LIST_BYTES + 100))}) as server:
        assert (await list_models("some", "openai", server.base_url, "", 10.0)).state == "other"
