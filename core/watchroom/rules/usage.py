"""What agents use: tokens by kind, what they cost, and who says so. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.model import Json, Row
from watchroom.rules.details import get_count, get_float, get_text

PricedBy: TypeAlias = Literal["client", "table", ""]
"""Who gave a price: the client that made the call, or a table of prices; nobody, where it is not known."""
USED: Final = "used"
"""In the detail of a step: what the step used."""
_MARK: Final = f'"{USED}": '
"""Looked for as text: there are many steps, and few say it."""
PARENT: Final = "parent"
"""In the detail of a subagent's steps: the path of the session that called it."""
SHARED_ID: Final = 40
"""So many characters of its parent's id begin the id of a subagent's session."""
_PARENT_MARK: Final = f'"{PARENT}": "'


class UsageTotal(NamedTuple):
    """Tokens, and what they cost in US dollars.

    ``input`` are those sent and not cached, ``output`` those that came; ``cache_read`` were read from the
    provider's cache and ``cache_write`` put there: none is counted in two of these. Of all of them
    ``unpriced`` have no known price, and are not in ``cost``: a cost is never made up.
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
        """All tokens together."""
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def known_cost(self) -> float | None:
        """The cost in US dollars, None where no price is known for any of it."""
        return None if self.unpriced and not self.priced_by else self.cost

    def plus(self, other: UsageTotal) -> UsageTotal:
        """Both together."""
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
        """What came since ``earlier``, a total of the same steps up to some moment."""
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
    """What one step used: ``usage`` of ``model``, which is empty where it is not known."""

    model: str
    usage: UsageTotal


def usage_of(step: Row) -> UsageRecord | None:
    """What ``step``, a row of a session, says it used; None where it says nothing."""
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
        # Steps of version 0.2.0 call tokens with a price unpriced as well.
        0 if priced_by else get_count(used, "unpriced"),
        priced_by,
    )
    return UsageRecord(get_text(used, "model"), usage)


def usage_detail(record: UsageRecord) -> dict[str, Json]:
    """``record`` as the detail of its step says it: the reverse of `usage_of`. What is 0 is left out."""
    said: dict[str, Json] = {**record.usage._asdict(), "model": record.model}
    return {name: value for name, value in said.items() if value not in (0, "")}


def is_subagent_step(step: Row) -> bool:
    """Whether ``step``, a row of a session, is one of a subagent's session: what its parent is up to, its own
    session says."""
    return _PARENT_MARK in step.detail_json


def parent_of(step: Row) -> str:
    """The path of the session that called the subagent of ``step``, empty of any other step."""
    parent = step.detail.get(PARENT) if is_subagent_step(step) else None
    return parent if isinstance(parent, str) else ""
