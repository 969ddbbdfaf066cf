"""Builds the model a provider's config asks for."""

from collections.abc import Callable

from windlass.models.anthropic import AnthropicModel
from windlass.models.openai import OpenAIModel
from windlass.models.responses import ResponsesModel
from windlass.models.scripted import ScriptedModel
from windlass.wire.model import Model

_SPOKEN: dict[str, Callable[[str, str, str], Model]] = {
    "openai": OpenAIModel,
    "openai-responses": ResponsesModel,
    "anthropic": AnthropicModel,
}


def build_model(name: str, type: str, *, base_url: str = "", key: str = "", script: str = "") -> Model:
    """The model of the provider `name`, from the plain values of its config.

    Raises ValueError with a sentence for the user: an unknown type, a missing address, a script that is wrong.
    """
    match type:
        case "scripted":
            return ScriptedModel(script or None)
        case "openai" | "openai-responses" | "anthropic":
            if not base_url.startswith(("http://", "https://")):
                raise ValueError(
                    f"providers.{name}.base_url is {base_url!r}; it needs to begin with http:// or https://."
                )
            return _SPOKEN[type](name, base_url, key)
        case _:
            known = ", ".join(f'"{known}"' for known in (*_SPOKEN, "scripted"))
            raise ValueError(f"providers.{name} has the unknown type {type!r}; use one of: {known}.")
