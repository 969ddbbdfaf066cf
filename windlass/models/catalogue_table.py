"""The table of well-known models: what fits into each, what it costs, what it can do.

Sizes in tokens, prices in US dollars per million tokens as the maker publishes them, at `TABLE_DATE`. What is not known
is left out, and the catalogue then says so. Where a price depends on the time of day, the dearer one is here: a budget
should end a run too early rather than too late. Where it depends on the length of the prompt, it is that of the shorter
ones, and `dearer_above` says up to which length.
"""

from windlass.models.known_model import KnownModel, PriceList

TABLE_DATE = "2026-11-16"

_1M = 1_000_000


def _claude(id: str, context: int, output: int, *prices: float, dearer_above: int = 0) -> KnownModel:
    cost = PriceList(*prices) if prices else None
    return KnownModel(id, "anthropic", context, output, cost, images=True, reasoning=True, dearer_above=dearer_above)


def _gpt(id: str, context: int, output: int, *prices: float, dearer_above: int = 0) -> KnownModel:
    # Whether these think is what `responses_thoughts` goes by: one table of that is enough.
    return KnownModel(id, "openai", context, output, PriceList(*prices), images=True, dearer_above=dearer_above)


def _gemini(id: str, *prices: float, dearer_above: int = 0) -> KnownModel:
    cost = PriceList(*prices)
    return KnownModel(id, "google", 1_048_576, 65_536, cost, images=True, reasoning=True, dearer_above=dearer_above)


def _open(id: str, context: int, *, images: bool = False, reasoning: bool = False) -> KnownModel:
    """A family that people run themselves: any size and build of it, at no price."""
    return KnownModel(id, "", context, images=images, reasoning=reasoning, open_weights=True, is_family=True)


