"""Usage in the rows of sessions: tokens by kind, their cost, and the source of the price. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.kernel.rules.details import get_count, get_float, get_text
from watchroom.model import Json, Row

PricedBy: TypeAlias = Literal["client", "table", ""]
"""The source of a price: the client that made the call, or a table of prices; empty if the price is
unknown."""
USED: Final = "used"
"""The field of a step's detail with its usage."""
_MARK: Final = f'"{USED}": '
"""Text to search in a detail before it is parsed, because only few steps have usage."""
PARENT: Final = "parent"
"""The field of a subagent's steps with the path of the session that started it."""
SHARED_ID: Final = 40
"""Number of characters of the parent's id with which the id of a subagent's session begins."""
_PARENT_MARK: Final = f'"{PARENT}": "'


class UsageTotal(NamedTuple):
    """Tokens and their cost.

    Each token is in exactly one of the first four counts.

    - ``input``: tokens sent and not cached.
    - ``output``: tokens received.
    - ``cache_read``: tokens read from the provider's cache.
    - ``cache_write``: tokens written to the provider's cache.
    - ``cost``: US dollars, without unpriced tokens. It is never estimated.
    - ``unpriced``: tokens of all kinds without a known price.
    - ``priced_by``: the source of the prices.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    unpriced: int = 0
    priced_by: PricedBy | Literal["both"] = ""

    @property
    def tokens(self) -> int:
        """The sum of all tokens."""
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def known_cost(self) -> float | None:
        """The cost in US dollars, None if no price is known."""
        return None if self.unpriced and not self.priced_by else self.cost

    def plus(self, other: UsageTotal) -> UsageTotal:
        """Return the sum of both."""
        return UsageTotal(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost + other.cost,
            self.unpriced + other.unpriced,
            _priced_by(self.priced_by, other.priced_by),
        )

    def minus(self, earlier: UsageTotal) -> UsageTotal:
        """Return the usage since ``earlier``, an earlier total of the same steps."""
        return UsageTotal(
            self.input - earlier.input,
            self.output - earlier.output,
            self.cache_read - earlier.cache_read,
            self.cache_write - earlier.cache_write,
            max(0.0, self.cost - earlier.cost),
            self.unpriced - earlier.unpriced,
            self.priced_by,
        )


def _priced_by(
    one: PricedBy | Literal["both"], other: PricedBy | Literal["both"]
) -> PricedBy | Literal["both"]:
    return "both" if one and other and one != other else one or other


class UsageRecord(NamedTuple):
    """The usage of one step. ``model``: the name of the model; empty if unknown."""

    model: str
    usage: UsageTotal


def usage_of(step: Row) -> UsageRecord | None:
    """Return the usage of ``step``, a row of a session; None if it has none."""
    if _MARK not in step.detail_json:
        return None
    used = step.detail.get(USED)
    if not isinstance(used, Mapping):
        return None
    given = used.get("priced_by")
    priced_by: PricedBy = "client" if given == "client" else "table" if given == "table" else ""
    usage = UsageTotal(
        get_count(used, "input"),
        get_count(used, "output"),
        get_count(used, "cache_read"),
        get_count(used, "cache_write"),
        get_float(used, "cost"),
        # In steps of version 0.2.0, ``unpriced`` also includes tokens with a price.
        0 if priced_by else get_count(used, "unpriced"),
        priced_by,
    )
    return UsageRecord(get_text(used, "model"), usage)


def usage_detail(record: UsageRecord) -> dict[str, Json]:
    """Return ``record`` as part of a step's detail, without zeros: the reverse of `usage_of`."""
    fields: dict[str, Json] = {**record.usage._asdict(), "model": record.model}
    return {name: value for name, value in fields.items() if value not in (0, "")}


def is_subagent_step(step: Row) -> bool:
    """Whether ``step``, a row of a session, belongs to a subagent. It is not activity of the parent."""
    return _PARENT_MARK in step.detail_json


def parent_of(step: Row) -> str:
    """Return the path of the session that started the subagent of ``step``; empty if ``step`` is not from a
    subagent."""
    parent = step.detail.get(PARENT) if is_subagent_step(step) else None
    return parent if isinstance(parent, str) else ""
