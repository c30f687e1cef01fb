"""Last writer wins: a register for a single value, and a map of such registers.

The types are from Shapiro, Preguiça, Baquero and Zawirski, "A comprehensive study of Convergent and
Commutative Replicated Data Types" (INRIA RR-7506, 2011), section 3.2. Deltas have the shape of states and
merge like states (Almeida, Shoker and Baquero, "Delta State Replicated Data Types", 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from watchroom.algorithms.crdt.clock import Stamp
from watchroom.algorithms.crdt.state_checks import (
    canonical_json,
    check_key,
    check_mapping,
    check_value,
    invalid_state,
)
from watchroom.model import Json

_ENTRY: Final = frozenset({"value", "stamp"})
_REMOVED: Final = frozenset({"removed", "stamp"})


class StampedValue(NamedTuple):
    """A written ``value`` with its ``stamp``. ``removed`` marks the removal of a key."""

    stamp: Stamp
    value: Json
    removed: bool = False

    def wins_over(self, other: StampedValue | None) -> bool:
        """Whether this write wins over ``other``, the earlier write, or None if there is no earlier write."""
        if other is None or self.stamp != other.stamp:
            return other is None or self.stamp > other.stamp
        # Our own clocks never issue a stamp twice, but replicas must agree even if another clock does.
        return self._rank() > other._rank()

    def _rank(self) -> tuple[bool, str]:
        return not self.removed, canonical_json(self.value)

    def as_json(self) -> Mapping[str, Json]:
        """Return ``{"value": …, "stamp": […]}``, or ``{"removed": true, "stamp": […]}``."""
        stamp = self.stamp.as_json()
        return {"removed": True, "stamp": stamp} if self.removed else {"value": self.value, "stamp": stamp}

    @classmethod
    def from_json(cls, state: Json) -> StampedValue:
        """Parse a result of `as_json`. Raise `InvalidState` if ``state`` is malformed."""
        found = check_mapping(state, "shape")
        if found.keys() == _REMOVED and found["removed"] is True:
            return cls(Stamp.from_json(found["stamp"]), None, removed=True)
        if found.keys() != _ENTRY:
            raise invalid_state("shape")
        return cls(Stamp.from_json(found["stamp"]), check_value(found["value"]))


class LWWRegister:
    """A single value. The write with the latest stamp wins.

    State: ``{"value": …, "stamp": […]}``, or ``{}`` before the first write.
    """

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: StampedValue | None = None

    @property
    def value(self) -> Json:
        """The value; None before the first write."""
        return self._written.value if self._written else None

    @property
    def written(self) -> StampedValue | None:
        """The newest write; None before the first write."""
        return self._written

    @property
    def latest(self) -> Stamp | None:
        """The stamp of the newest write; None before the first write."""
        return self._written.stamp if self._written else None

    def set(self, value: Json, stamp: Stamp) -> Mapping[str, Json]:
        """Write ``value`` with ``stamp``, and return the delta.

        Raise `NotText` if the value is not plain JSON, and `TooLarge` beyond 10 MB.
        """
        canonical_json(value)
        written = StampedValue(stamp, value)
        self._apply(written)
        return written.as_json()

    def merge(self, state: Json) -> None:
        """Merge ``state``, a state or delta of another replica. Raise `InvalidState` if it is malformed."""
        if state == {}:
            return
        written = StampedValue.from_json(state)
        if written.removed:
            raise invalid_state("shape")
        self._apply(written)

    def _apply(self, written: StampedValue) -> None:
        if written.wins_over(self._written):
            self._written = written

    def state(self) -> Mapping[str, Json]:
        """Return the whole state as JSON."""
        return self._written.as_json() if self._written else {}

    def copy(self) -> Self:
        """Return an independent register with the same state."""
        twin = type(self)()
        twin._written = self._written
        return twin


class LWWMap:
    """A map with one `LWWRegister` per key: writes to different keys do not conflict (FILES-G2).

    A removed key keeps its stamp, so that an older write does not restore it. State:
    ``{key: {"value": …, "stamp": […]} or {"removed": true, "stamp": […]}}``.
    """

    __slots__ = ("_entries", "_latest")

    def __init__(self) -> None:
        self._entries: dict[str, StampedValue] = {}
        self._latest: Stamp | None = None

    @property
    def value(self) -> dict[str, Json]:
        """The values by key."""
        return {key: each.value for key, each in self._entries.items() if not each.removed}

    @property
    def entries(self) -> Mapping[str, StampedValue]:
        """The newest write of each key, removals included."""
        return self._entries

    @property
    def latest(self) -> Stamp | None:
        """The latest stamp in the map; None while it is empty."""
        return self._latest

    def set(self, key: str, value: Json, stamp: Stamp) -> Mapping[str, Json]:
        """Write ``value`` to ``key`` with ``stamp``, and return the delta.

        Raise the errors of `LWWRegister.set`, and `InvalidState` if the key is invalid.
        """
        check_key(key)
        canonical_json(value)
        return self._apply({key: StampedValue(stamp, value)})

    def remove(self, key: str, stamp: Stamp) -> Mapping[str, Json]:
        """Remove ``key`` with ``stamp``, and return the delta. The key need not exist.

        Raise `InvalidState` if the key is invalid.
        """
        return self._apply({check_key(key): StampedValue(stamp, None, removed=True)})

    def replace(
        self, values: Mapping[str, Json], stamp: Stamp, seen: LWWMap | None = None
    ) -> Mapping[str, Json]:
        """Write and remove the keys in which ``values`` differs from ``seen``, and return the delta.

        - ``values``: the new content of the map.
        - ``stamp``: the stamp of all changes.
        - ``seen``: the map as the writer last saw it, default this map.

        Raise the errors of `set`.
        """
        known = (self if seen is None else seen).value
        changed: dict[str, StampedValue] = {}
        for key, value in values.items():
            check_key(key)
            if key not in known or canonical_json(value) != canonical_json(known[key]):
                changed[key] = StampedValue(stamp, value)
        for key in known.keys() - values.keys():
            changed[key] = StampedValue(stamp, None, removed=True)
        return self._apply(changed)

    def merge(self, state: Json) -> None:
        """Merge ``state``, a state or delta of another replica. Raise `InvalidState` if it is malformed."""
        found = check_mapping(state, "shape")
        self._apply({check_key(key): StampedValue.from_json(each) for key, each in found.items()})

    def _apply(self, entries: Mapping[str, StampedValue]) -> Mapping[str, Json]:
        for key, written in entries.items():
            if written.wins_over(self._entries.get(key)):
                self._entries[key] = written
            if self._latest is None or written.stamp > self._latest:
                self._latest = written.stamp
        return {key: written.as_json() for key, written in entries.items()}

    def state(self) -> Mapping[str, Json]:
        """Return the whole state as JSON."""
        return {key: self._entries[key].as_json() for key in sorted(self._entries)}

    def copy(self) -> Self:
        """Return an independent map with the same state."""
        twin = type(self)()
        twin._entries = dict(self._entries)
        twin._latest = self._latest
        return twin
