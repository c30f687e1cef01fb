"""What to tell a person who looks elsewhere: each new thing that needs them, once, and not too often.

Pure: a `AlertState` goes in with what presses now, the next one comes out with what to tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.needs.rules import NeedKind
from watchroom.features.overview.model import Need

AlertMode: TypeAlias = Literal["off", "bell", "desktop", "both"]
MODES: Final[tuple[AlertMode, ...]] = get_args(AlertMode)
Identity: TypeAlias = tuple[NeedKind, str, int]

DELAY_SECONDS: Final = 3.0
"""So many seconds a new thing may have gone again by itself: most agents recover from a conflict sooner."""
INTERVAL_SECONDS: Final = 10.0
"""So many seconds between two alerts at least; what comes meanwhile goes into one."""


class AlertState(NamedTuple):
    """What was told or was there from the start, what is new since when, and when the last alert was."""

    known: Set[Identity]
    new: Mapping[Identity, float] = MappingProxyType({})
    last_alert_at: float = float("-inf")


def initial_state(pressing: Sequence[Need]) -> AlertState:
    """The watch of somebody who sees that much from the start, and needs not be told."""
    return AlertState(frozenset(need.identity for need in pressing))


def next_alerts(
    watch: AlertState, pressing: Sequence[Need], now: float
) -> tuple[AlertState, tuple[Need, ...]]:
    """The next watch, and what to tell at ``now`` (seconds): nothing, or all that is new, in one alert."""
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
    """The mode that the key changes to."""
    return MODES[(MODES.index(mode) + 1) % len(MODES)]
