"""A set in which an addition wins over a concurrent removal.

This is the optimised observed-remove set without tombstones of Bieniusa, Zawirski, Preguiça, Shapiro,
Baquero, Balegas and Duarte, "An optimized conflict-free replicated set" (INRIA RR-8083, 2012).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self, TypeAlias

from watchroom.algorithms.crdt.clock import agent_of
from watchroom.algorithms.crdt.state_checks import (
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
"""Maximum characters of an element."""
_REQUIRED: Final = frozenset({"elements"})
_OPTIONAL: Final = frozenset({"context", "cloud"})

Dot: TypeAlias = tuple[str, int]
"""The n-th addition of a replica: (replica, n). n starts at 1."""


class _State(NamedTuple):
    elements: dict[str, list[Dot]]
    context: dict[str, int]
    cloud: set[Dot]

    def covers(self, dot: Dot) -> bool:
        return dot[1] <= self.context.get(dot[0], 0) or dot in self.cloud


class ORSet:
    """A set of texts. Each addition is a dot; an element is in the set while it has a dot.

    The causal context holds all dots known to this replica: for each replica, all dots up to a number, and a
    cloud of single later dots. A dot in the context without an element was removed.

    State: ``{"elements": {element: {replica: n}}, "context": {replica: n}, "cloud": [[replica, n], …]}``. A
    delta has only a cloud.
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
        """Return the agents whose additions keep ``element`` in the set, sorted."""
        return tuple(sorted({agent_of(replica) for replica in self._elements.get(element, {})}))

    def add(self, element: str, replica: str, seen: ORSet | None = None) -> Mapping[str, Json]:
        """Add ``element`` as ``replica``, and return the delta.

        - ``element``: at most `MAX_ELEMENT` characters. Raise `TooLarge` or `NotText` otherwise.
        - ``replica``: the name of the writing replica. Raise `InvalidState` after 2^53 - 1 additions.
        - ``seen``: the set as the writer last saw it, default this set. Its dots of the element are replaced.
        """
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
        """Remove the dots that ``element`` has in ``seen``, and return the delta.

        ``seen``: the set as the writer last saw it, default this set.
        """
        known = self if seen is None else seen
        dots = [*known._elements.get(element, {}).items()]
        self._remove_dots(dots)
        self._extend_context(dots)
        return _build_delta({}, dots)

    def merge(self, state: Json) -> None:
        """Merge ``state``, a state or delta of another replica. Raise `InvalidState` if it is malformed."""
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
        """Return the whole state as JSON."""
        return {
            "elements": {each: dict(sorted(self._elements[each].items())) for each in sorted(self._elements)},
            "context": dict(sorted(self._context.items())),
            "cloud": [list(dot) for dot in sorted(self._cloud)],
        }

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """Return for each replica the number of its latest known addition."""
        known = dict(self._context)
        for replica, count in self._cloud:
            known[replica] = max(count, known.get(replica, 0))
        return {replica: (count,) for replica, count in known.items()}

    def copy(self) -> Self:
        """Return an independent set with the same state."""
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
            # A replica's later addition of an element always replaces its earlier addition.
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
        """Add ``dots`` to the cloud, and move contiguous dots from the cloud to the context."""
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
