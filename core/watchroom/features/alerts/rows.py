"""The rows of alerts: the messages, their needs, and the state of a target. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.needs.rules import URGENCY, NeedKind
from watchroom.model import Json, Row
from watchroom.validation import sha256

AlertEvent: TypeAlias = Literal["new", "ended"]
"""The state of the needs in a message: open, or ended."""
EVENTS: Final[tuple[AlertEvent, ...]] = get_args(AlertEvent)

Identity: TypeAlias = tuple[NeedKind, str, int]
"""The kind, key and first row of a need."""


class AlertItem(NamedTuple):
    """A need in an alert.

    - ``kind``, ``key``, ``since``: the identity of the need; ``since`` is the row that opened it.
    - ``text``: a description.
    - ``agent``: the agent that caused the need, empty for none.
    - ``deadline``: the time when the need expires, in nanoseconds since the epoch; None for never.
    """

    kind: NeedKind
    key: str
    since: int
    text: str
    agent: str = ""
    deadline: int | None = None

    @property
    def identity(self) -> Identity:
        """The identity of the need."""
        return self.kind, self.key, self.since

    @property
    def id(self) -> str:
        """The identity as 16 hexadecimal digits, the same in every message about the need."""
        return sha256(f"{self.kind}\n{self.key}\n{self.since}".encode())[:16]


class AlertMessage(NamedTuple):
    """A message about needs. ``event``: whether all ``items`` are open or ended."""

    event: AlertEvent
    items: tuple[AlertItem, ...]

    @property
    def id(self) -> str:
        """The message's id, the same for each attempt to send it."""
        return sha256("\n".join((self.event, *(item.id for item in self.items))).encode())[:32]


class TargetState(NamedTuple):
    """The state of a target: the reported needs, and the needs not yet reported.

    - ``reported``: the needs that were reported to the target as open.
    - ``waiting``: the times when the other open needs were first seen, in nanoseconds since the epoch.
    """

    reported: Mapping[Identity, AlertItem] = MappingProxyType({})
    waiting: Mapping[Identity, int] = MappingProxyType({})

    def after(self, message: AlertMessage) -> TargetState:
        """Return the state after ``message`` was sent."""
        sent = {item.identity: item for item in message.items}
        reported = {identity: item for identity, item in self.reported.items() if identity not in sent}
        if message.event == "new":
            reported |= sent
        waiting = {identity: since for identity, since in self.waiting.items() if identity not in sent}
        return TargetState(MappingProxyType(reported), MappingProxyType(waiting))


def dump_message(message: AlertMessage) -> dict[str, Json]:
    """Return the detail of the row of ``message``. The reverse of `parse_message`."""
    return {"event": message.event, "needs": [item._asdict() for item in message.items]}


def parse_message(row: Row) -> AlertMessage | None:
    """Return the message of ``row``, without invalid needs. None if the row has no valid message."""
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


def fold_messages(sent: Iterable[Row]) -> TargetState:
    """Return the state of a target after the messages of the rows ``sent``, oldest first."""
    state = TargetState()
    for row in sent:
        message = parse_message(row)
        if message is not None:
            state = state.after(message)
    return state
