"""The config: what the file, the environment and the names of providers give together."""

from pathlib import Path

import pytest

from windlass import assembly, config
from windlass.models.known_providers import KNOWN_PROVIDERS, KnownProvider
from windlass.testing.canary import KEY
from windlass.wire.execution import RunSpec

KEYS = {"anthropic": {"ANTHROPIC_API_KEY": KEY}, "openai": {"OPENAI_API_KEY": KEY}}


def loaded(tmp_path: Path, text: str = "", **environment: str) -> config.Config:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return config.load(file, environment)


@pytest.mark.parametrize(
    ("environment", "model", "type", "base_url"),
    [
        (KEYS["anthropic"], "anthropic/claude-sonnet-5-5", "anthropic", "https://api.anthropic.com"),
        (KEYS["openai"], "openai/gpt-6.1-sol", "openai-responses", "https://api.openai.com/v1"),
        (
            {**KEYS["openai"], **KEYS["anthropic"]},
            "anthropic/claude-sonnet-5-5",
            "anthropic",
            "https://api.anthropic.com",
        ),
        (
            {**KEYS["openai"], "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
            "openai/gpt-6.1-sol",
            "openai",
            "http://127.0.0.1:9/v1",
        ),
        (
            {**KEYS["openai"], "OPENAI_BASE_URL": "https://api.openai.com/v1/"},
            "openai/gpt-6.1-sol",
            "openai-responses",
            "https://api.openai.com/v1/",
        ),
        (
            {**KEYS["anthropic"], "ANTHROPIC_BASE_URL": "http://proxy:9"},
            "anthropic/claude-sonnet-5-5",
            "anthropic",
            "http://proxy:9",
        ),
    ],
)
def test_a_key_in_the_environment_is_enough(
    tmp_path: Path, environment: dict[str, str], model: str, type: str, base_url: str
) -> None:
    """Else the first run with a real model would begin with a manual, or send a proxy's key to the provider itself."""
    settings = loaded(tmp_path, "", **environment)
    provider = settings.providers[settings.model.partition("/")[0]]
    assert (settings.model, provider.type, provider.base_url) == (model, type, base_url)
    assert provider.api_key_env == f"{model.partition('/')[0].upper()}_API_KEY"
    assert settings.small_model.partition("/")[0] == model.partition("/")[0]


def test_without_any_key_the_demo_answers(tmp_path: Path) -> None:
    """Else a new user without a key would see an error as the first thing."""
    settings = loaded(tmp_path)
    assert (settings.model, settings.small_model) == ("scripted/demo", "")


@pytest.mark.parametrize("text", ['model = "deepseek/deepseek-flash"', "[providers.deepseek]\n"])
def test_a_well_known_name_is_enough_for_a_provider(tmp_path: Path, text: str) -> None:
    """Else everyone would have to look up the same addresses."""
    provider = loaded(tmp_path, text).providers["deepseek"]
    assert (provider.type, provider.base_url, provider.api_key_env) == (
        "openai",
        "https://api.deepseek.com",
        "DEEPSEEK_API_KEY",
    )


def test_a_key_of_the_environment_is_not_sent_to_another_address(tmp_path: Path) -> None:
    """A39: whoever is called "openai" in somebody's config would be given the key of the real one."""
    text = '[providers.openai]\ntype = "openai"\nbase_url = "http://somewhere.example/v1"\n'
    provider = loaded(tmp_path, text, OPENAI_API_KEY=KEY).providers["openai"]
    assert (provider.base_url, provider.api_key_env) == ("http://somewhere.example/v1", "")


def test_what_the_file_says_of_a_well_known_provider_wins(tmp_path: Path) -> None:
    """Else a second key, or the older protocol, could not be used with it."""
    text = f'[providers.openai]\ntype = "openai"\napi_key = "{KEY}"\n'
    provider = loaded(tmp_path, text).providers["openai"]
    assert (provider.type, provider.base_url, provider.api_key_env) == ("openai", "https://api.openai.com/v1", "")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[providers.local]\n", "needs a type: one of openai, openai-responses, anthropic, scripted"),
        ('[providers.anthropic]\ntype = "openai"\n', "needs a base_url"),
        ('[providers.x]\ntype = "scripted"\nmodels = [{ id = "y", input_price = -1.0 }]', "input_price"),
        ('[providers.x]\ntype = "scripted"\nmodels = [{ id = "y", input_price = nan }]', "input_price"),
    ],
)
def test_what_cannot_be_filled_in_is_said(tmp_path: Path, text: str, word: str) -> None:
    """Else the first request would fail, or a run cost less than nothing."""
    with pytest.raises(config.ConfigError, match=word):
        loaded(tmp_path, text)


