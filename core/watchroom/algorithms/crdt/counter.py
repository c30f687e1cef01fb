"""A counter that keeps all concurrent increments.

It is the PN-counter of Shapiro, Preguiça, Baquero and Zawirski (INRIA RR-7506, 2011), section 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from watchroom.algorithms.crdt.clock import agent_of
from watchroom.algorithms.crdt.state_checks import (
    MAX_COUNT,
    check_fields,
    check_mapping,
    check_natural,
    check_replica_name,
)
from watchroom.errors import CounterOverflow
from watchroom.model import Json

_SIDES: Final = frozenset({"plus", "minus"})


class PNCounter:
    """A counter that goes up and down. Each replica adds to its own share. A merge keeps the larger value of
    each share.

    State: ``{"plus": {replica: n}, "minus": {replica: n}}``. A delta contains only the new shares.
    """

    __slots__ = ("_minus", "_plus")

    def __init__(self) -> None:
        self._plus: dict[str, int] = {}
        self._minus: dict[str, int] = {}

    @property
    def value(self) -> int:
        """The sum of all increments minus the sum of all decrements."""
        return sum(self._plus.values()) - sum(self._minus.values())

    def increment(self, amount: int, replica: str) -> Mapping[str, Json]:
        """Add ``amount`` (0 or more) as ``replica``, and return the delta.

        Raise `CounterOverflow` if the replica's share exceeds 2^53 - 1, and `InvalidState` if the amount or
        the name is invalid.
        """
        return self._count("plus", self._plus, amount, replica)

    def decrement(self, amount: int, replica: str) -> Mapping[str, Json]:
        """Subtract ``amount`` (0 or more) as ``replica``, and return the delta. Raise the errors of
        `increment`."""
        return self._count("minus", self._minus, amount, replica)

    def _count(self, side: str, shares: dict[str, int], amount: int, replica: str) -> Mapping[str, Json]:
        check_natural(amount, "count")
        share = shares.get(check_replica_name(replica), 0) + amount
        if share > MAX_COUNT:
            raise CounterOverflow(limit=MAX_COUNT)
        shares[replica] = share
        return {side: {replica: share}}

    def shares(self) -> dict[str, tuple[int, int]]:
        """Return for each agent its increments and decrements, sorted by agent."""
        shares: dict[str, tuple[int, int]] = {}
        for replica in sorted(self._plus.keys() | self._minus.keys()):
            up, down = shares.get(agent_of(replica), (0, 0))
            share = (up + self._plus.get(replica, 0), down + self._minus.get(replica, 0))
            shares[agent_of(replica)] = share
        return shares

    def merge(self, state: Json) -> None:
        """Merge ``state``, a state or delta of another replica. Raise `InvalidState` if it is malformed."""
        found = check_fields(state, "shape", frozenset(), _SIDES)
        plus, minus = (_shares(found.get(side, {})) for side in ("plus", "minus"))
        for mine, theirs in ((self._plus, plus), (self._minus, minus)):
            for replica, share in theirs.items():
                mine[replica] = max(share, mine.get(replica, 0))

    def state(self) -> Mapping[str, Json]:
        """Return the whole state as JSON."""
        return {"plus": dict(sorted(self._plus.items())), "minus": dict(sorted(self._minus.items()))}

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """Return for each replica its increments and decrements."""
        return {
            replica: (self._plus.get(replica, 0), self._minus.get(replica, 0))
            for replica in self._plus.keys() | self._minus.keys()
        }

    def copy(self) -> Self:
        """Return an independent counter with the same state."""
        twin = type(self)()
        twin._plus, twin._minus = dict(self._plus), dict(self._minus)
        return twin


def _shares(state: Json) -> dict[str, int]:
    found = check_mapping(state, "shape")
    return {check_replica_name(name): check_natural(share, "count") for name, share in found.items()}
