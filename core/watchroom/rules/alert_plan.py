"""What is to be sent to a target, by what was sent to it and what waits now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import Json, Row
from watchroom.rules.needs import URGENCY, NeedKind
from watchroom.validation import sha256

AlertEvent: TypeAlias = Literal["new", "ended"]
"""Something needs people, or needs them no more."""
EVENTS: Final[tuple[AlertEvent, ...]] = get_args(AlertEvent)
MOST_ITEMS: Final = 100
"""So many needs are in one message; the others are in the next one."""
_SECOND: Final = 1_000_000_000

Identity: TypeAlias = tuple[NeedKind, str, int]


class AlertItem(NamedTuple):
    """A need as an alert tells of it: ``kind``, ``key`` and ``since`` are its identity, ``text`` says what it
    is about, ``agent`` whose doing it is, ``deadline`` until when it can be dealt with (nanoseconds since the
    epoch), None where that has no end."""

    kind: NeedKind
    key: str
    since: int
    text: str
    agent: str = ""
    deadline: int | None = None

    @property
    def identity(self) -> Identity:
        """That of the need."""
        return self.kind, self.key, self.since

    @property
    def id(self) -> str:
        """The identity as one word, the same in every message about it."""
        return sha256(f"{self.kind}\n{self.key}\n{self.since}".encode())[:16]


class AlertMessage(NamedTuple):
    """One message: that its ``items`` are there, or that they are gone."""

    event: AlertEvent
    items: tuple[AlertItem, ...]

    @property
    def id(self) -> str:
        """The same for the same items, however often it is sent."""
        return sha256("\n".join((self.event, *(item.id for item in self.items))).encode())[:32]


class TargetState(NamedTuple):
    """What a target was told and not yet told the end of, and since when (nanoseconds since the epoch) what
    it was not told waits."""

    told: Mapping[Identity, AlertItem] = MappingProxyType({})
    waiting: Mapping[Identity, int] = MappingProxyType({})

    def after(self, message: AlertMessage) -> TargetState:
        """The state once ``message`` was sent."""
        gone = {item.identity for item in message.items}
        told = {identity: item for identity, item in self.told.items() if identity not in gone}
        if message.event == "new":
            told |= {item.identity: item for item in message.items}
        waiting = {identity: since for identity, since in self.waiting.items() if identity not in gone}
        return TargetState(MappingProxyType(told), MappingProxyType(waiting))


class AlertPlan(NamedTuple):
    """The ``messages`` to send now, and when to ask again without anything new (nanoseconds since the epoch);
    None where only something new leads to a message."""

    state: TargetState
    messages: tuple[AlertMessage, ...] = ()
    next_at: int | None = None


def plan_alerts(
    state: TargetState,
    items: Sequence[AlertItem],
    now: int,
    *,
    digest_seconds: int,
    tells_ends: bool = True,
    quiet_until: int | None = None,
) -> AlertPlan:
    """What to send at ``now`` (nanoseconds since the epoch) to whom ``state`` tells of, where ``items`` wait.

    What is new waits until ``digest_seconds`` are over for the oldest of it, and nothing is sent before
    ``quiet_until``. What was told and is there no more has ended, if ``tells_ends``; a need that goes on
    under another kind has not."""
    current = {item.identity: item for item in items}
    rows = {item.since for item in items if item.since}
    ended = [
        item
        for identity, item in state.told.items()
        if identity not in current and item.since not in rows and tells_ends
    ]
    waiting = {
        identity: state.waiting.get(identity, now) for identity in current if identity not in state.told
    }
    state = state._replace(waiting=MappingProxyType(waiting))
    due = min(waiting.values()) + digest_seconds * _SECOND if waiting else None
    if quiet_until is not None and now < quiet_until:
        return AlertPlan(state, (), quiet_until if waiting or ended else None)
    messages = [*_messages("ended", ended)]
    if due is not None and due <= now:
        messages += _messages("new", [current[identity] for identity in waiting])
        due = None
    return AlertPlan(state, tuple(messages), due)


def _messages(event: AlertEvent, items: Sequence[AlertItem]) -> Iterable[AlertMessage]:
    for start in range(0, len(items), MOST_ITEMS):
        yield AlertMessage(event, tuple(items[start : start + MOST_ITEMS]))


def dump_message(message: AlertMessage) -> dict[str, Json]:
    """``message`` as the detail of a row says it: the reverse of `parse_message`."""
    return {"event": message.event, "needs": [item._asdict() for item in message.items]}


def parse_message(row: Row) -> AlertMessage | None:
    """The message that ``row`` tells of; None where it tells of none that can be read."""
    event, needs = row.detail.get("event"), row.detail.get("needs")
    if event not in EVENTS or not isinstance(needs, list):
        return None
    items = [_item(each) for each in needs if isinstance(each, Mapping)]
    return AlertMessage(event, tuple(item for item in items if item is not None))


def _item(fields: Mapping[str, Json]) -> AlertItem | None:
    kind, key, since = fields.get("kind"), fields.get("key"), fields.get("since")
    if kind not in URGENCY or not isinstance(key, str) or not isinstance(since, int):
        return None
    deadline = fields.get("deadline")
    return AlertItem(
        *(kind, key, since, str(fields.get("text", "")), str(fields.get("agent", ""))),
        deadline=deadline if isinstance(deadline, int) else None,
    )


def state_of(sent: Iterable[Row]) -> TargetState:
    """The state of a target to which was sent what the rows ``sent`` say, oldest first."""
    state = TargetState()
    for row in sent:
        message = parse_message(row)
        if message is not None:
            state = state.after(message)
    return state
