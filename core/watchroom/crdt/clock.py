"""Time that agrees with cause and effect: the hybrid logical clock of Kulkarni, Demirbas et al., "Logical
Physical Clocks" (OPODIS 2014)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.crdt.state_checks import (
    MAX_COUNT,
    check_natural,
    check_replica_name,
    check_sequence,
    invalid_state,
)
from watchroom.model import Json

SEPARATOR: Final = "#"
"""Between a replica's agent and its peer number. It sorts before every character of an agent id, so that
names of replicas sort as their agents do."""
MOST_DRIFT: Final = 3_600_000
"""Milliseconds by which a remote replica's clock may be ahead of ours."""


def name_replica(agent: str, peer: int) -> str:
    """A replica's name: ``agent`` and ``peer``, a random number of 63 bits that keeps several replicas of one
    agent apart."""
    return f"{agent}{SEPARATOR}{peer:x}"


def agent_of(replica: str) -> str:
    """The agent's id in the name ``replica``; the whole name where it has no peer number."""
    return replica.partition(SEPARATOR)[0]


def peer_of(replica: str) -> str:
    """The peer number (hexadecimal) in the name ``replica``, empty where it has none."""
    return replica.partition(SEPARATOR)[2]


class Stamp(NamedTuple):
    """When and by whom: ``time`` in milliseconds since the epoch, ``tick`` counts within that millisecond,
    ``replica`` is the writer's name.

    Stamps are in order of cause; where there is none, the larger replica name wins (FILES-D3)."""

    time: int
    tick: int
    replica: str

    def as_json(self) -> Json:
        """``[time, tick, replica]``."""
        return [self.time, self.tick, self.replica]

    @classmethod
    def from_json(cls, state: Json) -> Stamp:
        """The stamp in ``state``, as `as_json` writes it. Raises `InvalidState`."""
        parts = check_sequence(state, "stamp")
        if len(parts) != 3:
            raise invalid_state("stamp")
        return cls(
            check_natural(parts[0], "stamp"), check_natural(parts[1], "stamp"), check_replica_name(parts[2])
        )


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class HybridClock:
    """Gives stamps that are later than every stamp it gave or saw, and close to ``wall``, which gives
    milliseconds since the epoch."""

    __slots__ = ("_tick", "_time", "_wall")

    def __init__(self, wall: Callable[[], int] = wall_clock) -> None:
        self._wall = wall
        self._time = 0
        self._tick = 0

    def stamp(self, replica: str, now: int | None = None) -> Stamp:
        """The stamp of an event at ``replica`` at the time ``now``, in milliseconds since the epoch (None: by
        ``wall``). Raises `InvalidState` where none is left, because a stamp from the end of time was seen."""
        time, tick = max((self._wall() if now is None else now, 0), (self._time, self._tick + 1))
        if tick > MAX_COUNT:
            time, tick = time + 1, 0
        self._time, self._tick = check_natural(time, "stamp"), tick
        return Stamp(time, tick, replica)

    def observe(self, stamp: Stamp) -> None:
        """Take note of ``stamp``, which another replica gave: stamps from now on are later."""
        self._time, self._tick = max((self._time, self._tick), (stamp.time, stamp.tick))
