"""Last writer wins: a single value, and a map of such values.

After Shapiro, Preguiça, Baquero and Zawirski, "A comprehensive study of Convergent and Commutative Replicated
Data Types" (INRIA RR-7506, 2011), section 3.2. A delta has the shape of a state and is merged like one
(Almeida, Shoker and Baquero, "Delta State Replicated Data Types", 2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from watchroom.crdt import checks
from watchroom.crdt.clock import Stamp
from watchroom.model import Json

_ENTRY: Final = frozenset({"value", "stamp"})
_REMOVED: Final = frozenset({"removed", "stamp"})


class Written(NamedTuple):
    """A value, when and by whom it was written; ``removed``: that there is none any more."""

    stamp: Stamp
    value: Json
    removed: bool = False

    def beats(self, other: Written | None) -> bool:
        if other is None or self.stamp != other.stamp:
            return other is None or self.stamp > other.stamp
        # Never made by our own clocks; replicas must agree all the same.
        return self._rank() > other._rank()

    def _rank(self) -> tuple[bool, str]:
        return not self.removed, checks.canonical(self.value)

    def as_json(self) -> Mapping[str, Json]:
        stamp = self.stamp.as_json()
        return {"removed": True, "stamp": stamp} if self.removed else {"value": self.value, "stamp": stamp}

    @classmethod
    def from_json(cls, state: Json) -> Written:
        """Raises `InvalidState`."""
        found = checks.mapping(state, "shape")
        if found.keys() == _REMOVED and found["removed"] is True:
            return cls(Stamp.from_json(found["stamp"]), None, removed=True)
        if found.keys() != _ENTRY:
            raise checks.refuse("shape")
        return cls(Stamp.from_json(found["stamp"]), checks.value(found["value"]))


class LWWRegister:
    """One value; of two writes the one with the later stamp stays. State: ``{"value": …, "stamp": […]}``, or
    ``{}`` while nothing was written."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: Written | None = None

    @property
    def value(self) -> Json:
        """None while nothing was written."""
        return self._written.value if self._written else None

    @property
    def written(self) -> Written | None:
        return self._written

    @property
    def latest(self) -> Stamp | None:
        return self._written.stamp if self._written else None

    def set(self, value: Json, stamp: Stamp) -> Mapping[str, Json]:
        """Write; returns the delta. Raises `NotText`, `TooLarge`."""
        checks.canonical(value)
        written = Written(stamp, value)
        self._take(written)
        return written.as_json()

    def merge(self, state: Json) -> None:
        """Take over another replica's state or delta. Raises `InvalidState`."""
        if state == {}:
            return
        written = Written.from_json(state)
        if written.removed:
            raise checks.refuse("shape")
        self._take(written)

    def _take(self, written: Written) -> None:
        if written.beats(self._written):
            self._written = written

    def state(self) -> Mapping[str, Json]:
        return self._written.as_json() if self._written else {}

    def copy(self) -> Self:
        twin = type(self)()
        twin._written = self._written
        return twin


class LWWMap:
    """A `LWWRegister` for each key (spec 1 G-2, its ideal): writes to different keys both stay.

    A removed key leaves its stamp behind, so that an older write does not bring it back. State: ``{key:
    {"value": …, "stamp": […]} or {"removed": true, "stamp": […]}}``.
    """

    __slots__ = ("_entries", "_latest")

    def __init__(self) -> None:
        self._entries: dict[str, Written] = {}
        self._latest: Stamp | None = None

    @property
    def value(self) -> dict[str, Json]:
        return {key: each.value for key, each in self._entries.items() if not each.removed}

    @property
    def entries(self) -> Mapping[str, Written]:
        """What was last written to each key, removals among it."""
        return self._entries

    @property
    def latest(self) -> Stamp | None:
        return self._latest

    def set(self, key: str, value: Json, stamp: Stamp) -> Mapping[str, Json]:
        """Write one key; returns the delta. Raises `NotText`, `TooLarge`, `InvalidState` for a key that
        cannot be."""
        checks.key(key)
        checks.canonical(value)
        return self._take({key: Written(stamp, value)})

    def remove(self, key: str, stamp: Stamp) -> Mapping[str, Json]:
        """Remove one key, there or not; returns the delta. Raises `InvalidState`."""
        return self._take({checks.key(key): Written(stamp, None, removed=True)})

    def replace(
        self, values: Mapping[str, Json], stamp: Stamp, seen: LWWMap | None = None
    ) -> Mapping[str, Json]:
        """Make the map ``values``: what differs from ``seen`` (the map as the writer knows it; else as it is)
        is written or removed, the rest is left to others. Returns the delta. Raises as `set`."""
        known = (self if seen is None else seen).value
        changed: dict[str, Written] = {}
        for key, value in values.items():
            checks.key(key)
            if key not in known or checks.canonical(value) != checks.canonical(known[key]):
                changed[key] = Written(stamp, value)
        for key in known.keys() - values.keys():
            changed[key] = Written(stamp, None, removed=True)
        return self._take(changed)

    def merge(self, state: Json) -> None:
        """Take over another replica's state or delta. Raises `InvalidState`."""
        found = checks.mapping(state, "shape")
        self._take({checks.key(key): Written.from_json(each) for key, each in found.items()})

    def _take(self, entries: Mapping[str, Written]) -> Mapping[str, Json]:
        for key, written in entries.items():
            if written.beats(self._entries.get(key)):
                self._entries[key] = written
            if self._latest is None or written.stamp > self._latest:
                self._latest = written.stamp
        return {key: written.as_json() for key, written in entries.items()}

    def state(self) -> Mapping[str, Json]:
        return {key: self._entries[key].as_json() for key in sorted(self._entries)}

    def copy(self) -> Self:
        twin = type(self)()
        twin._entries = dict(self._entries)
        twin._latest = self._latest
        return twin
