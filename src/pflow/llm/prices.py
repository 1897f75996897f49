"""What tokens cost, by the tables of the package ``genai-prices``; what they do not list is unknown, not free."""

from __future__ import annotations

import msgspec

from pflow.llm.interface import Request, Usage

CHARACTERS = 3.5  # of a text, to a token, for a guess made before a call
IMAGE = 1000  # tokens of an attachment, for the same guess


def cost(usage: Usage, model: str, url: str = "") -> float | None:
    """What a usage costs, in USD; ``url`` tells models of the same name at different providers apart."""
    if not usage.input_tokens and not usage.output_tokens:
        return None  # nobody counted
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None
    tokens = Tokens(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cache_read_tokens=usage.cached_tokens
    )
    names = [name for full in (usage.model, model) for name in (full, full.rpartition("/")[2]) if name]
    for name in dict.fromkeys(names):  # a server may answer with a more exact name than it was asked by
        try:
            return float(calc_price(tokens, name, provider_api_url=url or None).total_price)
        except (LookupError, ValueError):
            continue
    return None


def expected(request: Request) -> Usage:
    """A guess at what a call will use: its texts, and all the tokens that it is allowed to answer with."""
    characters = sum(len(message.content) for message in request.messages)
    attached = sum(len(message.attachments) for message in request.messages)
    tokens = 1 + int(characters / CHARACTERS) + IMAGE * attached
    return Usage(input_tokens=tokens, output_tokens=request.max_tokens or 0)


def priced(usage: Usage) -> Usage:
    """The usage with what it cost, where that is known."""
    return msgspec.structs.replace(usage, cost_usd=cost(usage, usage.model))
