"""What a revert does to what agents sent, asked, held or opened: it is withdrawn where nobody took it yet.

What was read cannot be unsaid: whoever read it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from watchroom.journal import Journal
from watchroom.model import (
    ASK,
    MESSAGE,
    REVERT_WORK,
    SPAWN,
    SYSTEM,
    USER,
    WITHDRAW,
    Draft,
    Json,
    Note,
    Row,
    Write,
    Zone,
)
from watchroom.rules.buffers import CLOSE
from watchroom.rules.handoffs import ACKNOWLEDGE_TOOL, READ_TOOL, Delivery, delivers
from watchroom.rules.requests import Answer, dump_answer
from watchroom.rules.reverts import PathPlan, PlannedItem
from watchroom.texts import Catalogue, catalogue
from watchroom.zones.leases import HOLD, RELEASE
from watchroom.zones.people import PeopleReader
from watchroom.zones.requests import find_request_end
from watchroom.zones.revert_planning import RevertPart
from watchroom.zones.store import Store

WITHDRAWN: Final = "withdrawn"
RELEASED: Final = "released"
CLOSED: Final = "closed"
RETRACTED: Final = "retracted"
"""What becomes of an item."""
READ_ALREADY: Final = "read_already"
ANSWERED: Final = "answered"
SPAWNED: Final = "spawned"
NOT_RESTORED: Final = "not_restored"
"""Why one cannot be reverted."""


class HandoffWithdrawal:
    """Withdraws handoffs that their receivers have not read, by ``journal``: the delivery before that is not
    selected is in the inbox again. ``texts`` gives those in which receivers of others are told."""

    zones: Final[tuple[Zone, ...]] = ("handoff",)

    def __init__(self, journal: Journal, texts: Callable[[], Catalogue]) -> None:
        self._journal = journal
        self._texts = texts

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan`."""
        selected: dict[str, set[int]] = {}
        for row in rows:
            if delivers(row):
                selected.setdefault(row.path, set()).add(row.version or 0)
        return [item for path in selected if (item := self._planned(path, selected[path])) is not None]

    def _planned(self, path: str, selected: set[int]) -> PlannedItem | None:
        head = self._journal.head("handoff", path)
        if head is None or head.deleted:
            return None
        rows = self._journal.history("handoff", path)
        origins = _origins(rows)
        origin = origins[head.version or 0]
        if origin not in selected:
            # Replaced since: nobody sees it any more.
            return None
        if self._delivery(head).read:
            return self._retracted(head)
        earlier = [
            row for row in rows if (row.version or 0) < origin and origins[row.version or 0] not in selected
        ]
        kept = earlier[-1] if earlier and not earlier[-1].deleted else None
        return self._withdrawn(head, kept)

    def _withdrawn(self, head: Row, kept: Row | None) -> PlannedItem:
        """Withdraw the delivery ``head``; the earlier one ``kept``, if it is not None, is delivered again."""
        content = None if kept is None else self._journal.content(kept.seq)
        plan = PathPlan("clean", content, content, reason=WITHDRAWN)
        current = self._journal.content(head.seq)
        return PlannedItem("handoff", head.path, plan, current, (_write(head, content),))

    def _retracted(self, head: Row) -> PlannedItem:
        """Tell the receiver of ``head``, who has read it, that it does not count."""
        delivery = Delivery.from_row(head)
        told = self._texts()("revert.retracted_handoff", sender=delivery.sender, file=delivery.filename)
        plan = PathPlan("cannot", reason=READ_ALREADY)
        draft = _message(delivery.receiver, told)
        return PlannedItem("handoff", head.path, plan, self._journal.content(head.seq), drafts=(draft,))

    def _delivery(self, head: Row) -> Delivery:
        """How far the delivery got that is its path's ``head``."""
        delivery = Delivery.from_row(head)
        for tool in (READ_TOOL, ACKNOWLEDGE_TOOL):
            (note,) = self._journal.last_notes([("handoff", head.path, delivery.receiver, tool)])
            delivery = delivery.advance(note) if note is not None else delivery
        return delivery

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan_undo`: a handoff that was withdrawn is delivered again, and one that an undo
        delivered again is withdrawn."""
        return [item for path in paths if (item := self._restored(revert, path)) is not None]

    def _restored(self, revert: str, path: str) -> PlannedItem | None:
        head = self._journal.head("handoff", path)
        if head is None or not _is_revert(head) or head.detail.get("revert") != revert:
            return None
        before = self._journal.version("handoff", path, (head.version or 0) - 1)
        if before is None:
            return None
        if before.deleted:
            if head.deleted:
                return None
            return self._retracted(head) if self._delivery(head).read else self._withdrawn(head, None)
        content = self._journal.content(before.seq)
        current = None if head.deleted else self._journal.content(head.seq)
        return PlannedItem(
            "handoff", path, PathPlan("clean", content, content), current, (_write(head, content),)
        )


class RequestWithdrawal:
    """Withdraws what was asked of people and nobody has answered, by ``journal``: whoever waits goes on as
    if its time were over."""

    zones: Final[tuple[Zone, ...]] = ("request",)

    def __init__(self, journal: Journal, people: PeopleReader) -> None:
        self._journal = journal
        self._people = people

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan`."""
        asked = {row.path: row for row in rows if row.tool == ASK and row.version == 1}
        return [self._planned(row) for row in asked.values()]

    def _planned(self, asked: Row) -> PlannedItem:
        if find_request_end(self._journal, self._people, asked.path) is not None:
            return PlannedItem("request", asked.path, PathPlan("cannot", reason=ANSWERED), asked.message)
        detail: dict[str, Json] = {"request": asked.seq, "outcome": "withdrawn"}
        answer = dump_answer(Answer(expired=True))
        head = self._journal.head("request", asked.path)
        base = (head.version or 1) if head is not None else 1
        draft = Write(SYSTEM, WITHDRAW, "request", asked.path, answer, expected=base, detail=detail)
        return PlannedItem(
            "request", asked.path, PathPlan("clean", reason=WITHDRAWN), asked.message, (draft,)
        )

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan_undo`: whoever waited has gone on."""
        return _not_restored("request", paths)


