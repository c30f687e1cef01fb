"""Reverts messages, requests, board locks and buffers: withdraws them if nobody has used them.

An item that was already read cannot be withdrawn. Its readers are notified instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from watchroom.features.boards.rows import HOLD, RELEASE
from watchroom.features.buffers.rows import CLOSE
from watchroom.features.config.store import Store
from watchroom.features.handoffs.reverts import HandoffWithdrawal
from watchroom.features.people.service import PeopleReader
from watchroom.features.requests.rows import Answer, dump_answer
from watchroom.features.requests.service import find_request_end
from watchroom.features.reverts.planning import RevertPart
from watchroom.features.reverts.rules import WITHDRAWN, PathPlan, PlannedItem, draft_notice
from watchroom.kernel.journal import Journal
from watchroom.model import (
    ASK,
    MESSAGE,
    SPAWN,
    SYSTEM,
    USER,
    WITHDRAW,
    Json,
    Row,
    Write,
    Zone,
)
from watchroom.texts import Catalogue, catalogue

RELEASED: Final = "released"
CLOSED: Final = "closed"
RETRACTED: Final = "retracted"
"""The results of withdrawals."""
ANSWERED: Final = "answered"
SPAWNED: Final = "spawned"
NOT_RESTORED: Final = "not_restored"
"""The reasons why an item cannot be reverted."""


class RequestWithdrawal:
    """Withdraws requests to people that nobody has answered. A waiting agent continues as if the request had
    expired."""

    zones: Final[tuple[Zone, ...]] = ("request",)

    def __init__(self, journal: Journal, people: PeopleReader) -> None:
        self._journal = journal
        self._people = people

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
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
        """See `RevertPart.plan_undo`. It restores nothing, because the agents that waited have continued."""
        return _not_restored("request", paths)


class LeaseRelease:
    """Releases the board locks of agents."""

    zones: Final[tuple[Zone, ...]] = ("lease",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
        held = {row.path: row.actor for row in rows if row.tool == HOLD}
        return list(_ended(self._journal, "lease", held, RELEASE, RELEASED))

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan_undo`. It restores nothing: a lock only lasts a few seconds."""
        return _not_restored("lease", paths)


class BufferClosing:
    """Closes the buffers of agents. Their texts stay in their rows."""

    zones: Final[tuple[Zone, ...]] = ("buffer",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
        opened = {row.path: row.actor for row in rows if row.version is not None}
        return list(_ended(self._journal, "buffer", opened, CLOSE, CLOSED))

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan_undo`. It restores nothing: the agent can open the buffer again."""
        return _not_restored("buffer", paths)


class MessageRetraction:
    """Notifies the receivers of messages that the messages are withdrawn, and lists spawned agents.

    ``texts``: returns the catalogue for notifications.
    """

    zones: Final[tuple[Zone, ...]] = ("agent",)

    def __init__(self, texts: Callable[[], Catalogue]) -> None:
        self._texts = texts

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
        sent = {(row.actor, row.path): row for row in rows if row.tool == MESSAGE and row.path != USER}
        items = [self._retracted(row) for row in sent.values()]
        spawned = dict.fromkeys(row.path for row in rows if row.tool == SPAWN and row.version is not None)
        return [*items, *(PlannedItem("agent", path, PathPlan("cannot", reason=SPAWNED)) for path in spawned)]

    def _retracted(self, row: Row) -> PlannedItem:
        text = self._texts()("revert.retracted_message", sender=row.actor)
        notice = draft_notice(row.path, text)
        return PlannedItem("agent", row.path, PathPlan("clean", reason=RETRACTED), row.message, (notice,))

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan_undo`. It restores nothing: a notification cannot be withdrawn."""
        return _not_restored("agent", paths)


def make_withdrawals(store: Store, people: PeopleReader) -> Sequence[RevertPart]:
    """Return all revert parts of this module for ``store``. ``people``: decides which answers count."""

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


def _ended(
    journal: Journal, zone: Zone, holders: dict[str, str], tool: str, reason: str
) -> Iterator[PlannedItem]:
    """Yield the paths of ``holders`` whose newest version still belongs to its holder. ``tool``: the tool
    that ends them."""
    for path, head in zip(holders, journal.heads_of([(zone, path) for path in holders]), strict=True):
        if head is not None and not head.deleted and head.actor == holders[path]:
            draft = Write(SYSTEM, tool, zone, path, None, expected=head.version or 0)
            yield PlannedItem(zone, path, PathPlan("clean", reason=reason), drafts=(draft,))


def _not_restored(zone: Zone, paths: Sequence[str]) -> list[PlannedItem]:
    return [PlannedItem(zone, path, PathPlan("cannot", reason=NOT_RESTORED)) for path in paths]
