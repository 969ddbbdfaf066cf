"""Providers that need no address in the config: their names say who is meant.

Where each is asked, in which protocol, which variable of the environment usually holds its key, and which of its models
are used when nobody chose any.
"""

import msgspec


class KnownProvider(msgspec.Struct, frozen=True):
    """`types` are the protocols that `base_url` speaks, the best one first; the last is what imitations of it speak.

    `key_env` is the variable that usually holds its key, `base_url_env` the one that leads to an imitation.
    """

    name: str
    types: tuple[str, ...]
    base_url: str
    key_env: str = ""
    model: str = ""
    small_model: str = ""
    base_url_env: str = ""

    @property
    def type(self) -> str:
        return self.types[0]


_PROVIDERS = (
    KnownProvider(
        "anthropic",
        ("anthropic",),
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "ANTHROPIC_BASE_URL",
    ),
    KnownProvider(
        "openai",
        ("openai-responses", "openai"),
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "gpt-6.1-sol",
        "gpt-6-luna",
        "OPENAI_BASE_URL",
    ),
    KnownProvider("google", ("openai",), "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    KnownProvider("deepseek", ("openai",), "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    KnownProvider("mistral", ("openai",), "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    KnownProvider("qwen", ("openai",), "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    KnownProvider("xai", ("openai",), "https://api.x.ai/v1", "XAI_API_KEY"),
    KnownProvider("moonshot", ("openai",), "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    KnownProvider("openrouter", ("openai",), "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    KnownProvider("ollama", ("openai",), "http://127.0.0.1:11434/v1"),
    KnownProvider("llamacpp", ("openai",), "http://127.0.0.1:8080/v1"),
    KnownProvider("vllm", ("openai",), "http://127.0.0.1:8000/v1"),
    KnownProvider("lmstudio", ("openai",), "http://127.0.0.1:1234/v1"),
)
KNOWN_PROVIDERS = {provider.name: provider for provider in _PROVIDERS}


def is_known_address(name: str, base_url: str) -> bool:
    """Whether the provider of this name is the one that the world knows by it, and not somebody else."""
    return name in KNOWN_PROVIDERS and KNOWN_PROVIDERS[name].base_url == base_url
