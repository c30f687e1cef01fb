"""What tokens cost, by a table of prices that comes with the extra ``prices``. Nothing is fetched."""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol

from watchroom.rules.usage import UsageTotal
from watchroom.runtime.models.protocol import Usage


class PriceTable(Protocol):
    """Knows the prices of models."""

    def cost(self, model: str, used: UsageTotal) -> float | None:
        """What ``used`` of ``model`` costs in US dollars, None where the price is not known."""
        ...


class GenaiPrices:
    """The table of the package ``genai-prices``; without it no price is known. Its first question takes a
    moment: it is not to be asked on an event loop."""

    def cost(self, model: str, used: UsageTotal) -> float | None:
        """What ``used`` of ``model`` costs in US dollars, None where the price is not known."""
        try:
            from genai_prices import Usage as Priced
            from genai_prices import calc_price
        except ImportError:
            return None
        tokens = Priced(
            # Its input has all that was sent, as most providers count it.
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


def price_usage(used: UsageTotal, model: str, table: PriceTable | None = None) -> UsageTotal:
    """``used`` of ``model`` with what it cost: as its client said, else by ``table`` (default: that of the
    extra ``prices``). What has no known price is unpriced; it never costs 0."""
    if used.priced_by or not used.tokens:
        return used._replace(unpriced=0)
    cost = (table or GenaiPrices()).cost(model, used) if model else None
    if cost is None:
        return used._replace(unpriced=used.tokens)
    return used._replace(cost=cost, unpriced=0, priced_by="table")


def total_of(usage: Usage) -> UsageTotal:
    """``usage`` as it is added up."""
    return UsageTotal(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.cost or 0.0,
        priced_by=usage.priced_by if usage.cost is not None else "",
    )


def usage_from(used: UsageTotal, model: str) -> Usage:
    """``used`` of ``model`` as an event says it."""
    return Usage(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.cache_write,
        model=model,
        cost=used.cost if used.priced_by else None,
        priced_by="table" if used.priced_by == "both" else used.priced_by,
    )
