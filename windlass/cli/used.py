"""What a session or a run has used, in one line."""


def used(prompt_tokens: int, completion_tokens: int, cache_read_tokens: int, cost: float) -> str:
    """Tokens in and out, how many of them came from the provider's cache, and the cost where prices are known."""
    cached = f" ({cache_read_tokens:,} from the cache)" if cache_read_tokens else ""
    price = f", cost {cost:.4f}" if cost else ""
    sent = "1 token" if prompt_tokens == 1 else f"{prompt_tokens:,} tokens"
    return f"{sent} in{cached}, {completion_tokens:,} out{price}"
