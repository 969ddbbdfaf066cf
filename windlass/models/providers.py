"""Builds the model a provider's config asks for."""

from windlass.models.openai import OpenAIModel
from windlass.models.scripted import ScriptedModel
from windlass.wire.model import Model


def build_model(name: str, type: str, *, base_url: str = "", key: str = "", script: str = "") -> Model:
    """The model of the provider `name`, from the plain values of its config.

    Raises ValueError with a sentence for the user: an unknown type, a missing address, a script that is wrong.
    """
    match type:
        case "scripted":
            return ScriptedModel(script or None)
        case "openai":
            if not base_url.startswith(("http://", "https://")):
                raise ValueError(
                    f"providers.{name}.base_url is {base_url!r}; it needs to begin with http:// or https://."
                )
            return OpenAIModel(name, base_url, key)
        case "openai-responses" | "anthropic":
            raise ValueError(
                f"providers.{name} has the type {type!r}, which this version does not speak yet. Use type "
                f'"openai" (chat completions, which this provider offers too) or "scripted".'
            )
        case _:
            raise ValueError(f'providers.{name} has the unknown type {type!r}; use "openai" or "scripted".')
