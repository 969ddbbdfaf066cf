"""`windlass models`: what can be used, what cannot and why, and what runs on this machine."""

import json
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import environment
from windlass_program import Program, start_windlass

from windlass.testing.canary import KEY

# The server that only lists models lives with the tests of the models; test folders are no packages.
sys.path.append(str(Path(__file__).parent.parent / "models"))

from list_server import list_server, listed

Models = Callable[..., Awaitable[Program]]


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """Runs `windlass models ARGUMENTS` with a config and an environment, to its end. It finds no other servers."""

    async def run(
        *arguments: str, config: str = "", command: str = "models", from_nothing: bool = False, **variables: str
    ) -> Program:
        file = tmp_path / "config.toml"
        file.write_text(config)
        program = await start_windlass(
            tmp_path,
            *(command, "--config", str(file), *arguments),
            stdin=DEVNULL,
            environment=environment(tmp_path, **variables),
            from_nothing=from_nothing,
        )
        await program.ended()
        return program

    return run


def line(program: Program, words: str) -> str:
    return next(line for line in program.out.splitlines() if words in line)


async def test_what_can_be_used_is_a_table_with_sizes_and_prices(models: Models) -> None:
    """Else people choose a model by its name alone."""
    program = await models(from_nothing=True, ANTHROPIC_API_KEY=KEY)
    assert program.process.returncode == 0, program.err
    default = " ".join(line(program, "anthropic/claude-sonnet-5-5").split())
    assert default == "anthropic/claude-sonnet-5-5 anthropic 1000k 32k 2 / 10 0.1 / 2.5 images thinks default"
    assert line(program, "anthropic/claude-haiku-5-5").endswith("small")
    assert "Table of 20" in program.out


async def test_a_model_that_is_not_known_says_so(models: Models) -> None:
    """Else the sizes that are only assumed would be believed."""
    program = await models(config='model = "openai/gpt-99"\n', OPENAI_API_KEY=KEY)
    assert line(program, "openai/gpt-99").split()[1:4] == ["openai-responses", "128k", "8192"]
    assert line(program, "openai/gpt-99").endswith("default, unknown: defaults")


async def test_a_provider_without_its_key_is_named_with_the_variable(models: Models) -> None:
    """Else the first run would be the first sign."""
    program = await models(config='model = "xai/grok-4.7"\n')
    assert "Cannot be used: xai. XAI_API_KEY is not set." in program.out
    assert "xai/grok-4.7" not in program.out


async def test_a_config_that_is_wrong_is_one_line(models: Models) -> None:
    """Else a typo is a traceback."""
    program = await models(config='[providers.x]\ntype = "telepathy"\n')
    assert program.process.returncode == 1
    assert program.err.count("\n") == 1 and "telepathy" in program.err


async def test_a_server_on_this_machine_is_found_and_put_to_use(models: Models, tmp_path: Path) -> None:
    """Else a new user without a key would never learn that there is a model right here."""
    async with list_server({"/v1/models": listed("qwen3:8b", owned_by="library")}) as server:
        here = f"ollama={server.port}"
        program = await models(WINDLASS_LOCAL_SERVERS=here)
        assert f"Ollama answers at {server.base_url} and has qwen3:8b." in program.out
        printed = program.out.partition("[section]:\n")[2].partition("\n#")[0]
        config = "\n".join(text.strip() for text in printed.splitlines() if not text.strip().startswith("#"))
        used = await models(config=config.partition("For a hosted")[0], WINDLASS_LOCAL_SERVERS=here)
        assert line(used, "ollama/qwen3:8b").endswith("default")
        assert "The config uses it already." in used.out


async def test_nobody_beyond_this_machine_is_asked_unless_told_to(models: Models) -> None:
    """A look at what there is must not send a key anywhere."""
    async with list_server({"/v1/models": listed("a")}) as server:
        await models(config=own(server.base_url))
        assert server.asked == []
        await models("--check", config=own(server.base_url))
        assert [request.headers["Authorization"] for request in server.asked] == [f"Bearer {KEY}"]


def own(base_url: str) -> str:
    return f'model = "mine/a"\n[providers.mine]\ntype = "openai"\nbase_url = "{base_url}"\napi_key = "{KEY}"\n'


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (listed("a", "b"), 0, "mine answers and has 2 models."),
        (listed("b"), 0, "a, which the config chooses, is not among them."),
        ((401, {"error": {"message": f"Wrong key {KEY}"}}), 1, "Cannot be used: mine. mine refused the API key (401)."),
        ((404, {}), 0, "has no list of models"),
    ],
)
async def test_a_check_says_what_the_provider_answered(
    models: Models, answer: tuple[int, Any], code: int, words: str
) -> None:
    """A script tells by the code, a person by the words; neither is shown the key (A39)."""
    async with list_server({"/v1/models": answer}) as server:
        program = await models("--check", config=own(server.base_url))
    assert (program.process.returncode, words in program.out) == (code, True), program.out + program.err


async def test_a_check_of_a_server_that_is_gone_fails(models: Models, unused_tcp_port: int) -> None:
    """Else it would be looked for in the agent."""
    program = await models("--check", config=own(f"http://127.0.0.1:{unused_tcp_port}/v1"))
    assert program.process.returncode == 1 and "cannot be reached" in program.out


async def test_a_check_lists_what_only_the_server_knows(models: Models) -> None:
    """A server of one's own is in no table."""
    async with list_server({"/v1/models": listed("a", "llama3.1:8b")}) as server:
        program = await models("--check", "--json", config=own(server.base_url))
    report = json.loads(program.out)
    assert [(row["model"], row["context_window"], row["known"]) for row in report["models"]] == [
        ("mine/a", 128_000, False),
        ("mine/llama3.1:8b", 131_072, True),
    ]
    assert report["providers"] == [
        {"name": "mine", "type": "openai", "usable": True, "says": "mine answers and has 2 models."}
    ]


async def test_scripts_get_everything_as_json(models: Models) -> None:
    """A page or an editor builds its choice of models from it."""
    report = json.loads((await models("--json", OPENAI_API_KEY=KEY)).out)
    sol = next(row for row in report["models"] if row["model"] == "openai/gpt-6.1-sol")
    assert (sol["use"], sol["input_price"], sol["max_output"], sol["dearer_above"]) == (
        "default",
        2.0,
        128_000,
        272_000,
    )
    assert (report["local"], report["prices_of"][:2]) == ([], "20")


async def test_the_doctor_has_a_line_for_it(models: Models, tmp_path: Path) -> None:
    """Who wonders why a long conversation is cut looks there first."""
    async with list_server({"/v1/models": listed("m", owned_by="vllm")}) as server:
        program = await models(
            *("--data-dir", str(tmp_path / "data")),
            command="doctor",
            config='model = "openai/gpt-99"\n',
            OPENAI_API_KEY=KEY,
            WINDLASS_LOCAL_SERVERS=f"vllm={server.port}",
        )
    said = line(program, "Models: ")
    assert said.startswith("WARN  Models: openai/gpt-99 has a context window of 128,000 tokens, or so it is assumed")
    assert f"vLLM answers at {server.base_url}" in said
