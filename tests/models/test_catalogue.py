"""What is known of a model by its name, and what is used when nothing is."""

import datetime

import pytest

from windlass import limits
from windlass.models.catalogue import TABLE_DATE, look_up, models_of, profile
from windlass.models.catalogue_table import TABLE
from windlass.models.known_providers import KNOWN_PROVIDERS


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("claude-haiku-4-5", "claude-haiku-4-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5.5", "claude-opus-5-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"),
        ("GPT-6.1-Sol", "gpt-6.1-sol"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("deepseek-v4-pro-0813", "deepseek-v4-pro"),
        ("mistral-large-4-latest", "mistral-large-4"),
        ("qwen3:8b", "qwen3"),
        ("qwen3-coder:30b-a3b-q4_K_M", "qwen3-coder"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3-coder"),
        ("openai/gpt-oss-20b", "gpt-oss"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3"),
    ],
)
def test_a_model_is_found_under_the_names_it_goes_by(name: str, found: str) -> None:
    """Else the same model would have a price with one provider and none with the next."""
    known = look_up(name)
    assert known is not None and known.id == found


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5.4-nano",
        "gpt-5.5-pro",
        "claude",
        "claude-opus-6",
        "qwen3.9-max",
        "my-gpt-oss",
        "",
        "/",
        ":",
        "gpt-4.1mini",
    ],
)
def test_a_name_that_only_looks_alike_is_another_model(name: str) -> None:
    """Else a dear model would be counted at the price of a cheap one, and a small one be sent what does not fit."""
    assert look_up(name) is None


def test_an_unknown_model_works_with_the_defaults_that_are_documented() -> None:
    """Else every model that is newer than the table would need a config of its own, or run without bounds."""
    unknown = profile("brand-new-model")
    assert (unknown.context_window, unknown.default_max_tokens) == (128_000, 8_192)
    assert (unknown.input_price, unknown.output_price, unknown.has_prices) == (0.0, 0.0, False)
    assert (unknown.images, unknown.reasoning, unknown.is_known) == (True, False, False)


def test_what_the_config_says_wins_field_by_field() -> None:
    """Else a discount, or a smaller window of a local server, could not be told without repeating everything."""
    said = profile("claude-haiku-4-5", said={"input_price": 0.0, "context_window": 50_000, "name": "Mine"})
    assert (said.input_price, said.context_window, said.name) == (0.0, 50_000, "Mine")
    assert (said.output_price, said.cache_read_price, said.images) == (5.0, 0.1, True)


def test_a_smaller_window_leaves_room_for_more_than_the_answer() -> None:
    """An answer that may fill the whole window would leave nothing for the conversation."""
    assert profile("some-model", said={"context_window": 8_000}).default_max_tokens == 2_000
    assert (
        profile("some-model", said={"context_window": 8_000, "default_max_tokens": 3_000}).default_max_tokens == 3_000
    )


@pytest.mark.parametrize("known", TABLE, ids=lambda known: known.id)
def test_every_row_of_the_table_can_be_used_as_it_is(known: object) -> None:
    """A slip of the keyboard in a price or a size would cost somebody money, or a conversation."""
    model = profile(known.id)  # type: ignore[attr-defined]
    assert model.is_known and 4_000 <= model.context_window <= 2_000_000
    assert 1_000 <= model.default_max_tokens <= min(limits.MODEL_OUTPUT_TOKENS, model.context_window // 4)
    assert not model.max_output or model.default_max_tokens <= model.max_output
    if model.has_prices:
        assert 0.05 <= model.input_price < model.output_price <= 100
        assert 0 <= model.cache_read_price < model.input_price
        assert model.cache_write_price == 0 or model.cache_write_price > model.input_price


def test_no_model_is_in_the_table_twice() -> None:
    """The second row would be read by people and by nobody else."""
    assert len({known.id for known in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("address", "price"), [("http://127.0.0.1:8000/v1", 0.0), ("https://api.moonshot.ai/v1", 3.0)])
def test_an_open_model_on_this_machine_costs_nothing(address: str, price: float) -> None:
    """Else a budget in money would stop what is free."""
    assert profile("kimi-k3", address).input_price == price


def test_a_closed_model_behind_a_proxy_on_this_machine_costs_what_it_costs() -> None:
    """Else a budget would not hold for anyone who uses a proxy."""
    assert profile("claude-opus-5-5", "http://localhost:4000").input_price == 4.0


def test_a_tag_is_another_offer_and_has_no_price() -> None:
    """`:free` of a router is not charged, and a local build is not either."""
    assert profile("anthropic/claude-opus-5.5:free").has_prices is False


@pytest.mark.parametrize(
    ("name", "reasons"), [("gpt-6.1-sol", True), ("gpt-4.1", False), ("claude-opus-5-5", True), ("llama3.1:8b", False)]
)
def test_whether_a_model_thinks_is_what_its_wire_goes_by(name: str, reasons: bool) -> None:
    """Two tables of the same would disagree one day."""
    assert profile(name).reasoning is reasons


def test_the_models_that_are_used_by_default_are_known() -> None:
    """A new user's first run would have neither prices nor the right sizes."""
    for provider in KNOWN_PROVIDERS.values():
        for model in (provider.model, provider.small_model):
            assert not model or model in {known.id for known in models_of(provider.name)}


def test_the_table_says_of_which_day_it_is() -> None:
    """Prices change; whoever reads them must know how old they are."""
    assert datetime.date.fromisoformat(TABLE_DATE).year >= 2026
    assert {known.provider for known in TABLE} - {""} <= set(KNOWN_PROVIDERS)
