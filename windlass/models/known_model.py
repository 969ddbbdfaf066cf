"""What may be known of a model before anyone has asked it anything."""

import msgspec


class PriceList(msgspec.Struct, frozen=True):
    """US dollars per million tokens; None: not known."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class KnownModel(msgspec.Struct, frozen=True):
    """A row of the table. 0 and None mean that it is not known.

    `provider` is the one whose model it is, "" for families that people run themselves. A family stands for every
    model whose name begins with its own (`qwen3` for `qwen3:8b`). `open_weights`: it may run on the user's own machine,
    where it costs nothing. `dearer_above`: longer prompts cost more than the prices say.
    """

    id: str
    provider: str
    context_window: int
    max_output: int = 0
    prices: PriceList | None = None
    images: bool = False
    reasoning: bool | None = None
    open_weights: bool = False
    is_family: bool = False
    dearer_above: int = 0


class ModelProfile(msgspec.Struct, frozen=True):
    """What is used for a model: what the config says of it, else the catalogue, else the defaults for unknown ones.

    `default_max_tokens` is asked for in one answer, `max_output` is what the model could give (0: not known). A price
    of 0.0 is free, or unknown if `has_prices` is false.
    """

    id: str
    name: str
    context_window: int
    default_max_tokens: int
    input_price: float
    output_price: float
    cache_read_price: float
    cache_write_price: float
    images: bool
    reasoning: bool
    max_output: int = 0
    dearer_above: int = 0
    is_known: bool = False
    has_prices: bool = False
