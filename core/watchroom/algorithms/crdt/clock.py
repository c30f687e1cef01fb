"""A hybrid logical clock: timestamps that respect causality and stay close to physical time.

The algorithm is from Kulkarni, Demirbas et al., "Logical Physical Clocks" (OPODIS 2014).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.algorithms.crdt.state_checks import (
    MAX_COUNT,
    check_natural,
    check_replica_name,
    check_sequence,
    invalid_state,
)
from watchroom.model import Json

SEPARATOR: Final = "#"
"""Separates the agent from the peer number in a replica's name.

It sorts before every character of an agent id, so replica names sort like the ids of their agents.
"""
MAX_DRIFT: Final = 3_600_000
"""Maximum milliseconds by which the clock of a remote replica may be ahead of ours."""


def name_replica(agent: str, peer: int) -> str:
    """Return the name of a replica of ``agent``. ``peer``: a random 63-bit number that distinguishes the
    replicas of an agent."""
    return f"{agent}{SEPARATOR}{peer:x}"


def agent_of(replica: str) -> str:
    """Return the agent's id in the name ``replica``; the whole name if it has no peer number."""
    return replica.partition(SEPARATOR)[0]


def peer_of(replica: str) -> str:
    """Return the hexadecimal peer number in the name ``replica``; empty if it has none."""
    return replica.partition(SEPARATOR)[2]


class Stamp(NamedTuple):
    """The time and the writer of an event.

    - ``time``: milliseconds since the epoch.
    - ``tick``: a counter within that millisecond.
    - ``replica``: the name of the writing replica.

    Stamps sort in causal order. If time and tick are equal, the larger replica name wins (FILES-D3).
    """

    time: int
    tick: int
    replica: str

    def as_json(self) -> Json:
        """Return ``[time, tick, replica]``."""
        return [self.time, self.tick, self.replica]

    @classmethod
    def from_json(cls, state: Json) -> Stamp:
        """Parse a result of `as_json`. Raise `InvalidState` if ``state`` is malformed."""
        parts = check_sequence(state, "stamp")
        if len(parts) != 3:
            raise invalid_state("stamp")
        return cls(
            check_natural(parts[0], "stamp"), check_natural(parts[1], "stamp"), check_replica_name(parts[2])
        )


def wall_clock() -> int:
    """Return the machine's time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class HybridClock:
    """A source of stamps that are later than every stamp it issued or observed.

    ``wall``: returns milliseconds since the epoch, default `wall_clock`. Stamps stay close to this time.
    """

    __slots__ = ("_tick", "_time", "_wall")

    def __init__(self, wall: Callable[[], int] = wall_clock) -> None:
        self._wall = wall
        self._time = 0
        self._tick = 0

    def stamp(self, replica: str, now: int | None = None) -> Stamp:
        """Return the stamp of an event at ``replica``.

        ``now``: milliseconds since the epoch, default the time of ``wall``. Raise `InvalidState` if no later
        stamp exists, because the clock has observed the largest stamp.
        """
        time, tick = max((self._wall() if now is None else now, 0), (self._time, self._tick + 1))
        if tick > MAX_COUNT:
            time, tick = time + 1, 0
        self._time, self._tick = check_natural(time, "stamp"), tick
        return Stamp(time, tick, replica)

    def observe(self, stamp: Stamp) -> None:
        """Make all future stamps later than ``stamp``, a stamp of another replica."""
        self._time, self._tick = max((self._time, self._tick), (stamp.time, stamp.tick))
