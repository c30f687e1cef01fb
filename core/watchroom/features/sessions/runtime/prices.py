"""Prices of tokens, from a table in the extra ``prices``. Nothing is downloaded."""

from __future__ import annotations

from decimal import Decimal

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions.runtime.models.protocol import Usage


def price_usage(used: UsageTotal, model: str) -> UsageTotal:
    """Return ``used`` of ``model`` with its cost: the cost that the client reported, else the cost by the
    table.

    Tokens without a known price are unpriced, not free. Do not call it on an event loop, because the first
    call loads the table.
    """
    if used.priced_by or not used.tokens:
        return used._replace(unpriced=0)
    cost = _find_cost(model, used) if model else None
    if cost is None:
        return used._replace(unpriced=used.tokens)
    return used._replace(cost=cost, unpriced=0, priced_by="table")


def _find_cost(model: str, used: UsageTotal) -> float | None:
    """Return the cost in US dollars; None if the price is unknown or the extra is not installed."""
    try:
        from genai_prices import Usage as Priced
        from genai_prices import calc_price
    except ImportError:
        return None
    tokens = Priced(
        # The package expects cached tokens to be included in the input.
        input_tokens=used.input + used.cache_read + used.cache_write,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
    )
    try:
        total: Decimal = calc_price(tokens, model_ref=model).total_price
    except (LookupError, ValueError):
        return None
    return float(total)


def total_of(usage: Usage) -> UsageTotal:
    """Return ``usage`` as a total."""
    return UsageTotal(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.cost or 0.0,
        priced_by=usage.priced_by if usage.cost is not None else "",
    )
