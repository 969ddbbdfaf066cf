"""What `windlass models` has to tell: which models can be used, which providers cannot, and why."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from windlass import config, limits

if TYPE_CHECKING:
    from windlass.models.known_model import ModelProfile
    from windlass.models.listing import Listing


class ModelRow(msgspec.Struct, frozen=True):
    """A model that can be used. `use` is "default", "small" or ""; without `known` its sizes are only assumed."""

    model: str
    type: str
    context_window: int
    default_max_tokens: int
    max_output: int
    input_price: float | None
    output_price: float | None
    cache_read_price: float | None
    cache_write_price: float | None
    dearer_above: int
    images: bool
    reasoning: bool
    known: bool
    use: str


class ProviderRow(msgspec.Struct, frozen=True):
    """A provider of the config. `says`: why it cannot be used, or what it answered."""

    name: str
    type: str
    usable: bool
    says: str = ""


class Report(msgspec.Struct, frozen=True):
    """`prices_of`: the day of the table. `local`: servers on this machine, each with what to put into the config."""

    prices_of: str
    models: list[ModelRow]
    providers: list[ProviderRow]
    local: list[dict[str, Any]] = []


async def make_report(settings: config.Config, environment: dict[str, str], *, check: bool) -> Report:
    """Look at everything. Only with `check` is anyone asked who is not on this machine."""
    from windlass.models.catalogue import TABLE_DATE

    asked, local = await asyncio.gather(_ask_all(settings) if check else _nothing(), find_local(environment))
    providers = [_provider_row(name, settings, asked.get(name)) for name in settings.providers]
    usable = {provider.name for provider in providers if provider.usable}
    rows = [row for name in settings.providers if name in usable for row in _model_rows(name, settings, asked)]
    return Report(TABLE_DATE, rows, providers, local)


async def find_local(environment: dict[str, str]) -> list[dict[str, Any]]:
    from windlass.models.local_servers import TITLES, config_for, find_local_servers, local_ports

    servers = await find_local_servers(local_ports(environment))
    return [
        {
            "name": server.name,
            "title": TITLES.get(server.name, server.name),
            "base_url": server.base_url,
            "wants_key": server.wants_key,
            "models": [model.id for model in server.models],
            "config": config_for(server),
        }
        for server in servers
    ]


def obstacle(name: str, provider: config.ProviderConfig) -> str:
    """Why a provider cannot be used, as far as it shows without asking; "" if nothing is in the way."""
    if provider.type == "scripted":
        return ""
    if provider.api_key_env and not provider.key():
        return f"{provider.api_key_env} is not set. Put its key into this variable of the environment."
    if not provider.base_url.startswith(("http://", "https://")):
        return f"providers.{name}.base_url needs to begin with http:// or https://."
    return ""


async def _nothing() -> "dict[str, Listing]":
    return {}


async def _ask_all(settings: config.Config) -> "dict[str, Listing]":
    from windlass.models.listing import list_models

    names = [
        name
        for name, provider in settings.providers.items()
        if provider.type != "scripted" and not obstacle(name, provider)
    ]
    providers = [settings.providers[name] for name in names]
    asking = (
        list_models(name, provider.type, provider.base_url, provider.key())
        for name, provider in zip(names, providers, strict=True)
    )
    return dict(zip(names, await asyncio.gather(*asking), strict=True))


def _provider_row(name: str, settings: config.Config, listing: "Listing | None") -> ProviderRow:
    provider = settings.providers[name]
    why = obstacle(name, provider)
    if why or listing is None:
        return ProviderRow(name, provider.type, not why, why)
    says = listing.says
    owner, _, model = settings.model.partition("/")
    if listing.state == "answers" and owner == name and model not in {one.id for one in listing.models}:
        says += f" {model}, which the config chooses, is not among them."
    return ProviderRow(name, provider.type, listing.state not in ("refused", "unreachable"), says)


def _model_rows(name: str, settings: config.Config, asked: "dict[str, Listing]") -> list[ModelRow]:
    from windlass.assembly import model_profiles
    from windlass.models.catalogue import models_of, profile

    provider = settings.providers[name]
    profiles = model_profiles(settings, name)
    if name in asked and not provider.models and not models_of(name):
        # Nobody but the server itself knows what it has.
        told = [model.id for model in asked[name].models[: limits.LOCAL_MODELS_SHOWN]]
        profiles += [profile(id, provider.base_url) for id in told if id not in {one.id for one in profiles}]
    uses = {settings.small_model: "small", settings.model: "default"}
    return [_model_row(f"{name}/{one.id}", provider.type, one, uses.get(f"{name}/{one.id}", "")) for one in profiles]


def _model_row(model: str, type: str, known: "ModelProfile", use: str) -> ModelRow:
    priced = known.has_prices
    return ModelRow(
        model=model,
        type=type,
        context_window=known.context_window,
        default_max_tokens=known.default_max_tokens,
        max_output=known.max_output,
        input_price=known.input_price if priced else None,
        output_price=known.output_price if priced else None,
        cache_read_price=known.cache_read_price or None,
        cache_write_price=known.cache_write_price or None,
        dearer_above=known.dearer_above,
        images=known.images,
        reasoning=known.reasoning,
        known=known.is_known or type == "scripted",
        use=use,
    )
