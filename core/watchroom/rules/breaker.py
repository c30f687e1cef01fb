"""The breaker: when an agent goes in circles, seen in its rows. Pure.

It looks at rows of every kind of agent: what was refused or failed, versions of files, steps of sessions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from watchroom.errors import ConfigInvalid
from watchroom.model import CONTINUE, PAUSE, SYSTEM, Row, Zone

TripKind: TypeAlias = Literal["failing", "to_and_fro", "no_progress"]
"""The same call fails again and again; a text changes to and fro; steps bring nothing new."""
BREAKER: Final = "breaker"
"""In the detail of the row by which Watchroom pauses an agent: the kind of the trip."""
_TEXTS: Final[frozenset[Zone]] = frozenset({"private", "collab", "board", "handoff", "file", "realtime"})
_REMEMBERED: Final = 50
"""So many texts of an agent's steps, and so many paths, are remembered."""
_MOST: Final = 1_000_000


class BreakerSettings(NamedTuple):
    """When an agent is paused: after so many ``failures`` in a row of the same call, after so many versions
    of a path in a row (``edits``) of which each has the text of the one before the last, after so many
    ``steps`` without a new version of a file and without a new text. 0 is never."""

    failures: int = 8
    edits: int = 8
    steps: int = 200


class Trip(NamedTuple):
    """Why ``agent`` has to be paused, by its row number ``row``: ``times`` times, on ``subject``."""

    kind: TripKind
    agent: str
    times: int
    subject: str
    row: int


class _Agent:
    """What is remembered of an agent."""

    def __init__(self) -> None:
        self.failed: tuple[str, str, str, str] | None = None
        self.failures = 0
        self.steps = 0
        self.texts: deque[str] = deque(maxlen=_REMEMBERED)


class _Path(NamedTuple):
    """The checksums of a path's last two versions, and how many in a row were as the one before the last."""

    last: str = ""
    before: str = ""
    returns: int = 0


class Breaker:
    """Takes rows in order with `apply`. After a trip, and after a person's word to the agent, it counts
    anew."""

    def __init__(self) -> None:
        self._agents: dict[str, _Agent] = {}
        self._paths: dict[tuple[Zone, str], _Path] = {}

    def apply(self, row: Row, settings: BreakerSettings) -> Trip | None:
        """Take in ``row``, the next one; returns why its agent has to be paused by ``settings``, None where
        it need not be."""
        if row.zone == "session" and row.kind == "human":
            self._agents.pop(row.path.partition("/")[0], None)
            return None
        if row.kind != "agent":
            return None
        agent = self._agents.setdefault(row.actor, _Agent())
        trip = self._count(agent, row, settings)
        if trip is not None:
            self._agents.pop(row.actor, None)
        return trip

    def _count(self, agent: _Agent, row: Row, settings: BreakerSettings) -> Trip | None:
        if row.outcome != "ok":
            call = (row.tool, row.zone, row.path, row.error)
            agent.failures = agent.failures + 1 if call == agent.failed else 1
            agent.failed = call
            if 0 < settings.failures <= agent.failures:
                return Trip("failing", row.actor, agent.failures, f"{row.tool} {row.path}".strip(), row.seq)
            return None
        if row.zone == "session":
            return self._count_step(agent, row, settings)
        if row.version is not None:
            agent.failed = None
            if row.zone in _TEXTS:
                return self._count_version(agent, row, settings)
        return None

    def _count_step(self, agent: _Agent, row: Row, settings: BreakerSettings) -> Trip | None:
        if row.version is None or row.tool == CONTINUE:
            return None
        if row.message and row.message not in agent.texts:
            agent.texts.append(row.message)
            agent.steps = 0
            return None
        agent.steps += 1
        if 0 < settings.steps <= agent.steps:
            return Trip("no_progress", row.actor, agent.steps, row.path, row.seq)
        return None

    def _count_version(self, agent: _Agent, row: Row, settings: BreakerSettings) -> Trip | None:
        known = self._paths.pop((row.zone, row.path), _Path())
        checksum = row.sha256 or ""
        returns = known.returns + 1 if checksum and checksum == known.before != known.last else 0
        self._paths[row.zone, row.path] = _Path(checksum, known.last, returns)
        if len(self._paths) > _REMEMBERED:
            del self._paths[next(iter(self._paths))]
        if not returns:
            agent.steps = 0
        edits = returns + 2 if returns else 0
        if 0 < settings.edits <= edits:
            del self._paths[row.zone, row.path]
            return Trip("to_and_fro", row.actor, edits, row.path, row.seq)
        return None


def is_trip(row: Row) -> bool:
    """Whether by ``row`` Watchroom paused an agent that went in circles."""
    return row.actor == SYSTEM and row.tool == PAUSE and row.zone == "agent"


def parse_breaker(table: object) -> BreakerSettings:
    """What ``table``, the part ``[breaker]`` of a config, says. Raises `ConfigInvalid`."""
    if not isinstance(table, dict) or not table.keys() <= set(BreakerSettings._fields):
        raise ConfigInvalid(problem=f"breaker ({', '.join(BreakerSettings._fields)})")
    for name, value in table.items():
        # True is an int, too; fewer than three say nothing of a circle.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not (value == 0 or 3 <= value <= _MOST):
            raise ConfigInvalid(problem=f"breaker.{name} = {value!r} (0, 3 … {_MOST})")
    return BreakerSettings(**cast("Mapping[str, int]", table))


def breaker_as_table(settings: BreakerSettings) -> dict[str, int]:
    """``settings`` as a config says them, without what is as always."""
    usual = BreakerSettings()._asdict()
    return {name: value for name, value in settings._asdict().items() if value != usual[name]}
