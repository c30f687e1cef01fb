"""Policy for alerts: announce each need once, at a limited rate.

The functions are pure. They take an `AlertState` and the current needs, and return the next state and the
needs to announce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

AlertMode: TypeAlias = Literal["off", "bell", "desktop", "both"]
MODES: Final[tuple[AlertMode, ...]] = get_args(AlertMode)
Identity: TypeAlias = tuple[str, str, int]

DELAY_SECONDS: Final = 3.0
"""Seconds before a new need is announced, because most agents recover from a conflict sooner."""
INTERVAL_SECONDS: Final = 10.0
"""Minimum number of seconds between two alerts. New needs in between share one alert."""


class Identified(Protocol):
    """A need of this or another machine."""

    @property
    def identity(self) -> Identity: ...


N = TypeVar("N", bound=Identified)


class AlertState(NamedTuple):
    """State of the alerts.

    - ``known``: the needs that are not announced again.
    - ``new``: the needs to announce, with the time of their first check in seconds.
    - ``last_alert_at``: the time of the last alert in seconds.
    """

    known: Set[Identity]
    new: Mapping[Identity, float] = MappingProxyType({})
    last_alert_at: float = float("-inf")


def initial_state(pressing: Sequence[Identified]) -> AlertState:
    """Return the state in which all ``pressing`` needs are known."""
    return AlertState(frozenset(need.identity for need in pressing))


def next_alerts(watch: AlertState, pressing: Sequence[N], now: float) -> tuple[AlertState, tuple[N, ...]]:
    """Return the next state, and the needs to announce at ``now`` (seconds): no needs, or all new needs."""
    new = [need for need in pressing if need.identity not in watch.known]
    since = {need.identity: watch.new.get(need.identity, now) for need in new}
    is_due = (
        any(now - first >= DELAY_SECONDS for first in since.values())
        and now - watch.last_alert_at >= INTERVAL_SECONDS
    )
    if not is_due:
        return (watch._replace(new=since) if since != watch.new else watch), ()
    return AlertState(frozenset(watch.known) | frozenset(since), last_alert_at=now), tuple(new)


def next_mode(mode: AlertMode) -> AlertMode:
    """Return the mode after ``mode``."""
    return MODES[(MODES.index(mode) + 1) % len(MODES)]