class LeaseRelease:
    """Releases the boards that agents hold, by ``journal``."""

    zones: Final[tuple[Zone, ...]] = ("lease",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan`."""
        held = {row.path: row.actor for row in rows if row.tool == HOLD}
        return list(_ended(self._journal, "lease", held, RELEASE, RELEASED))

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan_undo`: a lease lasts some seconds."""
        return _not_restored("lease", paths)


class BufferClosing:
    """Closes the editor's buffers of agents, by ``journal``; what was written there stays in their rows."""

    zones: Final[tuple[Zone, ...]] = ("buffer",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan`."""
        opened = {row.path: row.actor for row in rows if row.version is not None}
        return list(_ended(self._journal, "buffer", opened, CLOSE, CLOSED))

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan_undo`: its agent opens it again."""
        return _not_restored("buffer", paths)


class MessageRetraction:
    """Tells who got messages of agents that these do not count, and lists whom they spawned. ``texts`` gives
    those in which it is told."""

    zones: Final[tuple[Zone, ...]] = ("agent",)

    def __init__(self, texts: Callable[[], Catalogue]) -> None:
        self._texts = texts

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan`."""
        sent = {(row.actor, row.path): row for row in rows if row.tool == MESSAGE and row.path != USER}
        items = [self._retracted(row) for row in sent.values()]
        spawned = dict.fromkeys(row.path for row in rows if row.tool == SPAWN and row.version is not None)
        return [*items, *(PlannedItem("agent", path, PathPlan("cannot", reason=SPAWNED)) for path in spawned)]

    def _retracted(self, row: Row) -> PlannedItem:
        told = self._texts()("revert.retracted_message", sender=row.actor)
        return PlannedItem(
            "agent", row.path, PathPlan("clean", reason=RETRACTED), row.message, (_message(row.path, told),)
        )

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """As `RevertPart.plan_undo`: what was told cannot be unsaid either."""
        return _not_restored("agent", paths)


def make_withdrawals(store: Store, people: PeopleReader) -> Sequence[RevertPart]:
    """Return all parts of this module, of ``store``; ``people`` says which answers count."""

    def texts() -> Catalogue:
        return catalogue(store.registry.current().language)

    journal = store.journal
    return (
        HandoffWithdrawal(journal, texts),
        RequestWithdrawal(journal, people),
        LeaseRelease(journal),
        BufferClosing(journal),
        MessageRetraction(texts),
    )


def _is_revert(row: Row) -> bool:
    """Return whether a revert made ``row``. Agents can put anything into the detail of a row."""
    return row.tool == REVERT_WORK and row.kind in ("human", "system")


def _origins(rows: Sequence[Row]) -> dict[int, int]:
    """Return for each version of a handoff, ``rows`` in their order, the version that its sender delivered
    with that content: its own number, or, where a revert delivered it again, that of the original. It is 0
    where a revert withdrew it."""
    origins: dict[int, int] = {}
    delivered: dict[str | None, int] = {}
    for row in rows:
        version = row.version or 0
        if not _is_revert(row):
            delivered[row.sha256] = version
            origins[version] = version
        else:
            origins[version] = 0 if row.deleted else delivered.get(row.sha256, version)
    return origins


def _write(head: Row, content: str | None) -> Write:
    return Write(SYSTEM, REVERT_WORK, head.zone, head.path, content, expected=head.version or 0)


def _message(receiver: str, text: str) -> Draft:
    return Note(SYSTEM, MESSAGE, "agent", receiver, message=text[:200], content=text)


def _ended(
    journal: Journal, zone: Zone, holders: dict[str, str], tool: str, reason: str
) -> Iterator[PlannedItem]:
    """Those of the paths whose newest version is still their holder's, and ends by ``tool``."""
    for path, head in zip(holders, journal.heads_of([(zone, path) for path in holders]), strict=True):
        if head is not None and not head.deleted and head.actor == holders[path]:
            draft = Write(SYSTEM, tool, zone, path, None, expected=head.version or 0)
            yield PlannedItem(zone, path, PathPlan("clean", reason=reason), drafts=(draft,))


def _not_restored(zone: Zone, paths: Sequence[str]) -> list[PlannedItem]:
    return [PlannedItem(zone, path, PathPlan("cannot", reason=NOT_RESTORED)) for path in paths]