# Within a provider the newest first: that is the order in which people are shown them.
TABLE = (
    _claude("claude-fable-5-2", _1M, 128_000, 8, 40),
    _claude("claude-fable-5-1", _1M, 128_000, 10, 50, 0.25, 12.5),
    _claude("claude-fable-5", _1M, 128_000, 10, 50, 1, 12.5),
    _claude("claude-mythos-5-1", _1M, 128_000, 10, 50, 0.25, 12.5),
    _claude("claude-mythos-5", _1M, 128_000, 10, 50, 1, 12.5),
    _claude("claude-opus-5-5", _1M, 128_000, 4, 20, 0.2, 5),
    _claude("claude-opus-5", _1M, 128_000, 5, 25, 0.5, 6.25),
    _claude("claude-sonnet-5-5", _1M, 128_000, 2, 10, 0.1, 2.5),
    _claude("claude-sonnet-5", _1M, 128_000, 2, 10, 0.2, 2.5),
    _claude("claude-haiku-5-5", _1M, 128_000, 0.1, 0.5, 0.01, 0.125, dearer_above=100_000),
    _claude("claude-opus-4-8", _1M, 128_000, 5, 25, 0.5, 6.25),
    _claude("claude-opus-4-7", _1M, 128_000, 5, 25, 0.5, 6.25),
    _claude("claude-opus-4-6", _1M, 128_000, 5, 25, 0.5, 6.25),
    _claude("claude-sonnet-4-6", _1M, 64_000, 3, 15, 0.3, 3.75),
    _claude("claude-opus-4-5", 200_000, 64_000, 5, 25, 0.5, 6.25),
    _claude("claude-sonnet-4-5", 200_000, 64_000, 3, 15, 0.3, 3.75),
    _claude("claude-haiku-4-5", 200_000, 64_000, 1, 5, 0.1, 1.25),
    _gpt("gpt-6.1-sol", 1_050_000, 128_000, 2, 10, 0.1, 2.5, dearer_above=272_000),
    _gpt("gpt-6.1-terra", 1_050_000, 128_000, 1, 5, 0.05, 1.25, dearer_above=272_000),
    _gpt("gpt-6-astra", 1_050_000, 128_000, 10, 50, 1, 12.5, dearer_above=272_000),
    _gpt("gpt-6-sol", 1_050_000, 128_000, 2, 10, 0.2, 2.5, dearer_above=272_000),
    _gpt("gpt-6-luna", 1_050_000, 128_000, 0.1, 0.5, 0.01, 0.125, dearer_above=272_000),
    _gpt("gpt-5.6-sol", 1_050_000, 128_000, 4, 20, 0.4, dearer_above=272_000),
    _gpt("gpt-5.6-terra", 1_050_000, 128_000, 2, 12, 0.2, dearer_above=272_000),
    _gpt("gpt-5.6-luna", 1_050_000, 128_000, 0.2, 1.2, 0.02, dearer_above=272_000),
    _gpt("gpt-5.5", 1_050_000, 128_000, 5, 30, 0.5, dearer_above=272_000),
    _gpt("gpt-5.4", 1_050_000, 128_000, 2.5, 15, 0.25, dearer_above=272_000),
    _gpt("gpt-5.4-mini", 400_000, 128_000, 0.75, 4.5, 0.075),
    _gpt("gpt-5.2", 400_000, 128_000, 1.75, 14, 0.175),
    _gpt("gpt-5.1", 400_000, 128_000, 1.25, 10, 0.125),
    _gpt("gpt-4.1", 1_047_576, 32_768, 2, 8, 0.5),
    _gpt("gpt-4.1-mini", 1_047_576, 32_768, 0.4, 1.6, 0.1),
    _gpt("gpt-4o", 128_000, 16_384, 2.5, 10, 1.25),
    _gpt("gpt-4o-mini", 128_000, 16_384, 0.15, 0.6, 0.075),
    _gemini("gemini-3.8-flash", 0.75, 3.75, 0.075),  # twice as much from 2027 on
    _gemini("gemini-3.1-pro-preview", 2, 12, 0.2, dearer_above=200_000),
    _gemini("gemini-3.1-flash-lite", 0.25, 1.5, 0.025),
    _gemini("gemini-2.5-pro", 1.25, 10, 0.125, dearer_above=200_000),
    _gemini("gemini-2.5-flash", 0.3, 2.5, 0.03),
    KnownModel("deepseek-flash", "deepseek", _1M, 384_000, PriceList(0.3, 1.2, 0.006), images=True, reasoning=True),
    KnownModel(
        "deepseek-v4-pro", "deepseek", _1M, 384_000, PriceList(1.32, 3.96, 0.044), reasoning=True, open_weights=True
    ),
    KnownModel("mistral-large-4", "mistral", 1_048_576, 0, PriceList(1.36, 4.18, 0.14), images=True, reasoning=True),
    KnownModel(
        "mistral-medium-3.5",
        "mistral",
        262_144,
        262_144,
        PriceList(1.5, 7.5),
        images=True,
        reasoning=True,
        open_weights=True,
    ),
    KnownModel("qwen3.8-max", "qwen", _1M, 128_000, PriceList(2, 6), images=True, reasoning=True),
    KnownModel("qwen3.8-flash", "qwen", _1M, 131_072, PriceList(0.15, 0.47), images=True, reasoning=True),
    KnownModel("qwen3-max", "qwen", 262_144, 65_536, PriceList(1.2, 6), dearer_above=32_000),
    KnownModel("qwen3-coder-plus", "qwen", _1M, 65_536, PriceList(1, 5), dearer_above=32_000),
    KnownModel(
        "grok-4.7", "xai", 500_000, 500_000, PriceList(2, 6, 0.5), images=True, reasoning=True, dearer_above=200_000
    ),
    KnownModel(
        "grok-4.6", "xai", 500_000, 500_000, PriceList(2, 6, 0.5), images=True, reasoning=True, dearer_above=200_000
    ),
    KnownModel("grok-4.3", "xai", _1M, 0, PriceList(1.25, 2.5), images=True, reasoning=True, dearer_above=200_000),
    KnownModel(
        "kimi-k3",
        "moonshot",
        1_048_576,
        262_144,
        PriceList(3, 15, 0.3),
        images=True,
        reasoning=True,
        open_weights=True,
    ),
    KnownModel(
        "kimi-k2.6",
        "moonshot",
        262_144,
        262_144,
        PriceList(0.95, 4, 0.16),
        images=True,
        reasoning=True,
        open_weights=True,
    ),
    _open("gpt-oss", 131_072, reasoning=True),
    _open("qwen3", 40_960, reasoning=True),
    _open("qwen3-coder", 262_144),
    _open("qwen3-vl", 262_144, images=True),
    _open("qwen3.5", 262_144, images=True, reasoning=True),
    _open("qwen2.5-coder", 32_768),
    _open("llama3.1", 131_072),
    _open("llama3.2", 131_072),
    _open("llama3.3", 131_072),
    _open("llama-3.1", 131_072),
    _open("llama-3.2", 131_072),
    _open("llama-3.3", 131_072),
    _open("gemma3", 131_072, images=True),
    _open("gemma-3", 131_072, images=True),
    _open("mistral-small3.2", 131_072, images=True),
    _open("devstral", 131_072),
    _open("deepseek-r1", 131_072, reasoning=True),
    _open("phi4", 16_384),
)