def test_a_price_of_nought_is_said_and_a_missing_one_is_not(tmp_path: Path) -> None:
    """Else a free offer of a dear model would be counted at its price."""
    models = 'models = [{ id = "claude-opus-5-5", input_price = 0.0, images = false }]'
    said = loaded(tmp_path, f"[providers.anthropic]\n{models}").providers["anthropic"].models[0].said
    assert said == {"input_price": 0.0, "images": False}


RUN = RunSpec("run_1", "ses_1", "ses_1", "/home/me", "go", [], model="anthropic/claude-haiku-4-5")


@pytest.mark.parametrize(("model", "price"), [("claude-haiku-4-5", 7.0), ("claude-opus-4-5", 5.0)])
def test_sizes_and_prices_reach_the_agent(tmp_path: Path, model: str, price: float) -> None:
    """Else budgets in money would count nothing, and long conversations be cut at the wrong place."""
    text = '[providers.anthropic]\nmodels = [{ id = "claude-haiku-4-5", input_price = 7.0 }]\n'
    agent = assembly.agent_spec(loaded(tmp_path, text, ANTHROPIC_API_KEY=KEY), RUN)
    known = assembly._known_model(agent.provider, model)
    assert (known.context_window, known.default_max_tokens, known.input_price) == (200_000, 32_000, price)
    assert known.cache_write_price > 0


def test_a_provider_offers_what_the_config_lists_else_what_is_known_of_it(tmp_path: Path) -> None:
    """What a client may choose from, and what it is told of each."""
    listed = loaded(tmp_path, 'model = "openai/gpt-new"\n[providers.openai]\nmodels = [{ id = "gpt-4.1" }]\n')
    assert [one.id for one in assembly.model_profiles(listed, "openai")] == ["gpt-new", "gpt-4.1"]
    known = assembly.model_profiles(loaded(tmp_path, 'model = "openai/gpt-new"'), "openai")
    assert (known[0].id, known[0].context_window) == ("gpt-new", 128_000)
    assert {"gpt-6.1-sol", "gpt-4.1"} < {one.id for one in known}


ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("known", KNOWN_PROVIDERS.values(), ids=lambda known: known.name)
def test_the_page_about_models_names_every_known_provider(known: KnownProvider) -> None:
    """People would not know that a name is enough, or set a variable that nobody reads."""
    page = (ROOT / "docs" / "models.md").read_text().splitlines()
    row = next(line for line in page if line.startswith(f"| `{known.name}` |"))
    assert f"`{known.type}`" in row and f"`{known.base_url}`" in row
    assert f"| `{known.key_env}` |" in row if known.key_env else row.endswith("| none |")


def test_the_example_on_the_page_about_models_is_a_valid_config(tmp_path: Path) -> None:
    """People copy it."""
    example = (ROOT / "docs" / "models.md").read_text().partition("```toml\n")[2].partition("```")[0]
    assert loaded(tmp_path, example).providers["anthropic"].models[0].said["input_price"] == 3.5


@pytest.mark.parametrize("kind", ["allow", "ask", "deny"])
@pytest.mark.parametrize(
    "pattern", ["", "bash:a\\nb", "bash:a\\u202eb", "b" * 1_001], ids=["none", "lines", "hidden", "long"]
)
def test_a_rule_that_nobody_can_read_is_refused(tmp_path: Path, kind: str, pattern: str) -> None:
    """A rule would cover something else than its author sees, or nothing (A26)."""
    with pytest.raises(config.ConfigError, match=f"permissions.{kind}"):
        loaded(tmp_path, f'[permissions]\n{kind} = ["{pattern}"]\n')
