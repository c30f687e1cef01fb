"""A set in which an addition wins over a removal that did not know of it.

The optimised observed-remove set of Bieniusa, Zawirski, Preguiça, Shapiro, Baquero, Balegas and Duarte, "An
optimized conflict-free replicated set" (INRIA RR-8083, 2012): it keeps no tombstones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self, TypeAlias

from watchroom.crdt.clock import agent_of
from watchroom.crdt.state_checks import (
    check_fields,
    check_mapping,
    check_natural,
    check_replica_name,
    check_sequence,
    invalid_state,
    utf8_size,
)
from watchroom.errors import NotText, TooLarge
from watchroom.model import Json

MAX_ELEMENT: Final = 10_000
"""Characters of an element."""
_REQUIRED: Final = frozenset({"elements"})
_OPTIONAL: Final = frozenset({"context", "cloud"})

Dot: TypeAlias = tuple[str, int]
"""The n-th addition of a replica: (replica, n), n from 1."""


class _State(NamedTuple):
    elements: dict[str, list[Dot]]
    context: dict[str, int]
    cloud: set[Dot]

    def covers(self, dot: Dot) -> bool:
        return dot[1] <= self.context.get(dot[0], 0) or dot in self.cloud


class ORSet:
    """A set of texts. Each addition is a dot; an element is in the set while one of its dots is.

    What a replica knows of is its causal context: all additions of each replica up to a number, and a cloud
    of single ones beyond. A dot that is known and not held was removed. State: ``{"elements": {element:
    {replica: n}}, "context": {replica: n}, "cloud": [[replica, n], …]}``; a delta's context is its cloud.
    """

    __slots__ = ("_cloud", "_context", "_dots", "_elements")

    def __init__(self) -> None:
        self._elements: dict[str, dict[str, int]] = {}
        self._dots: dict[Dot, str] = {}
        self._context: dict[str, int] = {}
        self._cloud: set[Dot] = set()

    @property
    def value(self) -> list[str]:
        """The elements, sorted."""
        return sorted(self._elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __len__(self) -> int:
        return len(self._elements)

    def added_by(self, element: str) -> tuple[str, ...]:
        """The agents whose additions keep ``element`` in the set, sorted."""
        return tuple(sorted({agent_of(replica) for replica in self._elements.get(element, {})}))

    def add(self, element: str, replica: str, seen: ORSet | None = None) -> Mapping[str, Json]:
        """Add ``element`` as ``replica``, in place of the additions of it that ``seen`` holds (the set as the
        writer knows it; by default this one); returns the delta. Raises `NotText`, `TooLarge`,
        `InvalidState` beyond 2^53 - 1 additions."""
        if len(element) > MAX_ELEMENT:
            raise TooLarge(size=len(element), limit=MAX_ELEMENT)
        utf8_size(element)
        count = self._context.get(check_replica_name(replica), 0) + 1
        dot = (replica, check_natural(count, "count"))
        replaced = [*(self if seen is None else seen)._elements.get(element, {}).items()]
        self._remove_dots(replaced)
        self._add_dot(element, dot)
        self._extend_context([dot])
        return _build_delta({element: {dot[0]: dot[1]}}, [dot, *replaced])

    def remove(self, element: str, seen: ORSet | None = None) -> Mapping[str, Json]:
        """Remove the additions of ``element`` that ``seen`` holds (the set as the writer knows it; by default
        this one); returns the delta."""
        known = self if seen is None else seen
        dots = [*known._elements.get(element, {}).items()]
        self._remove_dots(dots)
        self._extend_context(dots)
        return _build_delta({}, dots)

    def merge(self, state: Json) -> None:
        """Merge ``state``, another replica's state or delta. Raises `InvalidState`."""
        other = _parse_state(state)
        held = {dot for dots in other.elements.values() for dot in dots}
        known_to_other = self._dots if other.context else other.cloud & self._dots.keys()
        gone = [dot for dot in known_to_other if dot not in held and other.covers(dot)]
        mine = _State({}, self._context, self._cloud)
        new = [
            (element, dot)
            for element, dots in other.elements.items()
            for dot in dots
            if dot not in self._dots and not mine.covers(dot)
        ]
        self._remove_dots(gone)
        for element, dot in new:
            self._add_dot(element, dot)
        for replica, count in other.context.items():
            self._context[replica] = max(count, self._context.get(replica, 0))
        self._extend_context(other.cloud)

    def state(self) -> Mapping[str, Json]:
        """The whole state as JSON."""
        return {
            "elements": {each: dict(sorted(self._elements[each].items())) for each in sorted(self._elements)},
            "context": dict(sorted(self._context.items())),
            "cloud": [list(dot) for dot in sorted(self._cloud)],
        }

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """For each replica the number of its highest known addition."""
        known = dict(self._context)
        for replica, count in self._cloud:
            known[replica] = max(count, known.get(replica, 0))
        return {replica: (count,) for replica, count in known.items()}

    def copy(self) -> Self:
        """An equal set that is independent of this one."""
        twin = type(self)()
        twin._elements = {element: dict(dots) for element, dots in self._elements.items()}
        twin._dots = dict(self._dots)
        twin._context = dict(self._context)
        twin._cloud = set(self._cloud)
        return twin

    def _add_dot(self, element: str, dot: Dot) -> None:
        dots = self._elements.setdefault(element, {})
        older = dots.get(dot[0])
        if older is not None:
            # A replica's later addition of an element always replaces its earlier one.
            self._dots.pop((dot[0], min(older, dot[1])), None)
            dot = (dot[0], max(older, dot[1]))
        dots[dot[0]] = dot[1]
        self._dots[dot] = element

    def _remove_dots(self, dots: Iterable[Dot]) -> None:
        for dot in dots:
            element = self._dots.pop(dot, None)
            if element is None:
                continue
            left = self._elements[element]
            del left[dot[0]]
            if not left:
                del self._elements[element]

    def _extend_context(self, dots: Iterable[Dot]) -> None:
        """Take dots into the context, and those of the cloud that have become contiguous."""
        self._cloud.update(dots)
        for replica, count in sorted(self._cloud):
            known = self._context.get(replica, 0)
            if count <= known + 1:
                self._cloud.discard((replica, count))
                self._context[replica] = max(known, count)


