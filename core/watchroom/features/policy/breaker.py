"""The breaker: detects agents that loop, from their rows. Pure.

It counts refused and failed calls, versions of files, and steps of sessions. It applies to all kinds of
agents.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from watchroom.errors import ConfigInvalid
from watchroom.kernel.zones import ZONES
from watchroom.model import CONTINUE, PAUSE, SYSTEM, Row, Zone

TripKind: TypeAlias = Literal["failing", "to_and_fro", "no_progress"]
"""The reason why an agent is paused.

- ``failing``: the same call fails repeatedly.
- ``to_and_fro``: a text changes back and forth.
- ``no_progress``: steps produce nothing new.
"""
BREAKER: Final = "breaker"
"""The field of a row that pauses an agent, with the kind of the trip."""
_TEXTS: Final = frozenset(zone for zone, spec in ZONES.items() if spec.is_work)
_MAX_REMEMBERED: Final = 50
"""Maximum number of remembered texts of steps per agent, and of remembered paths of all agents."""
_MAX_SETTING: Final = 1_000_000


class BreakerSettings(NamedTuple):
    """The limits at which an agent is paused; 0 turns a limit off.

    - ``failures``: consecutive failures of the same call.
    - ``edits``: consecutive versions of a path that each restore the text of two versions before.
    - ``steps``: steps without a new version of a file and without a new text.
    """

    failures: int = 8
    edits: int = 8
    steps: int = 200


class Trip(NamedTuple):
    """The reason for the pause of an agent.

    - ``kind``: the kind of loop.
    - ``agent``: the agent.
    - ``times``: the number of repetitions.
    - ``subject``: the call, path or session.
    - ``row``: the number of the row that caused it.
    """

    kind: TripKind
    agent: str
    times: int
    subject: str
    row: int


class _Agent:
    """The counts for an agent."""

    def __init__(self) -> None:
        self.failed: tuple[str, str, str, str] | None = None
        self.failures = 0
        self.steps = 0
        self.texts: deque[str] = deque(maxlen=_MAX_REMEMBERED)


class _Path(NamedTuple):
    """The history of a path.

    - ``last``, ``before``: the checksums of the last version and of the version before it.
    - ``returns``: the number of consecutive versions that restored the text of two versions before.
    """

    last: str = ""
    before: str = ""
    returns: int = 0


class Breaker:
    """Counts rows. `apply` takes them in order. The counts of an agent restart after a trip, and after a
    person's message to it."""

    def __init__(self) -> None:
        self._agents: dict[str, _Agent] = {}
        self._paths: dict[tuple[Zone, str], _Path] = {}

    def apply(self, row: Row, settings: BreakerSettings) -> Trip | None:
        """Count ``row``, the next row. Return the trip if its agent must be paused by ``settings``, else
        None."""
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
        if len(self._paths) > _MAX_REMEMBERED:
            del self._paths[next(iter(self._paths))]
        if not returns:
            agent.steps = 0
        edits = returns + 2 if returns else 0
        if 0 < settings.edits <= edits:
            del self._paths[row.zone, row.path]
            return Trip("to_and_fro", row.actor, edits, row.path, row.seq)
        return None


def is_trip(row: Row) -> bool:
    """Whether ``row`` is a pause by the breaker."""
    return row.actor == SYSTEM and row.tool == PAUSE and row.zone == "agent"


def parse_breaker(table: object) -> BreakerSettings:
    """Parse ``table``, the entry ``breaker`` of the config. Raise `ConfigInvalid` for an invalid entry."""
    if not isinstance(table, dict) or not table.keys() <= set(BreakerSettings._fields):
        raise ConfigInvalid(problem=f"breaker ({', '.join(BreakerSettings._fields)})")
    for name, value in table.items():
        # True is an int. Fewer than three repetitions are not a loop.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not (value == 0 or 3 <= value <= _MAX_SETTING):
            raise ConfigInvalid(problem=f"breaker.{name} = {value!r} (0, 3 … {_MAX_SETTING})")
    return BreakerSettings(**cast("Mapping[str, int]", table))


def dump_breaker(settings: BreakerSettings) -> dict[str, int]:
    """Return ``settings`` as the entry ``breaker`` of the config, without defaults: the reverse of
    `parse_breaker`."""
    defaults = BreakerSettings()._asdict()
    return {name: value for name, value in settings._asdict().items() if value != defaults[name]}
