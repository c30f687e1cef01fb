"""Messages from people and agents that wait for an agent, until they are handed over to its model.

For agents that Watchroom steps itself, the step that takes a message in is the record of that. For all others
it is a note whose base is the newest message that was handed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from watchroom.journal.topics import messages_to
from watchroom.model import MESSAGE, Json, Note
from watchroom.rules.messages import HANDED_OVER, MESSAGES
from watchroom.zones.sessions import ZONE, SessionRecord, SessionZone, split_session
from watchroom.zones.store import Store

_AGENTS: Final = "agent"
_MAX_MESSAGES: Final = 20
"""Messages that are handed over at a time; the others come next."""
_MAX_CHARACTERS: Final = 50_000
"""Characters of those after the first one."""


class Messages:
    """The messages in ``store`` for agents, whose sessions are in ``sessions``. Usable from any thread."""

    def __init__(self, store: Store, sessions: SessionZone) -> None:
        self._store = store
        self._sessions = sessions

    def find_waiting(self, path: str) -> list[SessionRecord]:
        """Return the messages to the agent of ``path``, and to the session at ``path``, that were not handed
        over, oldest first. ``path`` is a session's, or an agent's id where the session is not known. Raises
        `JournalError`."""
        agent, _ = split_session(path)
        journal = self._store.journal
        after = self._sessions.handed_over_until(agent)
        places = [(messages_to(ZONE, agent), after), (messages_to(_AGENTS, agent), after)]
        if path != agent:
            places.append((messages_to(ZONE, path), self._sessions.handed_over_until(path)))
        last = journal.last_seq()
        rows = [row for topic, after in places for row in journal.topic(topic, after=after, until=last)]
        messages = [row for row in rows if row.tool == MESSAGE and row.actor != agent]
        return [
            self._sessions.record(row)
            for row in sorted(messages, key=lambda row: row.seq)
            if self._sessions.counts(row)
        ]

    def record(self, path: str, messages: Sequence[SessionRecord]) -> None:
        """Record that ``messages`` were handed over to the session at ``path``. Raises `JournalError`."""
        agent, _ = split_session(path)
        notes: list[Note] = []
        for place in {agent: None, path: None}:
            rows = [each.row.seq for each in messages if (each.row.path == path) == (place == path)]
            if rows:
                detail: dict[str, Json] = {MESSAGES: list[Json](rows)}
                notes.append(Note(agent, HANDED_OVER, ZONE, place, base=max(rows), detail=detail))
        self._store.commits.commit_all(notes)

    def hand_over(self) -> Handover:
        """Return what hands messages over, a context manager."""
        return Handover(self._store, self)


class Handover:
    """Hands messages over to one session, as a context manager.

    A message is first given to the client and then recorded as handed over (`record`). If this process dies
    in between, the message still waits: it is given twice rather than never. Within the context no other
    process hands over messages to the same agent.

        with workspace.messages.hand_over() as handover:
            send([each.text for each in handover.take("alice/s-1")])
            handover.record()
    """

    def __init__(self, store: Store, messages: Messages) -> None:
        self._store = store
        self._messages = messages
        self._claim = ExitStack()
        self._path = ""
        self._taken: list[SessionRecord] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was taken that is to be recorded."""
        return not self._taken

    def take(self, path: str) -> list[SessionRecord]:
        """Return the messages that wait for the session at ``path`` (see `Messages.find_waiting`), oldest
        first, at most 20 or 50,000 characters; none while another process hands some over. Raises
        `JournalError`."""
        if self._taken or not self._messages.find_waiting(path):
            return []
        agent, _ = split_session(path)
        if not self._claim.enter_context(self._store.journal.claim(f"messages/{agent}")):
            self._claim.close()
            return []
        # Another process may have handed over some before the claim.
        self._path, self._taken = path, _first(self._messages.find_waiting(path))
        if not self._taken:
            self._claim.close()
        return self._taken

    def record(self) -> None:
        """Record that what was taken is handed over. Raises `JournalError`."""
        if self._taken:
            self._messages.record(self._path, self._taken)
            self.release()

    def release(self) -> None:
        """Leave what was taken to the next hand-over."""
        self._taken = []
        self._claim.close()


def _first(messages: Sequence[SessionRecord]) -> list[SessionRecord]:
    """As many as are handed over at a time."""
    first: list[SessionRecord] = []
    characters = 0
    for each in messages[:_MAX_MESSAGES]:
        characters += len(each.text)
        if first and characters > _MAX_CHARACTERS:
            break
        first.append(each)
    return first
