"""Whose turn it is to ask people something: now and then one agent's, and never too many at once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import cycle
from typing import Final, NamedTuple

MOST_OPEN: Final = 3
"""So many requests at most are open at once, over the whole team."""

PATIENCE: Final = 90.0
"""Seconds that a person has to answer."""

_EVERY: Final = 60.0
_LATER: Final = 5.0
_STALE: Final = 180.0
"""Whoever could have taken a chance for so long is busy with something else: another comes instead."""


class Chance(NamedTuple):
    """A chance to ask people for something of that ``kind``, from second ``due`` on."""

    kind: str
    due: float
    patience: float = PATIENCE


_FIRST: Final = (
    # It gives way soon, so that even who only watches sees each kind of request within a minute.
    Chance("choose", 4.0, 42.0),
    Chance("write", 10.0),
    Chance("publish", 16.0),
    Chance("several", 28.0),
)

_KINDS: Final = ("roll_back", "choose", "publish", "write", "several")


class Turns:
    """``clock`` gives the seconds since the beginning. It belongs to one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._coming = list(_FIRST)
        self._kinds = cycle(_KINDS)
        self._taken: dict[str, Chance] = {}

    def take(self, agent: str, kinds: Collection[str]) -> Chance | None:
        """What ``agent`` may ask for at the moment, if it is something of these kinds."""
        now = self._clock()
        self._coming = [chance for chance in self._coming if now - chance.due < _STALE]
        if not self._coming:
            self._coming.append(Chance(next(self._kinds), now + _EVERY))
        if len(self._taken) >= MOST_OPEN:
            return None
        for chance in self._coming:
            if chance.kind in kinds and chance.due <= now:
                self._coming.remove(chance)
                self._taken[agent] = chance
                return chance
        return None

    def holds(self, agent: str) -> None:
        """``agent`` has a request open from before."""
        self._taken[agent] = Chance("", 0.0)

    def ends(self, agent: str, *, used: bool = True) -> None:
        """The turn of ``agent`` is over, if it had one; one that was not used is offered again."""
        chance = self._taken.pop(agent, None)
        if chance is not None and not used:
            self._coming.insert(0, chance._replace(due=self._clock() + _LATER))
