"""A counter from which no increment is lost: the PN-counter of Shapiro, Preguiça, Baquero and Zawirski (INRIA
RR-7506, 2011), section 3.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from watchroom.crdt.clock import agent_of
from watchroom.crdt.errors import CounterOverflow
from watchroom.crdt.state_checks import (
    MAX_COUNT,
    check_fields,
    check_mapping,
    check_natural,
    check_replica_name,
)
from watchroom.model import Json

_SIDES: Final = frozenset({"plus", "minus"})


class PNCounter:
    """Counts up and down. Each replica adds to its own share; a merge keeps the larger of each share.

    State: ``{"plus": {replica: n}, "minus": {replica: n}}``. A delta holds the new shares only.
    """

    __slots__ = ("_minus", "_plus")

    def __init__(self) -> None:
        self._plus: dict[str, int] = {}
        self._minus: dict[str, int] = {}

    @property
    def value(self) -> int:
        """The count: all that was counted up, less all that was counted down."""
        return sum(self._plus.values()) - sum(self._minus.values())

    def increment(self, amount: int, replica: str) -> Mapping[str, Json]:
        """Count ``amount`` (0 or more) up as ``replica``; returns the delta. Raises `CounterOverflow` beyond
        2^53 - 1, `InvalidState` for another amount or name."""
        return self._count("plus", self._plus, amount, replica)

    def decrement(self, amount: int, replica: str) -> Mapping[str, Json]:
        """Count ``amount`` (0 or more) down as ``replica``; returns the delta. Raises as `increment`."""
        return self._count("minus", self._minus, amount, replica)

    def _count(self, side: str, shares: dict[str, int], amount: int, replica: str) -> Mapping[str, Json]:
        check_natural(amount, "count")
        share = shares.get(check_replica_name(replica), 0) + amount
        if share > MAX_COUNT:
            raise CounterOverflow(limit=MAX_COUNT)
        shares[replica] = share
        return {side: {replica: share}}

    def shares(self) -> dict[str, tuple[int, int]]:
        """For each agent how much it counted up and down, in order of name."""
        shares: dict[str, tuple[int, int]] = {}
        for replica in sorted(self._plus.keys() | self._minus.keys()):
            up, down = shares.get(agent_of(replica), (0, 0))
            share = (up + self._plus.get(replica, 0), down + self._minus.get(replica, 0))
            shares[agent_of(replica)] = share
        return shares

    def merge(self, state: Json) -> None:
        """Merge ``state``, another replica's state or delta. Raises `InvalidState`."""
        found = check_fields(state, "shape", frozenset(), _SIDES)
        plus, minus = (_shares(found.get(side, {})) for side in ("plus", "minus"))
        for mine, theirs in ((self._plus, plus), (self._minus, minus)):
            for replica, share in theirs.items():
                mine[replica] = max(share, mine.get(replica, 0))

    def state(self) -> Mapping[str, Json]:
        """The whole state as JSON."""
        return {"plus": dict(sorted(self._plus.items())), "minus": dict(sorted(self._minus.items()))}

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """For each replica how much it counted up and down."""
        return {
            replica: (self._plus.get(replica, 0), self._minus.get(replica, 0))
            for replica in self._plus.keys() | self._minus.keys()
        }

    def copy(self) -> Self:
        """An equal counter that is independent of this one."""
        twin = type(self)()
        twin._plus, twin._minus = dict(self._plus), dict(self._minus)
        return twin


def _shares(state: Json) -> dict[str, int]:
    found = check_mapping(state, "shape")
    return {check_replica_name(name): check_natural(share, "count") for name, share in found.items()}