def _build_delta(elements: Mapping[str, Json], dots: Iterable[Dot]) -> Mapping[str, Json]:
    return {"elements": elements, "cloud": [list(dot) for dot in sorted(dots)]}


def _parse_state(state: Json) -> _State:
    found = check_fields(state, "shape", _REQUIRED, _OPTIONAL)
    context = {
        check_replica_name(replica): check_natural(count, "count")
        for replica, count in check_mapping(found.get("context", {}), "shape").items()
    }
    cloud = {
        _parse_dot(check_sequence(each, "shape")) for each in check_sequence(found.get("cloud", ()), "shape")
    }
    elements = {
        _check_element(element): [_parse_dot(pair) for pair in check_mapping(dots, "shape").items()]
        for element, dots in check_mapping(found["elements"], "shape").items()
    }
    parsed = _State(elements, context, cloud)
    held = [dot for dots in elements.values() for dot in dots]
    if not all(elements.values()) or len(set(held)) != len(held) or not all(map(parsed.covers, held)):
        raise invalid_state("dots")
    return parsed


def _parse_dot(pair: Iterable[Json]) -> Dot:
    parts = tuple(pair)
    if len(parts) != 2:
        raise invalid_state("shape")
    count = check_natural(parts[1], "count")
    if count == 0:
        raise invalid_state("count")
    return check_replica_name(parts[0]), count


def _check_element(element: str) -> str:
    if len(element) > MAX_ELEMENT:
        raise invalid_state("key")
    try:
        utf8_size(element)
    except NotText as error:
        raise invalid_state("key") from error
    return element
